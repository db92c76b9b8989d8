"""The rules alone: legal moves and steps of random play."""

from __future__ import annotations

import time
from typing import Any

import torch

from ..cpu import use_threads
from ..games.base import Game, finished, where
from .clock import Clock, Setting

BOARDS = 1024
WARM_UP_PLIES = 20


def bench_rules(setting: Setting) -> dict[str, Any]:
    """Legal mask and step of random play (see rules_clocks)."""
    boards = setting.boards or BOARDS
    mask, step = rules_clocks(setting.game, setting.seconds, boards)
    return {
        "positions_per_second": positions_per_second(mask, step),
        "batch": boards,
        "mask_us": 1e6 * mask.seconds / mask.count,
        "step_us": 1e6 * step.seconds / step.count,
    }


def positions_per_second(mask: Clock, step: Clock) -> float:
    """The pace of both together, from the clocks of rules_clocks."""
    return mask.count / (mask.seconds + step.seconds)


@use_threads(1)
def rules_clocks(game: Game, seconds: float, boards: int = BOARDS) -> tuple[Clock, Clock]:
    """Legal mask and step over unfinished games of random play on `boards`; finished games start
    again.

    Returns the clocks of the mask and of the step, counting positions. Choosing moves and starting
    again is not timed.
    """
    device = str(game.device)
    generator = torch.Generator(device).manual_seed(0)
    start = state = game.init(boards)
    mask_clock = Clock(device)
    step_clock = Clock(device)
    ply = 0
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline or ply <= WARM_UP_PLIES:
        if ply == WARM_UP_PLIES:
            mask_clock = Clock(device)
            step_clock = Clock(device)
        ply += 1
        mask = mask_clock.time(game.legal_action_mask, state, count=boards)
        noise = torch.rand(mask.shape, generator=generator, device=device)
        action = torch.where(mask, noise, -1.0).argmax(1)
        after = step_clock.time(game.step, state, action, count=boards)
        state = where(finished(after), start, after)
    return mask_clock, step_clock
