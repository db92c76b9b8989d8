"""Count the operators that one ply of self-play runs on a device. Launch by launch a GPU's host
pays for each, 31 us beside the H200 of LOG.md (2026-11-27).

The rule. One ply of self-play as shipped (`Lockstep.play_ply`: search, step, packing, restarts)
runs on CPU tensors along the path of every device but the CPU (bits alone are unpacked as on a
CPU), with batch norm folded and portable neurons. Every operator that reaches torch's dispatcher
counts as one kernel, except those that compute nothing: views (the schema says that the result is a
view), `_unsafe_view`, and allocations without a fill (NOT_KERNELS). A fill counts, such as the one
that `torch.where(condition, tensor, 0)` makes of its scalar. No number depends on the batch size or
on what the games do.

An operator belongs to the part whose function called it: `rules` is everything in games/, `network`
the network and its layers, `search` the searches and the actor, `self_play` the rest. `by_function`
splits the rules further: by the function of the game that the rest of the package called, and
`legal_moves` apart.
"""

import inspect
import traceback
from collections import Counter
from dataclasses import replace
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from ..actor import Actor
from ..games.registry import make_game
from ..lockstep import Lockstep
from ..network import SpikingNetwork, actor_copy
from .setting import Figures, Setting

BOARDS = 16
NOT_KERNELS = {
    "_unsafe_view",
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
}
# The part that each room of the package belongs to.
PARTS = {
    "games": "rules",
    "network": "network",
    "layers": "network",
    "actor": "search",
    "search": "search",
    "tree": "search",
    "selfplay": "self_play",
    "lockstep": "self_play",
}


def bench_launches(setting: Setting) -> Figures:
    """Kernels of the second ply of BOARDS games, by part and function (see the module's text)."""
    # A narrow network has as many operators, and a CPU runs them faster.
    narrow = SpikingNetwork(replace(setting.network_config, channels=8), portable=True)
    rules = make_game(setting.config.game)
    actor = Actor(rules, actor_copy(narrow, setting.dtype), setting.config, static=True)
    # play_block would add copies to the host.
    ply = Lockstep(actor, BOARDS, 0).play_ply
    ply()
    with Kernels() as kernels:
        ply()
    return {
        "kernels_per_ply": kernels.parts.total(),
        **{f"kernels_{part}": count for part, count in kernels.parts.items()},
        "by_function": dict(kernels.functions.most_common()),
    }


class Kernels(TorchDispatchMode):
    """Counts operators that compute, by part of the package and by function of the rules."""

    def __init__(self):
        super().__init__()
        self.parts = Counter()
        self.functions = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """`func` as it is, counted."""
        if is_kernel(func):
            callers = _callers()
            part = next((part for part, _ in callers), "self_play")
            inside = [name for where, name in callers if where == "rules"]
            self.parts[part] += 1
            if part == "rules":
                self.functions["legal_moves" if "legal_moves" in inside else inside[-1]] += 1
        return func(*args, **(kwargs or {}))


def is_kernel(func: Any) -> bool:
    """Whether an operator computes something on a device: the rule in the module's text."""
    view = any(
        result.alias_info is not None and not result.alias_info.is_write
        for result in func._schema.returns
    )
    return func.namespace == "aten" and not view and func.overloadpacket.__name__ not in NOT_KERNELS


def _callers() -> list[tuple[str, str]]:
    """The part and the name of the package's functions that are being called, the innermost
    first.
    """
    found = []
    for frame, _ in traceback.walk_stack(inspect.currentframe()):
        module = frame.f_globals["__name__"].removeprefix("chessnn_colab.")
        part = PARTS.get(module.partition(".")[0])
        if part:
            found.append((part, frame.f_code.co_name))
    return found
