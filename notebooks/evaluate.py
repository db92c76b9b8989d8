# %% [markdown]
# # How strong has it become?
#
# This notebook measures a run of `train.ipynb`: matches with intervals, a ladder of its
# snapshots, puzzles, and strength as games and minutes of training go by. Choose a run and press
# **Run all**. If there is no run in its folder yet, the notebook first trains a small one. Every
# long cell says how far it is. The stop button ends a cell, and the finished games still count. A
# ladder needs at least one finished game of every player.

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
# ## Choose
# The run folder is the one that `train.ipynb` wrote to; "auto" is the folder of the game's name.
# A run in another folder remembers its own game. The limit in minutes holds for the matches, and
# once more for the ladder. "two-rung" is the quickest way to look ahead in many games at once;
# "policy" does not look ahead and shows what the network knows by itself.

# %% tags=["parameters"]
# @title What to measure { run: "auto" }
game = "chess"  # @param ["chess", "gomoku", "gomoku:9", "tictactoe", "2048"]
run_folder = "auto"  # @param {type:"string"}
train_minutes_if_none = 2  # @param {type:"slider", min:0.5, max:60, step:0.5}
games = 40  # @param {type:"slider", min:2, max:400, step:2}
search = "two-rung"  # @param ["two-rung", "tree", "policy"]
minutes_a_cell = 3  # @param {type:"slider", min:0.05, max:60, step:0.05}
ladder_snapshots = 5  # @param {type:"slider", min:2, max:20, step:1}
ladder_games = 20  # @param {type:"slider", min:2, max:200, step:2}

# %% [markdown]
# ## The run
# You should see its story: what was trained, how strong it was while it trained, its curves.
# Without a run in the folder you see a short training first.

# %%
import os

from IPython.display import display

from chessnn_colab import (
    TrainConfig,
    chosen_run,
    make_game,
    make_progress,
    run_game,
    run_story,
    scroll_to_cell,
    train,
)

os.chdir(root)  # names of runs begin at the folder that has them
run = str(chosen_run(root, run_folder, game))
if not os.path.exists(f"{run}/metrics.jsonl"):
    scroll_to_cell()
    config = TrainConfig(run=run, game=game, minutes=train_minutes_if_none)
    for report in train(config, make_progress()):
        pass
game = run_game(run)
for_two = make_game(game).num_players == 2
display(run_story(run))

# %% [markdown]
# ## Before and after
# The untrained network and the last one play each of the game's fixed players: in chess a random
# mover, a player that takes the most valuable piece, and minimax, which looks two plies ahead.
# All matches are played side by side.
#
# You should see a bar for each match. Its colours are games won, drawn and lost. The dot is the
# score, a draw counting half, and the line across it is the interval that holds the true score 95
# times out of 100. Few games make a wide line. If two lines overlap widely, the games do not say
# which network is stronger.
#
# In 2048 every player plays on its own. You should see their mean scores, and no bars. Each game
# is played to its end, and where time is short there are fewer of them.

# %%
from chessnn_colab import measure, play_search, show, show_matches

looks_ahead = play_search(search)
results = measure(run, games=games, search=looks_ahead, seconds=60 * minutes_a_cell)
if for_two:
    show_matches(results)

# %% [markdown]
# ## How its games ended
# You should see a line for each kind of ending against the last opponent. Early in training most
# games against minimax are lost by checkmate. Later the share of wins by checkmate grows, and
# some games are drawn because a position comes back three times.

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
# Some snapshots of the run and the fixed players, rated together: every snapshot plays every
# fixed player and its neighbours. The random mover is at 0. A player 200 points above another
# scores about 0.76 against it, 400 points about 0.91. The number behind ± is half the width of
# the 95 % interval.
#
# You should see the table first, then the ratings drawn against games and minutes, with the fixed
# players as dashed lines. Ratings rise steeply at first. When the last points lie within each
# other's intervals, more training did not help, or more games are needed to see it.

# %%
from chessnn_colab import puzzle_curves, rate_run, strength_curves, watching

if for_two:
    limits = {"games": ladder_games, "snapshots": ladder_snapshots, "seconds": 60 * minutes_a_cell}
    with watching() as watch:
        ladder = rate_run(run, search=looks_ahead, watch=watch, **limits)
    print(ladder)
    show(
        strength_curves(ladder, run),
        "The ratings above, against games of self-play and minutes of training",
    )
else:
    print(f"{game} is for one player: there is no ladder, because nobody plays against anybody.")

# %% [markdown]
# ## Puzzles
# For chess and Gomoku, and the snapshots of the ladder. In chess: a hundred positions each with a mate in one, a mate in two, and
# a piece that hangs, with the network's first move checked against all solutions. Puzzles tell
# snapshots apart sooner than matches do, because their result does not depend on chance.
#
# You should see a line for each snapshot and rising curves. With a search that looks ahead, every
# mate in one and nearly every mate in two is found from the beginning, because the rules are
# looked at; with "policy" they are learned.

# %%
from chessnn_colab import ChessnnError, solved_over_run

try:
    snapshots = list(ladder.snapshots.values()) if for_two else None
    with watching() as watch:
        shares = solved_over_run(run, looks_ahead, snapshots, watch=watch)
    for iteration, solved in shares.items():
        kinds = ", ".join(f"{kind} {share:.0%}" for kind, share in solved.items())
        print(f"iteration {iteration:4}: {kinds}")
    show(
        puzzle_curves(shares, run),
        "The shares above, against games of self-play and minutes of training",
    )
except ChessnnError as error:  # a game without puzzles
    print(error)

# %% [markdown]
# ## What next
# `measure(run, ["engine:stockfish?nodes=100&Skill Level=0"])` plays a UCI engine that is
# installed (chess), and `measure(run, ["runs/other"])` another run. More games make intervals
# narrower: four times as many games, half the width.
#
# From a shell: `python -m chessnn_colab evaluate runs/chess --opponent minimax --games 200 --save
# games` keeps every game as PGN, `... ladder runs/chess` writes `ratings.json`, `... tactics
# runs/chess` solves the puzzles, `... watch runs/chess` follows a training. `play.ipynb` lets you
# play against the run.
