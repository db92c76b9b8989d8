# %% [markdown]
# # Play against a network that taught itself
#
# Press **Run all**, then click a piece and where it goes. Below the board two networks, or a
# network and a chess engine, play each other while you watch. Nothing has to be trained first: a
# network comes with the package.

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
# - `network`: the folder of a run such as `runs/chess`, or `runs/chess@11` for its iteration 11
#   (`runs/chess/snapshots` has those that were kept, one about every two minutes), or a file made
#   by `share`. Left empty, it is the newest trained run of chess here, or else the strongest
#   network that comes with the package.
# - `you_play`: your side (in tic-tac-toe x or o). If it is empty, you move first.
# - `evaluations`: how many positions the network looks at before each of its moves. With 1 it is
#   weakest and quickest.
# - `opponent`: who plays against the network in the section *Watch*: another run, `random`, and in
#   chess also `greedy`, `minimax` or `engine:/path/to/stockfish`.
# - `plies_to_watch`: *Watch* stops after this many moves, both sides counted.

# %% tags=["parameters"]
# @title Who plays { run: "auto" }
network = ""  # @param {type:"string"}
you_play = ""  # @param ["", "white", "black", "x", "o"]
evaluations = 48  # @param {type:"slider", min:1, max:400, step:1}
opponent = "random"  # @param {type:"string"}
plies_to_watch = 300  # @param {type:"slider", min:10, max:600, step:10}

# %% [markdown]
# ## Play
# Two clicks make a move: dots and rings show where a piece can go. In Gomoku and tic-tac-toe it is
# one click. You can also type moves (`e4`, `Nf3`, `O-O`). *What it thinks* draws as arrows the moves
# that the network finds likeliest for the side to move, as a bar its opinion of who wins, and that
# opinion over the game. Below that it shows where the search for its last move looked: the moves
# that it tried with the replies it foresaw, and how often it looked at each (`visits`). Beside each
# move stand the points that the network expects (a draw is half), or a note that the rules prove the
# move won or lost. The box beside the board is the game as text: copy it to
# keep it, or paste a position (FEN) or a game (PGN) and press Load.
# This board does not answer while the cell below plays a game.

# %%
import os

from chessnn_colab import play_widget, runs, scroll_to_cell

os.chdir(root)  # names of runs begin at the folder that has them
found = runs.find_network(network, root / "runs")
print(found.sentence)
scroll_to_cell()
play_widget(found.run, human=you_play, evaluations=evaluations)

# %% [markdown]
# ## Watch
# Each move as it is played, and then the game to play back: press Play, click a move, or use the
# arrow keys. The stop button ends the game and keeps it. The same players with the same settings
# play the same game again; an engine may not.

# %%
from chessnn_colab import watch_game

watch_game(found.run, opponent, evaluations=evaluations, plies=plies_to_watch)

# %% [markdown]
# ## Another game
# The same board plays every game with squares. Here you play tic-tac-toe against a random mover. To
# play against a run that you trained with `game="tictactoe"`, write its folder instead of `random`.

# %%
from chessnn_colab import play_widget

play_widget("random", game="tictactoe")

# %% [markdown]
# ## What next
# `train.ipynb` trains a network of your own: write its folder, such as `runs/chess`, into `network`
# above and press *Run all* again.
