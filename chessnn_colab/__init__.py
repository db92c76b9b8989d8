"""A spiking neural network learns chess by playing itself.

The public names, found when first used: a worker process imports this package and wants none of them.
"""

from importlib import import_module

__version__ = "0.3.0"

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
    "choose_move": "arena.chess.choose_move",
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
