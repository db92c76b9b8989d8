"""The rules alone: legal moves and steps of random play."""

import time

import torch

from ..clock import timed
from ..cpu import use_threads
from ..games.base import Game, finished, random_actions, where
from .setting import Figures, Setting

BOARDS = 1024
WARM_UP_PLIES = 20


def bench_rules(setting: Setting) -> Figures:
    """Legal mask and step of random play (see positions_per_second)."""
    boards = setting.boards or BOARDS
    rate = positions_per_second(setting.game, setting.seconds, boards)
    return {"positions_per_second": rate, "batch": boards}


@use_threads(1)
def positions_per_second(game: Game, seconds: float, boards: int = BOARDS) -> float:
    """The pace of legal mask and step over unfinished games of random play on `boards`; finished
    games start again.

    Choosing moves and starting again is not timed.
    """
    device = str(game.device)
    generator = torch.Generator(device).manual_seed(0)
    start = state = game.init(boards)
    seconds_taken = 0.0
    ply = 0
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline or ply <= WARM_UP_PLIES:
        if ply == WARM_UP_PLIES:
            seconds_taken = 0.0
        ply += 1
        mask, mask_seconds = timed(device, game.legal_action_mask, state)
        after, step_seconds = timed(device, game.step, state, random_actions(mask, generator))
        seconds_taken += mask_seconds + step_seconds
        state = where(finished(after), start, after)
    return boards * (ply - WARM_UP_PLIES) / seconds_taken
