"""2048 on a board that is looked at: tiles with their numbers, and which one is new."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..games.base import finished
from ..games.twenty48 import EXPONENTS
from .drawings import EMPTY, StonesDrawing, svg

ARROWS = "↑→↓←"  # of each action
_LIGHT, _WARM, _DARK = (238, 228, 218), (224, 140, 60), (110, 25, 85)
_FIRST = ord("A")  # the glyph of a 2
_WHITE_FROM = 11  # exponents whose number is white: what is the further from the tile's colour


def _tile(exponent: int) -> tuple[str, str]:
    share = 2 * (exponent - 1) / (EXPONENTS - 2)
    low, high = (_LIGHT, _WARM) if share < 1 else (_WARM, _DARK)
    red, green, blue = (round(one + (other - one) * (share % 1 if share < 2 else 1)) for one, other in zip(low, high))
    number = str(2**exponent)
    size = min(22.0, 52 / len(number))
    ink = "#fff" if exponent >= _WHITE_FROM else "#3b342c"
    return number, svg(
        f'<rect x="2" y="2" width="41" height="41" rx="4" fill="rgb({red},{green},{blue})"/>'
        f'<text x="22.5" y="{22.5 + 0.36 * size:.1f}" text-anchor="middle" font-family="sans-serif" font-weight="bold" '
        f'font-size="{size:.1f}" fill="{ink}">{number}</text>'
    )


TILES = {chr(_FIRST + exponent - 1): _tile(exponent) for exponent in range(1, EXPONENTS)}


class TilesDrawing(StonesDrawing):
    """A game of 2048 that was played. There is nothing to click."""

    def __init__(self, game: Any):
        """game: a games.twenty48.Twenty48."""
        super().__init__(game, "cn-tiles", TILES)

    def squares(self) -> list[str]:
        """The glyph of each cell."""
        return [chr(_FIRST + tile - 1) if tile else EMPTY for tile in self._states[-1].tiles[0].tolist()]

    def last(self) -> Sequence[int]:
        """The cell of the tile that came last."""
        if not self.actions:
            return ()
        moved = self.game.afterstate(self._states[-2], torch.tensor(self.actions[-1:], device=self.game.device))
        return (moved.tiles != self._states[-1].tiles)[0].nonzero().squeeze(1).tolist()

    def moves(self) -> list[tuple[str, str]]:
        """Each with its number."""
        return [(f"{ply}.", ARROWS[action]) for ply, action in enumerate(self.actions, 1)]

    def ending(self) -> str:
        """Why it ended, and what was reached."""
        state = self._states[-1]
        if not bool(finished(state)):
            return ""
        why = "No move is left" if bool(state.terminated) else "Stopped"
        return f"{why}: {int(state.score):,} points, the largest tile is {2 ** int(state.tiles.max())}."
