"""A network and one position of chess: what it sees, thinks and fires, as HTML without a kernel.

Moves and value are the network's own, without a search.
"""

import html
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from ...arena.opponent import Opinion, opinions_of
from ...errors import NotationError
from ...games.chess.notation import board_from_fen
from ...games.chess.rules import Chess
from ...network import SpikingNetwork
from ...spikes import layer_names, spike_counts
from ...text import percent
from ..chess_drawing import ChessDrawing
from ..opinion_html import arrows, value_html
from ..picture import picture_html

BOARD = 300  # CSS pixels


@dataclass(frozen=True)
class SeenPosition:
    """A position of chess, ready for a network and for a picture. Made by `position`."""

    drawing: ChessDrawing

    @cached_property
    def planes(self) -> torch.Tensor:
        """float32 [1, 27, 8, 8]: what the network sees, from the mover's side."""
        return self.drawing.game.observe(self.drawing.state())

    def seen_from_white(self, board_map: np.ndarray) -> np.ndarray:
        """[..., 8, 8] of the mover's view as White sees it: rank 1 first, file a first."""
        return board_map[..., ::-1, :] if self.drawing.turn else board_map


def position(fen: str) -> SeenPosition:
    """The position of a FEN. Raises NotationError for one that cannot be read, or in which the game
    is over.
    """
    drawing = ChessDrawing(Chess())
    drawing.load(board_from_fen(fen).fen(en_passant="fen"))
    if over := drawing.ending():
        raise NotationError(f"{over} Choose a position in which a move can be played, not {fen!r}")
    return SeenPosition(drawing)


@torch.no_grad()
def opinion(network: SpikingNetwork, seen: SeenPosition) -> Opinion:
    """The network's moves and value for a position, without a search.

    Every legal move has its probability, however small.
    """
    return opinions_of(network, seen.drawing.game, seen.drawing.state())[0][0]


def firing_maps(network: SpikingNetwork, seen: SeenPosition) -> dict[str, np.ndarray]:
    """Short layer name -> spikes [channels, 8, 8] of every neuron in this position, rank 1 and file
    a first.
    """
    spikes = spike_counts(network, seen.planes)
    return {
        short: seen.seen_from_white(spikes[name].sum(0)[0].numpy())
        for name, short in layer_names(network).items()
    }


def board_image(seen: SeenPosition, thought: Opinion | None = None, size: int = BOARD) -> str:
    """The board as an HTML image, White below, with the likeliest moves as arrows."""
    likeliest = arrows(seen.drawing, thought) if thought else []
    unlabelled = [arrow._replace(label="") for arrow in likeliest]  # the caption has the numbers
    return picture_html(seen.drawing, size=size, arrows=unlabelled)


def thought_html(seen: SeenPosition, thought: Opinion, words: str, size: int = BOARD) -> str:
    """The board with a network's opinion, and below it White's chances to win, draw and lose as a
    bar, `words` and the likeliest moves in SAN.
    """
    likeliest = [
        f"{seen.drawing.move_text(action)} {percent(share)}"
        for action, share in zip(thought.actions[:3], thought.probabilities)
    ]
    chances = value_html(seen.drawing.players, thought)
    bar = f'<div style="max-width:{size}px;font-size:12px">{chances}</div>'
    board = board_image(seen, thought, size) + bar
    moves = f"Likeliest: {', '.join(likeliest)}."
    return board + caption(words, size) + caption(moves, size)


def row(*parts: str, gap: int = 20, width: int | None = None) -> str:
    """Pieces of HTML side by side; they wrap where the page is narrow. width: CSS pixels of each;
    None: its own.
    """
    size = "max-width:100%" if width is None else f"width:{width}px;align-self:flex-end"
    items = "".join(f'<div style="{size}">{part}</div>' for part in parts)
    return (
        f'<div style="display:flex;flex-wrap:wrap;gap:{gap}px;align-items:flex-start">{items}</div>'
    )


def caption(text: str, width: int = BOARD) -> str:
    """A line of text below a picture. `text` is not HTML."""
    style = f"max-width:{width}px;font-size:12px;line-height:1.4;margin:2px 0 4px 0"
    return f'<div style="{style}">{html.escape(text)}</div>'
