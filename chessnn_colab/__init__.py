"""A spiking neural network learns chess by playing itself.

Public names (`_HOMES` says where each is) are imported on first use: a worker process loads only
what it needs.
"""

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

__version__ = "0.19.9"

if sys.version_info < (3, 11):  # noqa: UP036  # without pip nobody has said so
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

# The module of each name, and of each group of names: `from chessnn_colab import inside`, then
# `inside.growth`.
_HOMES = {
    "": {
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
        # Strength
        "measure": "views.measuring",
        "watching": "views.progress",
        "evaluate_run": "arena.evaluate",
        # Play, watch, look at a run
        "play_widget": "views.play",
        "watch_game": "views.watch",
        "sample_replay": "views.replay",
        "run_story": "views.story",
        "result_card": "views.card",
        "share_page": "views.page",
        "show_tensorboard": "views.tensorboard",
        "scroll_to_cell": "views.front_end",
        # Figures
        "show": "views.style",
        "unfold": "views.cell",
        "apply_style": "views.style",
        "show_matches": "views.strength_plots",
        "training_curves": "views.strength_plots",
        # The parts of the training loop
        "make_game": "games.registry",
        "SpikingLayer": "layers",
        "NetworkConfig": "network_config",
        "build_network": "network",
        "to_arrays": "network",
        "share_positions": "iteration",
        "concatenate_worker_games": "iteration",
        "ReplayBuffer": "replay",
        "Learner": "learner",
        # A cluster
        "join_cluster": "workers.ray",
        "plan_cluster": "workers.ray",
        # Groups
        "inside": "views.inside",
        "runs": "runs",
        "arena": "arena",
    },
    "inside": {
        "networks_to_show": "views.inside.snapshots",
        "growth": "views.inside.snapshots",
        "position": "views.inside.seen",
        "input_planes": "views.inside.maps",
        "firing_maps": "views.inside.seen",
        "firing_view": "views.inside.maps",
        "sample_positions": "views.inside.sample",
        "spike_counts": "spikes",
        "layer_names": "spikes",
        "opinion": "views.inside.seen",
        "thought_html": "views.inside.seen",
        "silenced": "spikes",
        "without_waiting": "spikes",
        "estimate_energy": "spikes",
        "energy_positions": "views.card",
        "energy_bars": "views.plots",
        "start_picture": "views.picture",
        "Controlled": "views.inside.show",
    },
    "runs": {
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
    },
    "arena": {
        "match_game": "arena.registry",
        "find_player": "arena.evaluate",
        "NetworkPlayer": "arena.players",
        "NetworkOpponent": "arena.opponent",
        "play_search": "arena.players",
        "Match": "arena.match",
        "play_matches": "arena.parallel",
        "rate_run": "arena.ladder",
        "calibrate_run": "arena.calibration",
        "solved_over_run": "arena.puzzles",
    },
}


def public_names(group: str = "") -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of the module that has the public names of `group`."""
    homes = _HOMES[group]

    def load(name: str):
        if name not in homes:
            raise AttributeError(
                f"{group or __name__} has no {name!r}: expected one of {', '.join(sorted(homes))}"
            )
        module = import_module(f".{homes[name]}", __name__)
        return module if name in _HOMES else getattr(module, name)

    return load, lambda: sorted(homes)


__getattr__, __dir__ = public_names()
