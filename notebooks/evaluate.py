# %% [markdown]
# # How strong has it become?
#
# This notebook shows how strong a network from `train.ipynb` has become. It plays simple players
# and its own earlier versions (*snapshots*), solves puzzles, and is opened up at the end. Choose a
# run and press **Run all**; where there is none yet, a small one is trained first. The stop button
# ends a cell; the games of a match or of the ladder that are finished still count.

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
# Nothing needs to be changed. What the fields mean:
#
# - `run_folder`: the run. "auto" is the folder of the game's name in `runs`.
# - `copy_on_drive`, on Colab: a run that this machine has lost is brought back from its copy.
# - `train_minutes_if_none`: how long to train where "auto" finds no run. That short run gets a
#   folder of its own (`runs/chess-short`), because a run keeps the size of its first network.
# - `games`: the games of each match, and of *Do its predictions come true?* `ladder_games`: the games of each pair on the ladder.
#   `ladder_snapshots`: how many versions of the network are on it.
# - `search`: "two-rung" is the quickest way to look ahead in many games at once; "tree" is that of
#   the README's tables; "policy" does not look ahead and shows what the network knows by itself.
# - `minutes_a_cell`: the time limit of the matches. The ladder has a limit of its own, of as many minutes.
#   Puzzles and the section after them have no limit.

# %% tags=["parameters"]
# @title What to measure { run: "auto" }
game = "chess"  # @param ["chess", "gomoku", "gomoku:9", "tictactoe", "2048"]
run_folder = "auto"  # @param {type:"string"}
copy_on_drive = False  # @param {type:"boolean"}
train_minutes_if_none = 2  # @param {type:"slider", min:0.5, max:60, step:0.5}
games = 40  # @param {type:"slider", min:2, max:400, step:2}
search = "two-rung"  # @param ["two-rung", "tree", "policy"]
minutes_a_cell = 3  # @param {type:"slider", min:0.05, max:60, step:0.05}
ladder_snapshots = 5  # @param {type:"slider", min:2, max:20, step:1}
ladder_games = 20  # @param {type:"slider", min:2, max:200, step:2}

# %% [markdown]
# ## The story of the run

# %%
import os

from IPython.display import clear_output, display

from chessnn_colab import TrainConfig, make_game, make_progress, run_story, runs, train

os.chdir(root)  # names of runs begin at the folder that has them
run = runs.chosen_run(root, run_folder, game)
runs.bring_back(run, copy_on_drive)
if run_folder.strip() in ("", "auto") and not (run / "metrics.jsonl").exists():
    run = run.with_name(f"{run.name}-short")
    if not (run / "metrics.jsonl").exists():
        config = TrainConfig(run=str(run), game=game, minutes=train_minutes_if_none)
        for report in train(config, make_progress()):
            pass
        clear_output()  # the story says it again
game = runs.run_game(run)
for_two = make_game(game).num_players == 2
ladder = None  # of this run, when the cell below has made it
display(run_story(run))

# %% [markdown]
# ## Games it played against itself
# Press Play, click a move, or use the arrow keys. Of some iterations you see one game: the
# longest that was won, where there is one. Early games wander. In chess, look for pieces that are captured in return, and for mates.

# %%
from chessnn_colab import sample_replay

sample_replay(run)

# %% [markdown]
# ## Before and after
# The untrained network and the last one play each of the game's fixed players: in chess `random`,
# `greedy` (takes the most valuable piece) and `minimax` (looks at its own move and at the reply).
# In 2048 every player plays on its own, and mean scores are compared as text.

# %%
from chessnn_colab import arena, measure, show_matches

looks_ahead = arena.play_search(search)
results = measure(run, games=games, search=looks_ahead, seconds=60 * minutes_a_cell)
show_matches(results)

# %% [markdown]
# *Each bar is a match. The dot is the score, a draw counting half; the true score is within its
# line 95 times out of 100. If two lines overlap widely, the games do not say which network is
# stronger.*
#
# ## How its games ended
# Against the last opponent. Early in training most games against minimax are lost by checkmate.
# Later the share of wins by checkmate grows, and some games are drawn because a position comes
# back three times.

# %%
if for_two:
    for ending, counts in results[-1].results_by_ending.items():
        print(f"{ending.replace('_', ' '):25}", *(f"{counts[name]:4} {name}" for name in counts))
else:
    print(
        f"{game} is for one player: no game is won or lost. The scores above say how far the games went."
    )

# %% [markdown]
# ## A ladder
# Some earlier versions of the network and the fixed players get ratings on one scale. Each version
# plays every fixed player and the versions next to it. The player that moves at random has 0.
# A player 200 points above another scores about 0.76 against it, 400 points about 0.91. The number
# behind ± is half the width of the 95 % interval.

# %%
from chessnn_colab import ChessnnError, show, training_curves, watching

if for_two:
    limits = {"games": ladder_games, "snapshots": ladder_snapshots, "seconds": 60 * minutes_a_cell}
    try:
        with watching() as watch:
            ladder = arena.rate_run(run, search=looks_ahead, watch=watch, **limits)
    except ChessnnError as error:  # stopped before every pair had a game
        print(error)
if ladder:
    print(ladder)
    rating, moments = ladder.ratings.rating, ladder.snapshots.values()
    lines = {"snapshots": {number: rating(name) for name, number in ladder.snapshots.items()}}
    for name in ladder.ratings.names:
        if name not in ladder.snapshots:
            lines[name] = dict.fromkeys(moments, rating(name))
    errors = {number: ladder.ratings.error(name) for name, number in ladder.snapshots.items()}
    show(
        training_curves(lines, run, "rating", errors),
        "The ratings above, against games of self-play and minutes of training",
    )
if not for_two:
    print(f"{game} is for one player: there is no ladder, because each game has one player.")

# %% [markdown]
# *Fixed players are level lines. When the last points lie within each other's intervals, more training
# did not help, or more games are needed to see it.*
#
# ## Puzzles
# For chess and Gomoku, and the snapshots of the ladder (all there are, if you stopped it before its
# first result). In chess: a hundred positions each with a
# mate in one, a mate in two, and a piece that hangs, with the network's first move checked against
# all solutions. Puzzles tell snapshots apart sooner than matches do, because their result does not
# depend on chance.

# %%
from chessnn_colab import ChessnnError, show, training_curves, watching

try:
    snapshots = list(ladder.snapshots.values()) if ladder else None
    with watching() as watch:
        shares = arena.solved_over_run(run, looks_ahead, snapshots, watch=watch)
    for iteration, solved in shares.items():
        kinds = ", ".join(f"{kind} {share:.0%}" for kind, share in solved.items())
        print(f"iteration {iteration:4}: {kinds}")
    lines = {}
    for iteration, solved in shares.items():
        for kind, share in solved.items():
            lines.setdefault(kind.replace("-", " "), {})[iteration] = share
    if lines:
        show(
            training_curves(lines, run, "share of the puzzles solved"),
            "The shares above, against games of self-play and minutes of training",
        )
    else:
        print("Stopped before the puzzles of one snapshot were done.")
except ChessnnError as error:  # a game without puzzles
    print(error)

# %% [markdown]
# *With a search that looks ahead, every mate in one and nearly every mate in two is found from the
# beginning, because the rules find them; with "policy" they are learned.*
#
# ## Do its predictions come true?
# The network plays itself as it did in training. In each position its search estimates how
# likely the player to move is to win, to draw and to lose.

# %% cellView="form" jupyter={"source_hidden": true}
# @title What was predicted, and what was played
import matplotlib.pyplot as plt

from chessnn_colab import ChessnnError, apply_style, show, watching


def draw_fifths(fifths):
    """Two bars for each fifth of the positions: wins from below, draws, losses."""
    apply_style()
    figure, axis = plt.subplots(figsize=(9.0, 3.5))
    for number, fifth in enumerate(fifths):
        for side, (word, shares) in enumerate(fifth.items()):
            place = 3 * number + side
            below = [0, shares[0], shares[0] + shares[1]]
            axis.bar([place] * 3, shares, 0.9, below, color=COLOURS)
            for result, share, bottom in zip(("won", "drawn", "lost"), shares, below):
                middle = bottom + share / 2
                if place == 0:
                    axis.text(-0.7, middle, result, ha="right", va="center", size=9)
                if share > 0.06:  # there is room
                    words = {"ha": "center", "va": "center", "color": "#222222", "size": 9}
                    axis.text(place, middle, f"{share:.0%}", **words)
            axis.text(place, 1.02, "said" if word == "predicted" else word, ha="center", size=9)
    middles = [3 * number + 0.5 for number in range(len(fifths))]
    axis.set_xticks(middles, ["least", *[""] * (len(fifths) - 2), "most"][: len(fifths)])
    axis.set(xlim=(-2, None), ylim=(0, 1.1), yticks=[], ylabel="share of positions", xlabel=FIFTHS)
    axis.grid(False)
    return figure


COLOURS = ["#2A8FD0", "#A9B4BF", "#E69F00"]  # of wins, draws and losses
FIFTHS = "five equal parts of the positions, by the points that the player to move expected"
try:
    with watching() as watch:
        calibration = arena.calibrate_run(run, games, watch=watch)
    show(draw_fifths(calibration.fifths), str(calibration))
except ChessnnError as error:  # a game for one player, or too few games that the rules ended
    print(error)

# %% [markdown]
# *Blue is wins, grey draws, orange losses. Five equal parts of the positions, from those where it
# expected least to those where it expected most. The more alike two bars are, the better its chances can be trusted. With few games, such as 40, they also differ by chance.*
#
# ## Look inside
# The position where a game begins, and what the network fires there.

# %% cellView="form" jupyter={"source_hidden": true}
# @title Its last network at the start of a game
import numpy as np
from IPython.display import Markdown

from chessnn_colab import inside, make_game

network, _ = runs.load_network(run, device="cpu")
if network.config.activation != "spikes":
    print("This network has no spikes. The pictures below count a number of 3 as 3 spikes.")
rules = make_game(game)
start = rules.init(1)
planes = rules.observe(start)
display(inside.start_picture(rules, start))
fired = {name: counts[:, 0] for name, counts in inside.spike_counts(network, planes).items()}
layers = {short: fired[name] for name, short in inside.layer_names(network).items()}

# A column for the first spike that a neuron may fire, the second, ...; a row for each neuron.
each = np.arange(network.config.levels)[:, None]
last = [step.flatten().numpy() > each for step in layers["last"]]
apply_style()
figure, axis = plt.subplots(figsize=(6.0, 4.6))
raster = np.concatenate(last).T
place = (0.5, raster.shape[1] + 0.5, 0, len(raster))
axis.imshow(raster, aspect="auto", interpolation="nearest", cmap="cividis", extent=place)
axis.set(xlabel="spike", ylabel="neuron")
axis.grid(False)
words = f"The last layer fires {np.mean(last):.1%} of its possible spikes"
axis.set_title(words, loc="left")
show(figure, words)

rates = {short: float(spikes.mean()) / len(each) for short, spikes in layers.items()}
figure, axis = plt.subplots(figsize=(7.5, 1.2 + 0.32 * len(rates)))
silent = [rate < 0.001 for rate in rates.values()]  # such a layer passes next to nothing on
colours = ["#D55E00" if quiet else "#2A8FD0" for quiet in silent]
bars = axis.barh(list(rates), list(rates.values()), height=0.66, color=colours)
texts = [f"{100 * rate:.3g} %{', weak' * quiet}" for rate, quiet in zip(rates.values(), silent)]
axis.bar_label(bars, texts, padding=4)
axis.set_xlim(0, 1.25 * max(0.04, *rates.values()))
axis.xaxis.set_major_formatter("{x:.0%}")
axis.invert_yaxis()
axis.set(xlabel="spikes, as a share of those it could fire", ylabel="layer, input first")
axis.set_title("Firing rate by layer")
axis.grid(False, axis="y")
words = ", ".join(f"{name} {text}" for name, text in zip(rates, texts))
show(figure, f"Firing rates: {words}")
energy = inside.estimate_energy(network, rules.observe(inside.energy_positions(rules)))
show(inside.energy_bars(energy), energy.verdict)
Markdown(energy.verdict)

# %% [markdown]
# *Below the board: a row is a neuron of the last layer, a column its first spike, its second, and so
# on; what is bright is fired. Then: how often each layer fires; a layer near zero sends
# almost nothing to the next layer. Last: the energy of an evaluation, beside networks of the same
# shape without spikes.*
#
# ## Every curve in TensorBoard
# Tick the box (outside Colab write `True`) and run the cell: a curve for each loss, strength, speed and firing rate, with all
# runs of the folder in one picture.

# %% cellView="form"
# @title TensorBoard
open_tensorboard = False  # @param {type:"boolean"}

from chessnn_colab import show_tensorboard

if open_tensorboard:
    show_tensorboard(run.parent)

# %% [markdown]
# ## The runs on this machine
# To delete one for good, write its name here and run the cell. Empty the field afterwards:
# otherwise the next *Run all* deletes a run with that name again. The run that is chosen above is
# never deleted. A copy on Drive stays there, until you delete it on Drive.

# %% cellView="form"
# @title Runs
delete_this_run = ""  # @param {type:"string"}

unwanted = run.parent / delete_this_run
if delete_this_run and unwanted.exists() and unwanted.samefile(run):
    print(f"{run.name} stays: it is the run chosen above. Choose another one there first")
elif delete_this_run:
    freed = runs.delete_run(unwanted)
    print(f"{delete_this_run} is deleted: {freed / 1e6:,.1f} MB are free again")
print(runs.list_runs(run.parent))

# %% [markdown]
# ## Measure this machine
# Tick the box (outside Colab write `True`) and run the cell: it checks that the device computes
# what a CPU computes, and measures how fast it is, in about nine minutes. The figures are also in the folder `runs/device`,
# in a table (`device.md`). Where minutes were too few, the last lines name the parts that are
# left: write them into the field and run the cell again.

# %% cellView="form"
# @title Measure this machine
measure_this_machine = False  # @param {type:"boolean"}
parts_to_measure = ""  # @param {type:"string"}
minutes_to_measure = 9  # @param {type:"slider", min:1, max:30, step:1}

from chessnn_colab import bench_device

if measure_this_machine:
    bench_device(parts_to_measure, minutes_to_measure, root / "runs" / "device")

# %% [markdown]
# ## What next
# `measure(run, ["engine:stockfish?nodes=100&Skill Level=0"])` plays a UCI engine that is
# installed (chess), and `measure(run, ["runs/other"])` another run. More games make intervals
# narrower: four times as many games, half the width.
#
# From a shell: `python -m chessnn_colab evaluate runs/chess --opponent minimax --games 200 --save
# games` keeps every game as PGN, `... evaluate runs/chess --calibration` compares what it says with
# what happens, `... ladder runs/chess` writes `ratings.json`, `... tactics
# runs/chess` solves the puzzles, `... watch runs/chess` follows a training. `play.ipynb` lets you
# play against the run.
