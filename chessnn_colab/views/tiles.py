"""2048 on a board that is looked at: tiles with their numbers, and which one is new."""

from collections.abc import Sequence
from typing import Any

import torch

from ..games.base import finished
from ..games.twenty48 import EXPONENTS
from .drawing import EMPTY, Drawing, ground

ARROWS = "↑→↓←"  # of each action
_COLOURS = """
#eee4da #ecd9c6 #eaceb2 #e9c39f #e7b88b #e5ad77
#e4a264 #e29750 #e08c3c #d27e3f #c46f42 #b56145
#a75248 #99444c #8a364f #7c2752 #6e1955
""".split()  # of each exponent from 1 up: light, warm, dark
_FIRST = ord("A")  # the glyph of a 2
_WHITE_FROM = 11  # exponents whose number is white, because their tile is dark


def _tile(exponent: int) -> tuple[str, str]:
    number = str(2**exponent)
    size = min(22.0, 52 / len(number))
    ink = "#fff" if exponent >= _WHITE_FROM else "#3b342c"
    place = f'x="22.5" y="{22.5 + 0.36 * size:.1f}" text-anchor="middle" fill="{ink}"'
    font = f'font-family="sans-serif" font-weight="bold" font-size="{size:.1f}"'
    square = f'<rect x="2" y="2" width="41" height="41" rx="4" fill="{_COLOURS[exponent - 1]}"/>'
    return number, f"{square}<text {place} {font}>{number}</text>"


TILES = {chr(_FIRST + exponent - 1): _tile(exponent) for exponent in range(1, EXPONENTS)}


class TilesDrawing(Drawing):
    """A game of 2048 that was played. There is nothing to click."""

    edge_names = False

    def __init__(self, game: Any):
        """game: a games.twenty48.Twenty48."""
        super().__init__(game, ground("#cdc1b4", "#6b7680"), TILES)

    def squares(self) -> list[str]:
        """The glyph of each cell."""
        return [
            chr(_FIRST + tile - 1) if tile else EMPTY for tile in self._states[-1].tiles[0].tolist()
        ]

    def last(self) -> Sequence[int]:
        """The cell of the tile that came last."""
        if not self.actions:
            return ()
        moved = self.game.afterstate(
            self._states[-2], torch.tensor(self.actions[-1:], device=self.game.device)
        )
        return (moved.tiles != self._states[-1].tiles)[0].nonzero().squeeze(1).tolist()

    def alarms(self) -> Sequence[int]:
        """None: nobody wins."""
        return ()

    def move_text(self, action: int) -> str:
        """An arrow."""
        return ARROWS[action]

    def ending(self) -> str:
        """Why it ended, and what was reached."""
        state = self._states[-1]
        if not bool(finished(state)):
            return ""
        why = "No move is left" if bool(state.terminated) else "Stopped"
        return (
            f"{why}: {int(state.score):,} points, "
            f"the largest tile is {2 ** int(state.tiles.max())}."
        )
