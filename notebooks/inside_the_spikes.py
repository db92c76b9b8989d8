# %% [markdown]
# # Inside the spikes
#
# A spiking network learned chess by playing itself. Here you look inside it: from one neuron to a
# whole position, from the untrained network to the trained one. Press **Run all**. It takes a
# minute (longer with a large network of your own) and trains nothing, because trained networks come
# with the package. After a change in *Choose* press *Run all* again.
# Every section has one idea. You need not have met a spiking network before.

# %% cellView="form" jupyter={"source_hidden": true} tags=["fetch"]
# @title Get the code: from the folder around this notebook, or from its repository
import importlib
import subprocess
import sys
from importlib.util import find_spec

REPOSITORY = ""  # `make repository URL=...` sets it

sys.path[:0] = [".", "..", "chessnn-colab"]
if find_spec("chessnn_colab") is None:
    problem = (
        "The package chessnn_colab is not here. Open this notebook in a checkout of the repository. "
        "On Colab or Kaggle upload dist/run_all.ipynb, which `make colab` writes in a checkout."
    )
    if REPOSITORY:
        clone = ["git", "clone", "--quiet", "--depth", "1", REPOSITORY, "chessnn-colab"]
        done = subprocess.run(clone, check=False, stderr=subprocess.PIPE, text=True)
        problem = done.stderr if done.returncode else ""
    if problem:
        raise type("NoCode", (Exception,), {"_render_traceback_": lambda self: [str(self)]})(
            problem
        )
    importlib.invalidate_caches()

# %% cellView="form" jupyter={"source_hidden": true}
# @title Install what is missing (torch stays as it is)
from chessnn_colab import install_requirements, scroll_to_cell

root = install_requirements()
scroll_to_cell(top=True)

# %% [markdown]
# ## Choose
# The position to look at, as FEN. `own_run` may be a run folder of yours: you then see its own
# networks, from the first one to the last. Or it may be a file that somebody shared: its network
# then takes the place of the last of the four, and of those that are not of an earlier iteration.
# `probe_positions` are played for the section on what each layer knows.

# %% tags=["parameters"]
# @title Look at { run: "auto" }
# fmt: off
fen = "r1bqkb1r/pppp1ppp/2n2n2/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 4 4"  # @param {type:"string"}
# fmt: on
own_run = ""  # @param {type:"string"}
probe_positions = 3000  # @param {type:"slider", min:500, max:20000, step:500}

# %% [markdown]
# ## One neuron
# A neuron has one number, its **membrane**. Current that arrives adds to it. From step to step a
# part of it **leaks** away. When it reaches the **threshold**, the neuron fires: one **spike**
# goes to every neuron that listens, and one threshold is taken off the membrane (the **reset**).

# %% cellView="form" jupyter={"source_hidden": true}
# @title One neuron, drawn
import matplotlib.pyplot as plt
import numpy as np
from ipywidgets import FloatSlider

from chessnn_colab import apply_style, inside

apply_style()
current = np.repeat([0.0, 0.3, 0.0, 0.75, -0.6, 0.45, 1.6, 0.0], [2, 9, 3, 10, 3, 5, 4, 4])
steps = np.arange(len(current))


def draw_neuron(leak, threshold):
    membrane, path, spikes = 0.0, [], []
    for step, arriving in enumerate(current):
        membrane = (1 - leak) * membrane + arriving
        path.append(membrane)
        if membrane >= threshold:
            spikes.append(step)
            membrane -= threshold
        path.append(membrane)
    figure, axes = plt.subplots(3, sharex=True, figsize=(8.6, 4.4), height_ratios=(1, 2.2, 0.5))
    axes[0].bar(steps, current)
    axes[1].plot(np.repeat(steps, 2) + np.tile([-0.4, 0.4], len(steps)), path)
    axes[1].axhline(threshold, color="C1", linestyle="--")
    axes[2].eventplot(spikes, lineoffsets=0.5, linelengths=0.9, linewidths=3)
    axes[2].set(xlabel="time step", yticks=[])
    keeps = f"Membrane: keeps {1 - leak:.0%} of itself per step; dashed: the threshold"
    titles = ("Current that arrives", keeps, f"{len(spikes)} spikes")
    for axis, title in zip(axes, titles):
        axis.set_title(title, loc="left")
    return figure


leak = FloatSlider(0.5, min=0, max=0.95, step=0.05, description="leak")
threshold = FloatSlider(1.0, min=0.2, max=2, step=0.1, description="threshold")
inside.Controlled(draw_neuron, {"leak": leak, "threshold": threshold})

# %% [markdown]
# *A small current leaks away as fast as it comes and never makes a spike; a larger one makes a
# spike every few steps; after a negative one the neuron needs longer to reach its threshold. Move
# the sliders: without leak even the small current fires in the end.*
#
# ## A neuron that counts
# Four steps of one spike each take four times the work of one step. So this network uses
# **I-LIF** neurons: one step, in which a neuron may fire several spikes at once: up to four in
# the picture below, up to eight in the networks that follow. The number of spikes is the current
# divided by the threshold, rounded. Whether that is still spiking is a fair question. It is, in
# one sense that was tested. `tools/event_driven.py` runs the same weights with additions only, at
# most one spike per neuron and step. Computed with enough digits (float64), every neuron then fires
# exactly as many spikes as here. `docs/spiking.md` says what it costs: no layer may fire before the
# layer below has finished.

# %% cellView="form" jupyter={"source_hidden": true}
# @title Two staircases
import torch

from chessnn_colab import NetworkConfig, SpikingLayer, show

current_per_step = torch.linspace(-1, 5.5, 1301)
kinds = {
    "LIF: four steps, one spike in each": NetworkConfig(steps=4, levels=1),
    "I-LIF: one step, up to four spikes": NetworkConfig(steps=1, levels=4),
}
figure, axes = plt.subplots(1, 2, sharey=True, figsize=(8.6, 3.1))
for axis, (title, config) in zip(axes, kinds.items()):
    layer = SpikingLayer(config, portable=True)
    with torch.no_grad():
        spikes = layer(current_per_step.expand(config.steps, -1)).sum(0)
    axis.plot(current_per_step, current_per_step.clamp(min=0), "C1--", label="ReLU")
    axis.step(current_per_step, spikes, "C0", where="mid", label="spikes")
    axis.set(title=title, xlabel="current per step", ylim=(-0.3, 5))
axes[0].set(ylabel="spikes")
axes[0].legend()
show(
    figure,
    "Two staircases: the LIF neuron reaches four spikes at a current of one, the I-LIF neuron rounds",
)

# %% [markdown]
# *The left neuron (LIF) fires in every step at a current of one per step, and cannot fire more. The
# right one (I-LIF) climbs along the dashed line, the ReLU of ordinary networks: it is a ReLU cut
# into whole spikes.*
#
# ## A position becomes planes
# The network does not see pieces. It sees 27 boards of zeros and ones, always from the side of
# the player to move.

# %%
import os

os.chdir(root)  # names of runs begin at the folder that has them
networks, played = inside.networks_to_show(own_run)
untrained, trained = next(iter(networks.values())), list(networks.values())[-1]
if trained.config.activation != "spikes":
    print("This network has no spikes. What follows counts a number of 3 as 3 spikes.")
seen = inside.position(fen)
inside.input_planes(seen)

# %% [markdown]
# *Where the mover's pawns are, which squares the opponent attacks, who may castle.*
#
# ## Planes become spikes
# A convolution looks at each square and its neighbours and makes of them 32 numbers per square,
# the **currents** of 32 channels. The neurons turn each into spikes.

# %% cellView="form" jupyter={"source_hidden": true}
# @title The channel that fires most
with torch.no_grad():
    currents = seen.seen_from_white(trained.stem(seen.planes)[0].numpy())
first_spikes = inside.firing_maps(trained, seen)["block 1 in"]
channel = first_spikes.sum((1, 2)).argmax()
boards = {
    f"channel {channel + 1}: its current": currents[channel],
    "its spikes: the current, rounded": first_spikes[channel],
}
figure, axes = plt.subplots(1, 2, figsize=(6.2, 3.1))
for axis, (title, board) in zip(axes, boards.items()):
    axis.imshow(board, origin="lower", cmap="PuOr", vmin=-4, vmax=4)
    for (rank, file), value in np.ndenumerate(board):
        if abs(value) > 0.05:
            colour = "white" if abs(value) > 2 else "black"
            axis.text(file, rank, f"{value:.2g}", ha="center", va="center", size=7, color=colour)
    axis.set(title=title, xticks=range(8), yticks=range(8))
    axis.set(xticklabels=list("abcdefgh"), yticklabels=range(1, 9))
    axis.grid(False)
show(figure, f"{' and '.join(boards)}; {first_spikes[channel].sum():.0f} spikes in all")

# %% [markdown]
# *One channel: its current on the left, its spikes on the right. Negative currents fire nothing.*
#
# ## Where each layer fires
# In the networks that come with the package the spikes go through three blocks of two layers of
# 32 channels; a larger one has more. Each square of a map is as bright as its neurons fire.

# %%
inside.firing_view(trained, seen)

# %% [markdown]
# *Every layer on one scale, then the channels of one of them: choose another from the list. Some
# channels draw pieces, some draw empty squares or an edge, some fire everywhere.*
#
# ## How it learned
# One position and several moments of a run: move the slider. The text below each board gives the
# firing rate (spikes as a share of those possible) and the number of silent layers. Look at these
# two figures first.

# %%
inside.growth(networks, seen, played)

# %% [markdown]
# *The untrained network is almost silent: its firing rate is below 1 % (in the four networks that
# come with the package), and three of its seven layers fire nothing. These are the layers in the
# middle of each block, whose currents stay too small until learning raises them; all moves are
# about equally likely. Then more and more fires and no layer stays silent, and the bar of
# win, draw and loss (of White) changes. Arrows are what the network thinks by itself, without
# looking ahead. In the position given they turn to captures first, and later to saving the queen
# from the knight on f6. It misses that Qxf7 mates: to see that, a network looks ahead, as it does
# when it plays.*
#
# ## What each layer knows
# A **probe** is the simplest reader there is: it gives each channel's spikes a weight, adds them
# up, and reads one fact from the sum. Is the mover in check, does one of the mover's pieces hang,
# who has more material? If so simple a reader can tell, the layer knows. The higher the line, the
# better it tells: 0 is guessing, 1 is always right (the share of the variance explained; Alain and
# Bengio, arXiv:1610.01644).

# %% cellView="form" jupyter={"source_hidden": true}
# @title Probes: facts of a position, read from spikes by least squares
import torch

# Planes of a position: the mover's pieces without the king, the other's, and more.
OWN, THEIRS, OWN_ATTACKS, THEIR_ATTACKS, CHECK = slice(0, 5), slice(6, 11), 13, 14, 20


def facts(planes):
    """Each fact of positions [N, 27, 8, 8] as numbers [N]; material is in pawns."""
    attacked = planes[:, THEIR_ATTACKS] * (1 - planes[:, OWN_ATTACKS])
    pieces = planes[:, OWN].sum((2, 3)) - planes[:, THEIRS].sum((2, 3))
    found = {
        "in check": planes[:, CHECK].amax((1, 2)),
        "hanging piece": (planes[:, 1:5].sum(1) * attacked).amax((1, 2)),
        "material": pieces @ torch.tensor([1.0, 3.0, 3.0, 5.0, 9.0]),
    }
    return {fact: numbers.numpy() for fact, numbers in found.items()}


def readings(network, planes):
    """What a probe reads of the input and of each layer: the mean and the largest number of spikes
    of each channel. So it cannot work out a fact by itself from where pieces stand."""
    parts, done = {}, 0
    for batch in planes.split(512):
        done += len(batch)
        print(f"{done:,} of {len(planes):,} positions", end="\r")
        counts = inside.spike_counts(network, batch)
        spikes = {short: counts[name].sum(0) for name, short in inside.layer_names(network).items()}
        for layer, board in {"input": batch, **spikes}.items():
            both = torch.cat((board.mean((2, 3)), board.amax((2, 3))), 1)
            parts.setdefault(layer, []).append(both)
    return {layer: torch.cat(batches).numpy() for layer, batches in parts.items()}


def explained(features, fact):
    """Fit a probe on the first half of the positions, with a little shrinking; the share of the
    fact's variance that it explains in the second half, at least 0."""
    half = len(fact) // 2
    spread = features[:half].std(0)
    lively = spread > 1e-6
    x = np.c_[features[:, lively] / spread[lively], np.ones(len(fact))].astype(float)
    gram = x[:half].T @ x[:half] + 0.01 * half * np.eye(x.shape[1])
    errors = x[half:] @ np.linalg.solve(gram, x[:half].T @ fact[:half]) - fact[half:]
    variance = fact[half:].var()
    return max(0.0, 1 - float((errors**2).mean() / variance)) if variance else 0.0


def knowledge(network, planes):
    """Fact -> layer -> how well the probe reads it, from 0 (guessing) to 1 (always right)."""
    features = readings(network, planes)
    return {
        fact: {layer: round(explained(x, numbers), 2) for layer, x in features.items()}
        for fact, numbers in facts(planes).items()
    }


def draw_knowledge(scores):
    """A plot for each fact, with a line for each network."""
    named = next(iter(scores.values()))
    figure, axes = plt.subplots(1, len(named), sharey=True, figsize=(9.4, 3.0))
    for axis, fact in zip(axes, named):
        for (network, told), dashes in zip(scores.items(), ("C1o--", "C0o-")):
            axis.plot(list(told[fact]), list(told[fact].values()), dashes, label=network)
        axis.set_title(fact)
        axis.tick_params("x", rotation=50)
    axes[0].set(ylim=(-0.03, 1.03), ylabel="0 guessing, 1 always right")
    axes[-1].legend()
    return figure


# %%
positions = inside.sample_positions(probe_positions)
scores = {
    name: knowledge(network, positions)
    for name, network in {"untrained": untrained, "trained": trained}.items()
}
show(draw_knowledge(scores), f"How well a probe reads a fact, from 0 to 1: {scores}")

# %% [markdown]
# *The trained network is far above the untrained one. One input plane says whether the mover is in
# check, and material can be counted in the input: a layer needs only to pass both on. No plane says
# that a piece hangs. Layers whose probe is better than that of `input` have computed a part of it.*
#
# ## Silence a part
# What is a layer good for? Silence it and ask again. Choose a layer, and a channel of it or 0 for
# all.

# %% cellView="form" jupyter={"source_hidden": true}
# @title Silence a layer or a channel
from ipywidgets import Dropdown, IntSlider


def moved(before, after):
    """How much probability went from some moves to others, 0 to 1 (total variation)."""
    shares = dict(zip(after.actions, after.probabilities))
    pairs = zip(before.actions, before.probabilities)
    return sum(abs(share - shares[action]) for action, share in pairs) / 2


def side_by_side(boards):
    parts = "".join(f"<div>{board}</div>" for board in boards)
    return f'<div style="display:flex;flex-wrap:wrap;gap:14px">{parts}</div>'


def draw_silenced(layer, channel):
    with inside.silenced(trained, layer, channel - 1 if channel else None):
        thought = inside.opinion(trained, seen)
    words = f"Silenced: {moved(unchanged, thought):.0%} of the probability moved."
    boards = {"Nothing silenced.": unchanged, words: thought}
    return side_by_side(inside.thought_html(seen, one, text) for text, one in boards.items())


unchanged = inside.opinion(trained, seen)
layers = [(short, name) for name, short in inside.layer_names(trained).items()]
choices = {
    "layer": Dropdown(description="silence", options=layers),
    "channel": IntSlider(description="channel (0: all)", max=trained.config.channels),
}
inside.Controlled(draw_silenced, choices)


# %% cellView="form" jupyter={"source_hidden": true}
# @title Every channel silenced alone
def silenced_alone(name):
    """How much probability moves without each channel of a layer."""
    shares = []
    for channel in range(trained.config.channels):
        with inside.silenced(trained, name, channel):
            shares.append(moved(unchanged, inside.opinion(trained, seen)))
    return shares


def draw_strips(strips, words):
    figure, axis = plt.subplots(figsize=(9.0, 2.6))
    channels = trained.config.channels
    edges = (0.5, channels + 0.5, len(strips) - 0.5, -0.5)
    look = {"cmap": "cividis", "aspect": "auto", "interpolation": "nearest", "extent": edges}
    mesh = axis.imshow(list(strips.values()), **look)
    axis.set_yticks(range(len(strips)), strips)
    axis.set_xlabel("channel")
    axis.grid(False)
    figure.colorbar(mesh, label="probability moved", format="{x:.0%}")
    show(figure, words)


strips = {}
try:
    for name, short in inside.layer_names(trained).items():
        print(f"silencing the channels of {short:<12}", end="\r")
        strips[short] = silenced_alone(name)
except KeyboardInterrupt:
    print("stopped: the layers that are done follow")
if strips:
    layer = max(strips, key=lambda short: max(strips[short]))
    share = max(strips[layer])
    words = (
        f"Most depends on {layer}, channel {strips[layer].index(share) + 1}: without it "
        f"{share:.0%} of the probability goes to other moves."
    )
    draw_strips(strips, words)
    print(words)

# %% [markdown]
# *The right board has other arrows. Below it, every channel is silenced alone: the brighter
# its square, the more of the probability goes to other moves. A channel of the first layers moves more
# of it than one of the last two, as a rule, because all later layers read it; yet the single channel
# that matters most may be in the last layer.*
#
# ## The answer forms, step by step
# Until here each layer waited until the layer below had fired all its spikes. A chip need not wait:
# in each step every layer takes the spikes that have come so far, and each neuron fires at most
# one. A neuron that has fired too many sends a spike that takes one back. Move the slider from step
# to step.

# %% cellView="form" jupyter={"source_hidden": true}
# @title The answer after each step
from IPython.display import display

from chessnn_colab import ChessnnError


def draw_step(step):
    elsewhere = moved(unchanged, forming[step - 1])
    words = f"After step {step}: {elsewhere:.0%} of the probability will still move to other moves."
    return inside.thought_html(seen, forming[step - 1], words)


try:
    with inside.without_waiting(trained, take_back=True):
        forming = [inside.opinion(trained, seen) for _ in range(8)]
    still = side_by_side(draw_step(step) for step in range(1, 9))
    step = IntSlider(1, min=1, max=8, description="step")
    display(inside.Controlled(draw_step, {"step": step}, still))
except ChessnnError as error:  # a network of several time steps, or without spikes
    print(error)

# %% [markdown]
# *The first arrows are a guess from the largest currents. An older network was measured in 1,000
# positions of games that it had played against itself. Its likeliest move was the final one in 36 %
# of them after one step, in 76 % after four, in 92 % after six and in all after eight.
# `docs/spiking.md`, "Without waiting", tells what happens
# when no spike can be taken back.*
#
# ## Does it save energy?
# That is often said of spiking networks, so here are the figures. They are estimates of what one
# answer of the network costs in an older kind of chip (45 nanometres, Horowitz 2014). Beside it stand
# *twins*: networks of the same shape without spikes. A twin need not be wasteful: it can hold a
# number in four bits, and it can skip zeros too (Yan et al., arXiv 2409.08290). The left picture
# counts the arithmetic alone. The right one adds the cost of fetching every number from a small
# memory, each time that it is used.

# %%
from IPython.display import Markdown

energy = inside.estimate_energy(trained, inside.sample_positions(500))
show(inside.energy_bars(energy), energy.verdict)
Markdown(energy.verdict)

# %% [markdown]
# ## A price for spikes
# Nothing in playing chess asks a network to fire seldom. So training in chess puts a small price on
# each spike (`--spike-penalty 0.1`; after two million positions it rises, to three times as much): a
# neuron that fires must be worth it. Here is your position once
# more, seen by the last of the four networks, and by an older one that learned without a price.

# %% cellView="form" jupyter={"source_hidden": true}
# @title The same position, without a price for spikes and with one
from importlib.resources import files

from IPython.display import HTML, display

from chessnn_colab import runs

with_price = list(inside.networks_to_show()[0].values())[-1]
fifth = files("chessnn_colab.runs").joinpath("data", "without_price.safetensors")
without_price, _ = runs.load_network(fifth, device="cpu")
figure, axis = plt.subplots(figsize=(8.6, 2.6))
boards = []
for name, network in {"without a price": without_price, "with a price": with_price}.items():
    fired = {layer: spikes.sum() for layer, spikes in inside.firing_maps(network, seen).items()}
    axis.plot(list(fired), list(fired.values()), "o-", label=name)
    words = f"{name.capitalize()}: {sum(fired.values()):,.0f} spikes for this position."
    boards.append(inside.thought_html(seen, inside.opinion(network, seen), words))
axis.set(ylabel="spikes", ylim=(0, None))
axis.legend()
display(HTML(side_by_side(boards)))
show(figure, "The spikes of each layer for this position, without a price and with one")

# %% [markdown]
# *In the position given, the network with a price fires 6,500 spikes where the other fires 11,300.
# Both see that the queen is attacked.*
#
# What do fewer spikes cost in strength? Each small dot below is a network that learned for five
# minutes of one core, and played 400 games against minimax. Each large one is the mean of three with
# the same price. The dashed lines are twins without spikes.
#
# ![Score over energy for five prices that training puts on a spike, after five minutes, with the dense 4-bit twin and the ReLU twin as lines](../docs/spike_price.png)
#
# *Three trainings do not tell the scores of these prices apart, nor that of the default, 0.1, from a
# ReLU's. `docs/spiking.md`, "A price for spikes", has the figures.*
#
# ## What next
# `train.ipynb` trains a network of your own: put its folder into `own_run` above and run all
# again. `python -m chessnn_colab share RUN FILE` makes one file of it for others.
# `docs/spiking.md` has the figures, the sources and the commands.
