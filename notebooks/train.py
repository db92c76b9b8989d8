# %% [markdown]
# # A spiking neural network learns chess by playing itself
#
# ![A board after a game of the network against itself, the spikes of its last layer on that board, and its scores in matches over the positions it has played](../docs/learned.png)
#
# Press **Run all**: without seeing one game played by people, this computer teaches itself chess in
# twenty minutes, you watch it get better, and then you play against it. The stop button keeps everything;
# *Run all* continues from there.

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
# - `preset`: the size of the network, from "cpu", the smallest, to "h100". "auto" chooses it by the
#   device and the minutes.
# - `search`: how training looks ahead. "two-rung" looks at eight moves, and at the best reply to
#   four of them; "tree" looks further, and takes longer.
# - `run_folder`: if it has a run, that run is continued with the network that it began with. For
#   another size write a new name, such as `runs/large`.
# - `copy_to_drive`, on Colab: keeps a copy of the run in `MyDrive/chessnn_colab`. Without it the
#   run is lost with this machine. On Kaggle use *Save Version* (`docs/troubleshooting.md`).
# - `match_games`: the games of each match under *Measure*.

# %% cellView="form" tags=["parameters"]
# @title Training { run: "auto" }
game = "chess"  # @param ["chess", "gomoku", "gomoku:9", "tictactoe", "2048"]
minutes = 20  # @param {type:"slider", min:1, max:240, step:1}
preset = "auto"  # @param ["auto", "cpu", "t4", "a100", "h100"]
search = "two-rung"  # @param ["two-rung", "tree"]
run_folder = "auto"  # @param {type:"string"}
copy_to_drive = False  # @param {type:"boolean"}
match_games = 40  # @param {type:"slider", min:10, max:400, step:10}

# %% cellView="form" jupyter={"source_hidden": true}
# @title This machine: up to half a minute, then a line that unfolds
from chessnn_colab import check_device, unfold

report = check_device(game=game, say=print)
unfold(report.line, report)

# %% [markdown]
# <a name="Train"></a>
# ## Train
# Bars move as positions are played. After every iteration the curves grow, one of its games plays by itself
# (pause it, or choose an earlier one). In chess you also see, below it, what the network now thinks of
# one position, always the same. After the end a picture stays; `evaluate.ipynb` plays the games.

# %%
from IPython.display import display

from chessnn_colab import TrainConfig, make_progress, runs, train, unfold, what_to_expect

run = runs.chosen_run(root, run_folder, game)
copy_to = runs.drive_copy(run) if copy_to_drive else None
runs.bring_back(run, copy_to_drive)
config = TrainConfig(
    run=str(run), game=game, minutes=minutes, preset=preset, search=search, copy_to=copy_to
)
display(unfold("What to expect of these choices", what_to_expect(config)))
for report in train(config, make_progress()):
    pass

# %% [markdown]
# ## Play against it
# Click a piece, then where it goes, or type a move (e2e4, Nf3); in Gomoku click a free point. The
# board answers once the cells below have ended. On another day you need not train again, if the
# run is still on this machine or on Drive: run the cells up to *Choose*, then this one.

# %%
from chessnn_colab import make_game, play_widget, runs

run = runs.chosen_run(root, run_folder, game)
runs.bring_back(run, copy_to_drive)
game = runs.run_game(run)
if make_game(game).num_players == 2:
    display(play_widget(run))
else:
    print(f"{game} is for one player: there is nobody to play against.")

# %% [markdown]
# ## Measure
# The network before training and after it, each against the game's own players: in chess `random`,
# `greedy` (takes the most valuable piece) and `minimax` (looks at its own move and at the reply).
# Three minutes at most. For each move the network looks at 48 positions (13 if it has trained
# for less than four minutes), with the search "two-rung". The README's tables were made with the
# search "tree", so their scores differ.

# %%
from chessnn_colab import measure, show_matches

show_matches(measure(run, games=match_games))

# %% [markdown]
# *Each bar is a match. The dot is the score, a draw counting half; the true score is within its
# line 95 times out of 100. In 2048 there are mean scores as text.*
#
# ## A card to keep
# Also a file in the run folder, and on Drive where that is ticked.

# %%
import shutil

from chessnn_colab import ChessnnError, result_card, show

try:
    show(result_card(run, run / "card.png"), "The result: strength, firing, energy, a game's end")
    if copy_to_drive:
        shutil.copy(run / "card.png", f"{runs.drive_copy(run)}/card.png")
except (ChessnnError, OSError) as error:  # stopped before it had a result, or Drive is gone
    print(error)

# %% [markdown]
# ## A page for your friends
# One HTML file: download it and send it. Colab and Kaggle show files at the side (a folder sign, or
# *Output*): open `runs`, the run's folder, and choose *Download* beside `play.html`; `card.png` is
# there too. Whoever opens the page plays against your network in a browser, without internet.

# %%
from chessnn_colab import ChessnnError, share_page

page = run / "play.html"  # deleted with the run
try:
    page.unlink(missing_ok=True)  # of an earlier session
    print(share_page(run, page))
except (ChessnnError, OSError) as error:  # 2048 is for one player; or nothing can be written here
    print(error)

# %% [markdown]
# ## What next
# Run the training cell again: it continues where it stopped. The rest is in a checkout of the
# repository: `evaluate.ipynb` has the story again, looks inside, rates, and lists the runs;
# `play.ipynb` plays; `inside_the_spikes.ipynb` explains; `by_hand.ipynb` has the training in short
# cells that you can change; `python -m chessnn_colab --help` in a shell. If something goes wrong:
# `docs/troubleshooting.md`.
