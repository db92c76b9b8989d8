# %% [markdown]
# # The training loop by hand
#
# `train.ipynb` calls `train()`. This notebook does by hand what `train()` does: it finds a
# device, starts workers, receives games as numpy arrays, keeps them in a replay, updates the
# network, saves a checkpoint and plays a match. The cells are short, so that you can rearrange
# them. Each prints and draws what it made. `train()` also has a time budget, forgets its first
# games, continues a stopped run and writes reports.

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
# Another game is another word here, and nothing else changes.

# %% tags=["parameters"]
# @title Choices
game_name = "chess"  # @param ["chess", "gomoku", "gomoku:9", "tictactoe", "2048"]
iterations = 3  # @param {type:"slider", min:1, max:50, step:1}
positions_per_iteration = 6400  # @param {type:"slider", min:800, max:102400, step:800}
match_games = 20  # @param {type:"slider", min:2, max:200, step:2}

# %% [markdown]
# ## A device, and the rules on it
# A game is batched tensors: one state holds many positions, and each method works on all of them.

# %%
import matplotlib.pyplot as plt
import numpy as np
import torch

from chessnn_colab import TrainConfig, apply_style, detect_device, inventory, make_game, show

apply_style()  # colours for light and dark pages
machine = inventory()
choice = detect_device("auto", machine)
config = TrainConfig(
    run=str(root / "runs" / f"{game_name.replace(':', '-')}-by-hand"), game=game_name
)
plan = config.worker_plan(choice.device, machine)
config = config.resolve(choice.device, machine, plan, say=print)
game = make_game(game_name, config.max_plies, choice.device)
start = game.init(1)
print(f"{choice.device}: {'; '.join(choice.reasons)}", *game.to_text(start), sep="\n")

# %% [markdown]
# ## A network
# It sees planes: boards of numbers. It answers with a number for each action, a *logit*: the higher
# it is, the likelier the action. Three more are for win, draw and loss (in 2048 one for each range
# of scores).

# %%
from chessnn_colab import build_network

network = build_network(config.network_config(game), choice.device, seed=config.seed)
with torch.no_grad():
    logits = network(game.observe(start)).prior_logits[0]
legal = game.legal_action_mask(start)[0]
untrained = torch.softmax(logits[legal], 0).cpu()
print(
    network.config,
    f"{sum(weights.numel() for weights in network.parameters()):,} weights",
    sep="\n",
)
plt.bar(range(len(untrained)), untrained)
plt.gca().set(xlabel="legal action at the start", ylabel="probability")
version = 0  # of its weights
positions = 0  # played so far
show(
    plt.gcf(), f"Probabilities of the legal actions: {untrained.min():.1%} to {untrained.max():.1%}"
)

# %% [markdown]
# *Untrained, it prefers nothing: a bar for each legal action, all about equally high.*
#
# ## A pool of workers
# One process for each GPU, or for each core of a CPU, plays its share of the positions. Weights go
# to it as numpy arrays. When a worker has played its share, some games are unfinished ("in
# flight"). The next call continues them.

# %%
from pathlib import Path

from chessnn_colab import concatenate_worker_games, share_positions, to_arrays

logs = Path(config.run) / "logs"
logs.mkdir(parents=True, exist_ok=True)
if before := globals().get("pool"):  # this cell again: the workers of before end
    before.close()
pool = config.open_pool(network.config, plan, logs, print)

pool.set_weights(positions, to_arrays(network))
told = "worker {}: {} games, {:,} plies".format
in_flight, chunks, workers = [], [], len(plan.devices)
while not any(chunks):  # until a game has ended
    shares = share_positions(positions_per_iteration, in_flight, workers)
    chunks = pool.play(shares, version, on_update=lambda *counts: print(told(*counts), end="\r"))
    in_flight = pool.call.in_flight
records = concatenate_worker_games(chunks, game)
positions += records.num_positions
size = sum(array.nbytes for array in records.to_arrays().values()) / records.num_positions
print(f"\n{records.num_games} games, {records.num_positions:,} positions, {size:.0f} bytes each")
plt.hist(records.game_lengths, bins=30)
plt.gca().set(xlabel="plies", ylabel="games")
show(
    plt.gcf(),
    f"The lengths of the games: {records.game_lengths.min()} to {records.game_lengths.max()} plies",
)

# %% [markdown]
# ## Games are numpy arrays
# One row of `positions` is a packed position; `policy_actions` and `policy_weights` are what the
# search preferred there, and what the network is to learn.

# %%
for name, array in records.to_arrays().items():
    print(f"{name:15s} {array.dtype!s:8s} {list(array.shape)}")
middle = records.num_positions // 2
position = game.unpack(torch.from_numpy(records.positions[middle : middle + 1]).to(game.device))
print("\nA position:", *game.to_text(position), sep="\n")
preferred = records.policy_actions[middle], records.policy_weights[middle].round(2)
print("the search's actions: {} their weights: {}".format(*preferred))

# %% [markdown]
# ## A replay, and one update
# The replay keeps the latest positions; here there is room for all. A batch is drawn from it at
# random, and the network takes one step towards the search's policy and the value targets, which
# mix a game's result with estimates of who was ahead.

# %%
from chessnn_colab import Learner, ReplayBuffer

replay = ReplayBuffer(config.replay_capacity)
replay.add(records)
learner = Learner(network, game, config)
generator = np.random.default_rng(config.seed)
batch = replay.sample(config.batch_size, generator)
losses = learner.update(batch)
print(", ".join(f"{name} {float(value):.3f}" for name, value in losses._asdict().items()))

# %% [markdown]
# ## The loop
# Play, keep, learn; then the workers get the new weights. After learning, the means and spreads
# of batch norm are measured again, because the network uses them when it plays.

# %%
history = []
network = learner.network  # the one that learns; *A network* run again has made another
for _ in range(iterations):  # run this cell again, and it continues
    version += 1
    updates = max(1, round(records.num_positions * config.sample_reuse / config.batch_size))
    for done in range(1, updates + 1):
        print(f"iteration {version}: update {done} of {updates}", end="\r")
        batch = replay.sample(config.batch_size, generator)
        # Each position is learned as it is or as one of its mirror images, where the game has any.
        batch["chance"] = generator.random(config.batch_size, np.float32)
        losses = learner.update(batch)
        history.append((float(losses.policy_loss), float(losses.value_loss)))
    learner.reestimate_norms(replay.sample(config.batch_size, generator) for _ in range(8))
    now = "policy loss {:.3f}, value loss {:.3f}".format(*history[-1])
    print(f"iteration {version}: {learner.updates} updates, {now}")
    pool.set_weights(positions, to_arrays(network))
    shares = share_positions(positions_per_iteration, pool.call.in_flight, workers)
    chunks = pool.play(shares, version, on_update=lambda *counts: print(told(*counts), end="\r"))
    records = concatenate_worker_games(chunks, game)
    replay.add(records)
    positions += records.num_positions
figure, axes = plt.subplots(1, 2)
for axis, name, curve in zip(axes, ("policy loss", "value loss"), zip(*history)):
    axis.plot(curve)
    axis.set(title=name, xlabel="update", ylabel="nats")
show(figure, f"The losses by update; at the end {now}")

# %% [markdown]
# *Both losses fall within an iteration, and may jump between iterations, when new games come.*
#
# ## A checkpoint
# Named arrays and plain data in one file, with its SHA-256 in the header.

# %%
from chessnn_colab import runs

file = Path(config.run) / "checkpoint.safetensors"
about = {"game": game.name, "iteration": version}
runs.save_checkpoint(file, {"weights": to_arrays(network)}, about)
loaded = runs.load_checkpoint(file, game.name)
same = all(
    np.array_equal(array, loaded.groups["weights"][name])
    for name, array in to_arrays(network).items()
)
print(f"{file.name}: {file.stat().st_size:,} bytes")
print(f"same weights: {same}")

# %% [markdown]
# ## A match
# The network, before and after, against a player that moves at random. The search looks at as
# many moves as in training.

# %%
from chessnn_colab import arena, show_matches, watching

if game.num_players == 2:
    rules = arena.match_game(game_name, choice.device)
    before = build_network(config.network_config(game), choice.device, seed=config.seed).eval()
    now = f"after {version} iterations"
    players = [
        arena.NetworkPlayer(rules, before, config, "untrained"),
        arena.NetworkPlayer(rules, network.eval(), config, now),
    ]
    opponent = arena.find_player("random", rules)
    matches = [arena.Match(player, opponent, match_games) for player in players]
    with watching() as watch:
        results = arena.play_matches(rules, matches, watch=watch)
    print(*results, sep="\n")
    show_matches(results)
else:
    print(f"{game_name} is a game for one player: there is nobody to play a match against.")

# %% [markdown]
# *After a few iterations the bars differ little; raise `iterations`, and the second one grows.*
#
# ## What a search sees
# A search of 64 evaluations from the start, with a tree: each candidate has its visits, its value,
# the replies to it, and its line of play.

# %%
rules = arena.match_game(game_name)
seer = arena.NetworkOpponent(rules, arena.NetworkPlayer(rules, network.eval()))
seer.evaluations = 64
seer.choose(rules.init(1))
figure, axis = plt.subplots()


def grow(branches, parent, left, width, depth):
    visits = sum(branch.visits for branch in branches)
    for branch in branches:
        share = width * branch.visits / visits
        middle = left + share / 2
        axis.plot([parent, middle], [depth - 1, depth], "o-", ms=3, lw=40 * share)
        grow(branch.replies, middle, left, share, depth + 1)
        left += share


grow(seer.candidates(), 0.5, 0, 1, 1)
for branch in seer.candidates()[:5]:
    worth = (
        f"{branch.visits} visits, worth {branch.value:.2f}, {branch.proof_words() or 'no proof'}"
    )
    print(f"action {branch.action}: {worth}; line {branch.line}")
axis.set(ylabel="plies from the start", xticks=[], ylim=axis.get_ylim()[::-1])
show(figure, f"The tree of a search with {seer.evaluations} evaluations")

# %% [markdown]
# *The wider a line, the more often the search went that way. Early on all candidates are tried
# alike; a trained network soon prefers a few.*
#
# ## Leave
# The workers end with the notebook's kernel, or here if the box is ticked. Things to try: another
# game, `search="tree"` in `TrainConfig`, two updates where there is one, a replay of 5,000
# positions, or games against an opponent that you wrote, instead of the pool's.

# %% cellView="form"
end_the_workers = False  # @param {type:"boolean"}
if end_the_workers:
    pool.close()
