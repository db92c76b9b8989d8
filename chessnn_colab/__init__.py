"""A spiking neural network learns chess by playing itself.

Public names (`_HOMES` says where each is) are imported on first use: a worker process loads only
what it needs.
"""

import os
import sys
from importlib import import_module

__version__ = "0.8.0"

if sys.version_info < (3, 11):  # noqa: UP036  # a checkout is imported without pip, which would have said so
    raise ImportError(f"chessnn_colab needs Python 3.11 or newer; this is {sys.version.split()[0]}")

# The one thing that an import does: it says how torch's threads wait for each other, which OpenMP
# reads when torch is loaded. Unset, they spin for a thread that a busy neighbour holds off, and
# beside one a learner is three times slower (docs/speed.md). Whatever the user has set stays as it
# is. GNU's OpenMP reads the first, LLVM's (macOS) the second.
THREAD_WAITING = {"GOMP_SPINCOUNT": "1000", "KMP_BLOCKTIME": "1"}
_USERS_CHOICE = bool({"OMP_WAIT_POLICY", *THREAD_WAITING} & os.environ.keys())
TORCH_CAME_FIRST = (
    "torch" in sys.modules and not _USERS_CHOICE
)  # then it is too late for this process, not for workers
if not _USERS_CHOICE:
    os.environ.update(THREAD_WAITING)

_HOMES = {
    # Train, and what a machine has
    "train": "training",
    "TrainConfig": "config",
    "what_to_expect": "views.expect",
    "make_progress": "views.progress",
    "check_device": "check",
    "bench_device": "bench.device",
    "detect_device": "devices",
    "inventory": "devices",
    "install_requirements": "install",
    "ChessnnError": "errors",
    # Runs
    "chosen_run": "runs.run_list",
    "list_runs": "runs.run_list",
    "delete_run": "runs.run_list",
    "run_game": "runs.networks",
    "load_network": "runs.networks",
    "find_network": "runs.networks",
    "save_checkpoint": "runs.checkpoint",
    "load_checkpoint": "runs.checkpoint",
    "drive_copy": "runs.drive",
    "bring_back": "runs.drive",
    # Strength
    "measure": "views.measuring",
    "watching": "views.progress",
    "evaluate_run": "arena.evaluate",
    "rate_run": "arena.ladder",
    "solved_over_run": "arena.puzzles",
    "match_game": "arena.registry",
    "find_player": "arena.evaluate",
    "Match": "arena.match",
    "play_matches": "arena.parallel",
    "NetworkPlayer": "arena.players",
    "play_search": "arena.players",
    # Play, watch, look at a run
    "play_widget": "views.play",
    "watch_game": "views.watch",
    "sample_replay": "views.replay",
    "run_story": "views.story",
    "result_card": "views.card",
    "show_tensorboard": "views.tensorboard",
    "scroll_to_cell": "views.front_end",
    # Figures
    "show": "views.style",
    "apply_style": "views.style",
    "show_matches": "views.strength_plots",
    "strength_curves": "views.strength_plots",
    "puzzle_curves": "views.strength_plots",
    # Inside a network
    "look_inside": "views.inside.look",
    "estimate_energy": "spikes",
    "energy_bars": "views.plots",
    "Controlled": "views.inside.show",
    "networks_to_show": "views.inside.growth",
    "growth": "views.inside.growth",
    "position": "views.inside.position",
    "input_planes": "views.inside.maps",
    "firing_maps": "views.inside.position",
    "firing_view": "views.inside.maps",
    "sample_positions": "views.inside.probes",
    "knowledge_picture": "views.inside.probes",
    "silence_view": "views.inside.silence",
    "channel_importance": "views.inside.silence",
    # The parts of the training loop
    "make_game": "games.registry",
    "SpikingLayer": "layers",
    "NetworkConfig": "network_config",
    "build_network": "network",
    "to_arrays": "network",
    "share_games": "iteration",
    "concatenate_worker_games": "iteration",
    "ReplayBuffer": "replay",
    "Learner": "learner",
    # A cluster
    "join_cluster": "workers.ray",
    "plan_cluster": "workers.ray",
}
globals()["__all__"] = sorted(_HOMES)  # type checkers read only literals, and would miss each name


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(
            f"chessnn_colab has no {name!r}: expected one of {', '.join(sorted(_HOMES))}"
        )
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
