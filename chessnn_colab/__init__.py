"""A spiking neural network learns chess by playing itself.

Public names (`_HOMES` says where each is) are imported on first use: a worker process loads only what it needs.
"""

import os
import sys
from importlib import import_module

__version__ = "0.7.5"

if sys.version_info < (3, 11):  # noqa: UP036  # a checkout is imported without pip, which would have said so
    raise ImportError(f"chessnn_colab needs Python 3.11 or newer; this is {sys.version.split()[0]}")

# The one thing that an import does: it says how torch's threads wait for each other, which OpenMP reads when torch is
# loaded. Unset, they spin for a thread that a busy neighbour holds off, and beside one a learner is three times slower
# (docs/speed.md). Whatever the user has set stays as it is. GNU's OpenMP reads the first, LLVM's (macOS) the second.
THREAD_WAITING = {"GOMP_SPINCOUNT": "1000", "KMP_BLOCKTIME": "1"}
_USERS_CHOICE = bool({"OMP_WAIT_POLICY", *THREAD_WAITING} & os.environ.keys())
TORCH_CAME_FIRST = "torch" in sys.modules and not _USERS_CHOICE  # then it is too late for this process, not for workers
if not _USERS_CHOICE:
    os.environ.update(THREAD_WAITING)

_HOMES = {
    "check_device": "check",
    "detect_device": "devices",
    "plan_workers": "devices",
    "TrainConfig": "config",
    "train": "training",
    "Report": "report",
    "make_progress": "views.progress",
    "load_network": "arena.evaluate",
    "evaluate_run": "arena.evaluate",
    "measure": "views.measuring",
    "choose_move": "arena.chess.choose_move",
    "play_widget": "views.play",
    "watch_game": "views.watch",
    "sample_replay": "views.replay",
    "Chess": "games.chess.rules",
    "SpikingNetwork": "network",
    "NetworkConfig": "network_config",
    "PRESETS": "network_config",
    "GameRecords": "records",
    "ChessnnError": "errors",
}
globals()["__all__"] = sorted(_HOMES)  # type checkers read only literals, and would miss each name


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"chessnn_colab has no {name!r}: expected one of {', '.join(sorted(_HOMES))}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
