# %% [markdown]
# # A spiking neural network learns chess by playing itself
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/chessnn-colab/blob/main/notebooks/train.ipynb)
#
# Press **Run all**. The device is found, workers play games in lockstep, bars move, curves fall. At the end there is a
# network to look into, to measure and to play against. Stop with the stop button whenever you like: everything finished
# is kept, and running the training cell again goes on from there.

# %% [markdown]
# ## Install
# Quiet, and it leaves the torch that is here alone. You should see one line: where the code is.

# %%
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = "https://github.com/OWNER/chessnn-colab"

places = [Path.cwd(), *Path.cwd().parents, Path.cwd() / "chessnn-colab"]
root = next((place for place in places if (place / "chessnn_colab" / "__init__.py").is_file()), None)
if root is None:
    if "/OWNER/" in REPOSITORY:
        raise RuntimeError(
            "There is no checkout of the project around this notebook, and REPOSITORY above still says "
            "OWNER: put the repository's address there, or run `make repository URL=...` in a checkout."
        )
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", REPOSITORY, "chessnn-colab"], check=True)
    root = Path.cwd() / "chessnn-colab"
sys.path.insert(0, str(root))

needed = {line.split("#")[0].strip() for line in (root / "requirements.txt").read_text().splitlines()} - {""}
missing = [line for line in sorted(needed) if importlib.util.find_spec(line.split(">")[0]) is None]
if missing:
    with tempfile.NamedTemporaryFile("w", suffix=".txt", delete=False) as pins:
        if importlib.util.find_spec("torch"):
            from importlib.metadata import version

            pins.write(f"torch=={version('torch')}\n")
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--constraint", pins.name, *missing], check=True)
print(f"chessnn_colab from {root.name}/", "| installed: " + ", ".join(missing) if missing else "")

# %% [markdown]
# ## What this machine has
# You should see a table: the device and why it was chosen, versions, speeds, the worker plan, and advice if something is
# not as it could be (no GPU on Colab: Runtime > Change runtime type).

# %%
from chessnn_colab.check import check_device

print(check_device())

# %% [markdown]
# ## Choose
# Twenty minutes on two CPU cores made a network that wins every game against a random mover and nearly every one against a
# greedy capturer; the README says what was measured where.

# %% tags=["parameters"]
# @title Training { run: "auto" }
minutes = 20  # @param {type:"number"}
preset = "auto"  # @param ["auto", "cpu", "t4", "a100", "h100"]
search = "two-rung"  # @param ["two-rung", "tree", "policy"]
run_folder = "runs/chess"  # @param {type:"string"}
copy_to_drive = False  # @param {type:"boolean"}
match_games = 40  # @param {type:"integer"}
match_evaluations = 48  # @param {type:"integer"}

# %% [markdown]
# ## Train
# A bar for each worker and one for all; after every iteration the curves and a game from it are drawn anew. The last line
# says what happened. Losses fall first; wins come later. If you ticked Drive, the run is copied to `MyDrive/chessnn_colab` after
# every checkpoint, and brought back from there when this machine has lost it; training itself writes to the machine's own
# disk, because Drive is slow and its connection drops.

# %%
from chessnn_colab.config import TrainConfig
from chessnn_colab.training import train
from chessnn_colab.views.progress import make_progress

run = Path(run_folder) if Path(run_folder).is_absolute() else root / run_folder
copy_to = None
if copy_to_drive:
    from google.colab import drive

    drive.mount("/content/drive")
    kept = Path("/content/drive/MyDrive/chessnn_colab")
    kept.mkdir(exist_ok=True)
    copy_to = str(kept / run.name)
config = TrainConfig(run=str(run), minutes=minutes, preset=preset, search=search, copy_to=copy_to)
for report in train(config, make_progress()):
    pass

# %% [markdown]
# ## How it went
# The curves of the whole run, earlier sessions included. Policy loss should fall throughout; the value loss may rise when
# games become decisive, since draws are easier to foretell.

# %%
# %matplotlib inline
from IPython.display import display

from chessnn_colab.report import Report
from chessnn_colab.runs.folder import RunFolder
from chessnn_colab.views import plots

reports = [Report.from_dict(values) for values in RunFolder.open(run).read_reports()]
display(plots.learning_curves(reports)) if reports else print(
    "No iteration has finished yet: run the training cell again."
)

# %% [markdown]
# ## A game from the last iteration
# Press Play, click a move, or use the arrow keys; the list has the games of earlier iterations. Early games wander; look for
# captures that are answered, and for mates.

# %%
from chessnn_colab.views.replay import sample_replay

sample_replay(reports)

# %% [markdown]
# ## Look inside
# The network looks at one position. First the spikes of its last layer, a dot for each neuron that fires at each of its
# time steps; then how often each layer fires (a layer near zero is dead); then an estimate of the arithmetic's energy
# beside a ReLU network of the same shape. It leaves memory traffic out, which costs more on real chips.

# %%
from chessnn_colab import spikes
from chessnn_colab.arena.evaluate import load_network
from chessnn_colab.games.chess.notation import state_from_fens
from chessnn_colab.games.chess.rules import Chess

network, iteration = load_network(run, device="cpu")
game = Chess()
fen = "r1bqkbnr/pppp1ppp/2n5/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 4 4"
planes = game.observe(state_from_fens([fen], game))
layers = spikes.probe(network, planes)
display(plots.spike_raster(layers["neurons"][:, 0].flatten(1).numpy()))
display(plots.firing_rates({name: float(layer.mean()) for name, layer in layers.items()}))
display(plots.energy_bars(spikes.estimate_energy(network, planes).to_dict()))

# %% [markdown]
# ## Measure
# Against a random mover, a greedy capturer and minimax, which looks two plies ahead: each game to its end by the rules, from
# a book of openings, both colours of each, and first the network as it was before training. A bar is a score; the line
# across it its 95 % interval: few games, wide line.

# %%
from chessnn_colab.arena.evaluate import evaluate_run
from chessnn_colab.arena.players import play_search

results = []
match_search = play_search(num_simulations=match_evaluations - 1)
for opponent in ("random", "greedy", "minimax"):
    for snapshot in (0, None):
        results.append(evaluate_run(run, opponent, match_games, match_search, snapshot))
        print(results[-1])
display(plots.match_bar(results[1::2]))

# %% [markdown]
# ## Play against it
# You are White: click a piece, then where it goes, or type a move (e2e4 or Nf3). An illegal one is refused and nothing is lost.

# %%
from chessnn_colab.arena.chess.choose_move import choose_move
from chessnn_colab.views.play import play_widget

play_widget(choose_move(network))

# %% [markdown]
# ## What next
# Run the training cell again: it goes on where it stopped, games, optimizer and all. `tensorboard --logdir runs` shows
# every curve. From a shell: `python -m chessnn_colab train --run runs/chess --minutes 60`, `... evaluate runs/chess
# --opponent minimax --games 200`, `... ladder runs/chess` to rate its snapshots, `... uci runs/chess` for a chess program.
# The code reads from the top in an afternoon; the README has the map.
