# %% [markdown]
# # Inside the spikes
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/chessnn-colab/blob/main/notebooks/inside_the_spikes.ipynb)
#
# A spiking network learned chess by playing itself. Here you look inside it: from one neuron to a whole position, from the
# untrained network to the trained one. Press **Run all**. It takes a minute and trains nothing, because four networks of one
# training run come with the package. Every section has one idea. You need not have met a spiking network before.

# %% cellView="form" jupyter={"source_hidden": true} tags=["fetch"]
# @title Get the code: from the folder around this notebook, or from its repository { display-mode: "form" }
import importlib
import subprocess
import sys
from importlib.util import find_spec

REPOSITORY = "https://github.com/OWNER/chessnn-colab"

sys.path[:0] = [".", "..", "chessnn-colab"]
if find_spec("chessnn_colab") is None:
    problem = "No address is set yet: open the notebooks of a checkout, or dist/run_all.ipynb (from `make colab`)."
    if "/OWNER/" not in REPOSITORY:
        clone = ["git", "clone", "--quiet", "--depth", "1", REPOSITORY, "chessnn-colab"]
        done = subprocess.run(clone, check=False, stderr=subprocess.PIPE, text=True)
        problem = done.stderr if done.returncode else ""
    if problem:
        raise type("NoCode", (Exception,), {"_render_traceback_": lambda self: [str(self)]})(problem)
    importlib.invalidate_caches()

# %% cellView="form" jupyter={"source_hidden": true}
# @title Install what is missing (torch stays as it is) { display-mode: "form" }
from chessnn_colab.install import install

root = install()

# %% [markdown]
# ## Choose
# The position to look at, as FEN. `own_run` may be a run folder of yours: you then see its own networks, from the untrained
# one to the last. Or it may be a file that somebody shared: its network then takes the place of the last of the four.
# `probe_positions` are played for the section on what each layer knows.

# %% tags=["parameters"]
# @title Look at { run: "auto" }
fen = "r1bqkb1r/pppp1ppp/2n2n2/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 4 4"  # @param {type:"string"}
own_run = ""  # @param {type:"string"}
probe_positions = 3000  # @param {type:"slider", min:500, max:20000, step:500}

# %% [markdown]
# ## One neuron
# A neuron has one number, its **membrane**. Current that arrives adds to it. From step to step a part of it **leaks** away.
# When it reaches the **threshold**, the neuron fires: one **spike** goes to every neuron that listens, and one threshold is
# taken off the membrane (the **reset**).
#
# You should see a small current that leaks away as fast as it comes and never makes a spike; a larger one that makes a spike
# every few steps; a push downwards that has to be made good first. Move the sliders: without leak even the small current fires
# in the end.

# %%
from chessnn_colab.views.inside.neuron import counting_neuron, neuron_sliders

neuron_sliders()

# %% [markdown]
# ## A neuron that counts
# Four steps of one spike each take four times the work of one step. So this network uses **I-LIF** neurons: one step, in which
# a neuron may fire several spikes at once: up to four in the picture below, up to eight in the networks that follow. It fires
# as often as its current has thresholds in it, rounded.
#
# You should see two staircases. The left neuron (LIF) is full at a current of one per step. The right one (I-LIF) climbs along
# the dashed line, the ReLU of ordinary networks: it is a ReLU cut into whole spikes. Whether that is still spiking is a fair
# question. It is, in one sense that was tested: `tools/event_driven.py` runs the same weights spike by spike, one spike per
# neuron and step, with additions only, and in float64 every neuron fires as often. `docs/spiking.md` says what it costs: no layer may
# fire before the layer below has finished.

# %%
counting_neuron()

# %% [markdown]
# ## A position becomes planes
# The network does not see pieces. It sees 27 boards of zeros and ones, always from the side of the player to move.
#
# You should see one small board for each: where the own pawns are, which squares the opponent attacks, who may castle.

# %%
import os

from chessnn_colab.views.inside import maps
from chessnn_colab.views.inside.growth import growth, networks_to_show
from chessnn_colab.views.inside.position import position

os.chdir(root)  # names of runs begin at the folder that has them
networks, played = networks_to_show(own_run)
untrained, trained = next(iter(networks.values())), list(networks.values())[-1]
seen = position(fen)
maps.input_planes(seen)

# %% [markdown]
# ## Planes become spikes
# A convolution looks at each square and its neighbours and makes of them 32 numbers per square, the **currents** of 32
# channels. The neurons turn each into spikes.
#
# You should see one channel: its current on the left, its spikes on the right. Negative currents fire nothing.

# %%
maps.first_spikes(trained, seen)

# %% [markdown]
# ## Where each layer fires
# In the networks that come with the package the spikes go through three blocks of two layers of 32 channels; a larger one has more.
# Each square of a map is as bright as its neurons fire.
#
# You should see every layer on one scale, then the channels of one of them. Choose another from the list. Some channels
# draw pieces, some draw empty squares or an edge, some fire everywhere.

# %%
maps.firing_view(trained, seen)

# %% [markdown]
# ## How it learned
# One position and several moments of one run. Below each board stands how much of what it could fire the network fires here, and
# how many of its layers are silent. Look at these two figures first.
#
# Move the slider. You should see an untrained network that is almost silent: of the four shipped ones it fires less than 1 %, and
# three of its seven layers fire nothing. These are the layers in the middle of each block, whose currents stay too small until
# learning raises them; all moves are nearly as likely as each other. Then more and more fires and no layer stays silent, and the
# bar of win, draw and loss (for the player to move) changes. Arrows are what the network thinks by itself, without looking ahead. In
# the position given they turn to captures first, and later to saving the queen from the knight on f6. It misses that Qxf7 mates: to
# see that, a network looks ahead, as it does when it plays.

# %%
growth(networks, seen, played)

# %% [markdown]
# ## What each layer knows
# A **probe** is a straight line through a layer's spikes that is fitted to tell one fact: is the mover in check, does one of
# the mover's pieces hang, who has more material. If a straight line can tell, the layer knows.
#
# You should see the trained network far above the untrained one. Being in check is one of the input planes and material can be
# counted there: both have only to be kept. A hanging piece is in no plane; layers that do better than `input` worked it out.

# %%
from chessnn_colab.views.inside import probes

positions = probes.sample_positions(probe_positions)
probes.knowledge_picture({"untrained": untrained, "trained": trained}, positions)

# %% [markdown]
# ## Silence a part
# What is a layer good for? Silence it and ask again. Choose a layer, and a channel of it or 0 for all.
#
# You should see other arrows on the right board. Below, every channel is silenced alone: the brighter its square, the more of
# the probability goes to other moves. Early layers matter through most of their channels, because all later layers read them;
# in the last layers many channels make no difference to this move.

# %%
from IPython.display import display

from chessnn_colab.views.inside.silence import channel_importance, silence_view

display(silence_view(trained, seen))
channel_importance(trained, seen)

# %% [markdown]
# ## Does it save energy?
# Often said of spiking networks, so here are the figures. They are estimates for one evaluation in 45 nm chips (Horowitz 2014),
# beside twins of the same shape without spikes. A twin need not be wasteful: it can hold a spike count in four bits, and it can
# skip zeros too (Yan et al., arXiv 2409.08290).
#
# You should see six bars for arithmetic and six with memory traffic, where every operand is fetched from a small memory, and the
# verdict below them.

# %%
from chessnn_colab import spikes
from chessnn_colab.views.inside.energy import energy_picture

energy_picture(spikes.estimate_energy(trained, probes.sample_positions(500)))

# %% [markdown]
# ## What next
# `train.ipynb` trains a network of your own: put its folder into `own_run` above and run all again. `python -m chessnn_colab
# share RUN FILE` makes one file of it for others. `docs/spiking.md` has the figures, the sources and the commands.
