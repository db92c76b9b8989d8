# %% [markdown]
# # A spiking neural network learns chess by playing itself
#
# ![A board after a game of the network against itself, the spikes of its last layer on that board, and its scores in matches over the positions it has played](../docs/learned.png)
#
# **After twenty minutes on two CPU cores three trainings scored 0.70, 0.70 and 0.81** in 400
# games each (1 is a win, 0.5 a draw) against a program that looks two plies ahead, and won all of
# 200 games against a random mover. It knows the rules, the values of the pieces and which squares
# each side attacks. It has seen no games that people played.
#
# Press **Run all**, then watch it under [Train](#Train): bars move as games finish, and curves
# show what it has learned. At the end there is a network to look into, to measure and to play
# against. Stop with the stop button whenever you like: everything finished is kept, and Run all
# continues from there.
#
# | where | what a run of twenty minutes does |
# |---|---|
# | two CPU cores with AVX-512 BF16 | some 950,000 positions, and the results above (three seeds) |
# | two CPU cores without it | 727,000 positions (version 0.5) |
# | two CPU cores with AMX | 1.79 million positions (version 0.3) |
# | Colab or Kaggle with T4, Apple Silicon, larger GPUs | not measured yet: the code is written for them, and nobody has run it there |

# %% cellView="form" jupyter={"source_hidden": true} tags=["fetch"]
# @title Get the code: from the folder around this notebook, or from its repository
import importlib
import subprocess
import sys
from importlib.util import find_spec

REPOSITORY = ""  # `make repository URL=...` sets it

sys.path[:0] = [".", "..", "chessnn-colab"]
if find_spec("chessnn_colab") is None:
    problem = "No address is set yet: open the notebooks of a checkout, or dist/run_all.ipynb (from `make colab`)."
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
from chessnn_colab import install_requirements

root = install_requirements()

# %% [markdown]
# ## What this machine has
# It takes up to half a minute. Then you should see a table: the device and why it was chosen,
# versions, speeds, the worker plan, and advice if something is not as it could be (no GPU on
# Colab: Runtime > Change runtime type).

# %%
from chessnn_colab import check_device

print("Looking at this machine ...", flush=True)
print(check_device())

# %% [markdown]
# ## Choose
# Nothing needs to be changed. If the run folder has a run already, the training continues it.
# "auto" is the folder with the game's name. The preset is the size of the network; "auto" chooses
# it by the device, its free memory and the minutes, and says why. With Drive ticked, on Colab, the run is copied to
# `MyDrive/chessnn_colab` after every checkpoint. If this machine has lost the run, *Run all*
# brings it back from there and continues it.

# %% tags=["parameters"]
# @title Training { run: "auto" }
game = "chess"  # @param ["chess", "gomoku", "gomoku:9", "tictactoe", "2048"]
minutes = 20  # @param {type:"slider", min:1, max:240, step:1}
preset = "auto"  # @param ["auto", "cpu", "t4", "a100", "h100"]
search = "two-rung"  # @param ["two-rung", "tree", "policy"]
run_folder = "auto"  # @param {type:"string"}
copy_to_drive = False  # @param {type:"boolean"}
match_games = 40  # @param {type:"slider", min:10, max:400, step:10}

# %% [markdown]
# <a name="Train"></a>
# ## Train
# You should see bars that move while games are played. After every iteration the curves are drawn
# again, and below them one game of this iteration plays by itself: pause it, step through it, or
# choose an earlier one. The largest figure is strength: puzzles that the network solves, and in
# longer runs a short match. At the end the panel becomes the story of the whole run, earlier
# sessions included.

# %%
from chessnn_colab import (
    TrainConfig,
    chosen_run,
    drive_copy,
    make_progress,
    scroll_to_cell,
    train,
    what_to_expect,
)

scroll_to_cell()
run = chosen_run(root, run_folder, game)
copy_to = drive_copy(run) if copy_to_drive else None
config = TrainConfig(
    run=str(run), game=game, minutes=minutes, preset=preset, search=search, copy_to=copy_to
)
print(what_to_expect(config))
for report in train(config, make_progress()):
    pass

# %% [markdown]
# ## Games it played against itself
# You should see a board: press Play, click a move, or use the arrow keys. The list has the games
# of earlier iterations. Early games wander. In chess, look for pieces that are taken back, and
# for mates.

# %%
from chessnn_colab import sample_replay

sample_replay(run)

# %% [markdown]
# ## Look inside
# You should see the position that the network looks at. Then come the spikes of its last layer:
# each row is a few neighbouring neurons, and the columns are a neuron's first spike, its second,
# and so on. Then how often each layer fires (a layer near zero is dead), and an estimate of the
# energy per evaluation, compared with networks of the same shape without spikes, and a sentence
# that says which is cheaper.

# %%
from chessnn_colab import look_inside

look_inside(run)

# %% [markdown]
# ## Measure
# Against each of the game's own players (in chess a random mover, a greedy capturer, and minimax,
# which looks two plies ahead): the network as it was before training, and as it is. It takes a
# quarter of the training time, and three minutes at most.
#
# You should see a bar for each match: games won, drawn and lost. The dot on it is the score, the
# line its 95 % interval: the fewer games, the longer the line; `print(*results)` says more. In
# 2048 every player plays on its own, and mean scores are compared as text. Each game is played to
# its end, and where time is short there are fewer of them.

# %%
from chessnn_colab import make_game, measure, show_matches

rules = make_game(game)
results = measure(run, games=match_games)
if rules.num_players == 2:
    show_matches(results)

# %% [markdown]
# ## Play against it
# You should see a board. You move first: click a piece, then where it goes, or type a move (e2e4
# or Nf3); in Gomoku click a free point. A wrong move is refused and nothing is lost. A new
# session needs no training to play: run the two cells at the top, the one under *Choose*, and
# this one. With Drive ticked, a run that this machine has lost is brought back from there.

# %%
from chessnn_colab import bring_back, chosen_run, make_game, play_widget

run, rules = chosen_run(root, run_folder, game), make_game(game)
bring_back(run, copy_to_drive)
play_widget(run) if rules.num_players == 2 else print(
    f"{game} is for one player: there is nobody to play against."
)

# %% [markdown]
# ## A card to keep
# You should see one picture of the result: strength, spikes, energy and the end of a game. It is
# also a file in the run folder, and with Drive ticked in the folder there.

# %%
import shutil

from chessnn_colab import ChessnnError, drive_copy, result_card, show

try:
    show(
        result_card(run, run / "card.png"),
        "The result on one card: strength, firing, energy, and the end of a game",
    )
    if copy_to_drive:
        shutil.copy(run / "card.png", f"{drive_copy(run)}/card.png")
except (ChessnnError, OSError) as error:  # stopped before it had a result, or Drive is gone
    print(error)

# %% [markdown]
# ## The whole run again
# You should see the story of the run once more, drawn from its folder alone. So a new session
# needs no training to show it: run the two cells at the top, the one under *Choose*, and this
# one.

# %%
from chessnn_colab import bring_back, chosen_run, run_story

run = chosen_run(root, run_folder, game)
bring_back(run, copy_to_drive)
run_story(run)

# %% [markdown]
# ## Every curve in TensorBoard
# Tick the box and run the cell, on Colab or in Jupyter on your own machine. You should see
# TensorBoard below it: a curve for each loss, strength, speed and firing rate, with all runs of
# the folder in one picture.

# %%
# @title TensorBoard
open_tensorboard = False  # @param {type:"boolean"}

from chessnn_colab import show_tensorboard

if open_tensorboard:
    show_tensorboard(run.parent)

# %% [markdown]
# ## The runs on this machine
# You should see a line for each run, with its size. To delete one for good, write its name here
# and run the cell. Empty the field afterwards. Otherwise the next *Run all* deletes a run with
# that name again. The run that is chosen above is never deleted; choose another one there first.
# A copy on Drive is not deleted: it comes back when you train a run of that name with Drive
# ticked. Delete it on Drive.

# %%
# @title Runs
delete_this_run = ""  # @param {type:"string"}

from chessnn_colab import delete_run, list_runs

if delete_this_run and run.parent / delete_this_run == run:
    print(
        f"{run.name} stays: it is the run chosen above. Choose another one there, run that cell and this one"
    )
elif delete_this_run:
    freed = delete_run(run.parent / delete_this_run)
    print(f"{delete_this_run} is deleted: {freed / 1e6:,.1f} MB are free again")
print(list_runs(run.parent))

# %% [markdown]
# ## Measure this machine
# Open the cell, tick the box and run it. It checks that the device computes what a CPU computes, and
# measures how fast it is, in about nine minutes. You should see a line for each figure. They are
# also in the folder `runs/device`, in a table (`device.md`). A new session needs no training for
# it: run the two cells at the top, and this one. Where minutes were too few, the last lines name
# the parts that are left: write them into the field and run the cell again.

# %% cellView="form" jupyter={"source_hidden": true}
# @title Measure this machine
measure_this_machine = False  # @param {type:"boolean"}
parts_to_measure = ""  # @param {type:"string"}
minutes_to_measure = 9  # @param {type:"slider", min:1, max:30, step:1}

from chessnn_colab import bench_device

if measure_this_machine:
    bench_device(parts_to_measure, minutes_to_measure, root / "runs" / "device")

# %% [markdown]
# ## What next
# Run the training cell again: it continues where it stopped, with its games and its optimizer.
# `evaluate.ipynb` measures any run in more ways. From a shell: `python -m chessnn_colab train
# --run runs/chess --minutes 60`, `... evaluate runs/chess --opponent minimax
# --games 200`, `... ladder runs/chess` to rate its snapshots, `... uci runs/chess` for a chess
# program. `by_hand.ipynb` has the same loop in some hundred lines to rearrange. When something
# goes wrong, `docs/troubleshooting.md` has the messages and what to do.
