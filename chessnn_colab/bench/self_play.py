"""How much of the bare network's speed self-play keeps."""

import math
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from ..actor import Actor
from ..clock import seconds_per_call
from ..graphs import Graphs
from ..network import SpikingNetwork, actor_copy
from ..records import GameRecords
from ..search import SearchConfig
from ..selfplay import Play
from .setting import Figures, Setting

ROUNDED = 512  # numbers of logits are rounded up to multiples, since hardly two are the same


def bench_self_play(setting: Setting, search: SearchConfig | None = None) -> Figures:
    """Self-play beside the same folded network on its own, same batches, same threads.

    search: None is that of training. Every position that the network looks at counts as an
    evaluation, on a GPU also those of finished games and of spare places.
    """
    boards = setting.lockstep_boards
    counted = CountedNetwork(actor_copy(setting.network(), setting.dtype))
    search = search or setting.config
    actor = Actor(setting.game, counted, search)  # pyright: ignore[reportArgumentType]
    # A replayed graph would call nothing that could be counted.
    plain = Graphs(on=False)
    moves, seconds = played(actor, boards, setting.seconds, counted.forget, plain)
    evaluations = counted.rows / seconds
    bare = counted.rows / counted.bare_seconds(setting.device, setting.seconds)
    return {
        "moves_per_second": moves / seconds,
        "evaluations_per_second": evaluations,
        "bare_evaluations_per_second": bare,
        "search_efficiency": evaluations / bare,
        "overhead_us_per_evaluation": 1e6 * (1 / evaluations - 1 / bare),
        "boards": boards,
        "evaluations_per_move": counted.rows / moves,
    }


def played(
    actor: Actor, boards: int, seconds: float, begin: Callable[[], None], graphs: Graphs
) -> tuple[int, float]:
    """Self-play for about `seconds`: the moves, and the seconds that they took.

    The first block of plies does not count, with the start positions and the warming up. begin:
    called after it.
    """
    marks = []

    def time_is_left() -> bool:
        return len(marks) < 2 or marks[-1][1] - marks[0][1] < seconds

    def collect(games: int, plies: int, records: GameRecords) -> bool:
        if not marks:
            begin()
        if time_is_left():  # else this is the block that was being played
            marks.append((plies, time.perf_counter()))
        return time_is_left()

    Play(actor, boards, 0, graphs=graphs).run(sys.maxsize, collect)
    (plies_before, began), *_, (plies, ended) = marks
    return plies - plies_before, ended - began


class CountedNetwork:
    """A network that remembers how often each part of it was called on how many rows, with an
    example of the inputs.
    """

    def __init__(self, network: SpikingNetwork):
        self.network = network
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self.rows = 0  # positions evaluated
        # By part, rows and wanted logits: calls that are alike in these take the same time.
        self.calls = Counter()
        self._examples = {}  # one of each

    def __getattr__(self, part: str) -> Callable[..., Any]:
        """The network's method `part`, counted."""
        function = getattr(self.network, part)

        def counted(batch: torch.Tensor, *wanted: torch.Tensor) -> Any:
            logits = len(wanted[0]) if wanted else 0
            call = part, len(batch), ROUNDED * math.ceil(logits / ROUNDED)
            self.calls[call] += 1
            self._examples.setdefault(call, partial(function, batch, *wanted))
            if part == "features_and_value":
                self.rows += len(batch)
            return function(batch, *wanted)

        return counted

    def bare_seconds(self, device: str, limit: float) -> float:
        """How long the same calls take the network alone, with nothing between them.

        Each kind is measured for its share of the calls in `limit` seconds.
        """
        seconds = 0.0
        for call, count in self.calls.items():
            share = limit * count / self.calls.total()
            seconds += count * seconds_per_call(self._examples[call], device, share)
        return seconds
