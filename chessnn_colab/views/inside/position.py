"""What a network sees, thinks and fires in one position, as pictures that need no kernel: the start of a look inside.

Moves and value are the network's own, without looking ahead, so that what the spikes say is seen as it is.
"""

from __future__ import annotations

import base64
import html
from dataclasses import dataclass
from functools import cached_property

import chess
import chess.svg
import numpy as np
import torch

from ...games.chess.notation import board_from_fen, move_from_action, state_from_boards
from ...games.chess.rules import Chess
from ...network import SpikingNetwork
from ...spikes import layer_names, spike_counts
from ..ink import BLUE, BOARD_DARK, BOARD_LAST, BOARD_LIGHT, INK, ORANGE, percent

SQUARES = {"square light": BOARD_LIGHT, "square dark": BOARD_DARK, "coord": INK, "margin": "#00000000"}
NO_MARGIN = {**SQUARES, "square light lastmove": BOARD_LAST, "square dark lastmove": "#CDB35C"}
BOARD = 300  # CSS pixels
ARROWS = 4  # moves drawn
# Win, draw, loss: told apart by the colour-blind, and in any order by their pattern of light and dark.
OUTCOMES = (("win", BLUE, "#111111"), ("draw", "#A9B0B8", "#111111"), ("loss", ORANGE, "#111111"))


@dataclass(frozen=True)
class Position:
    """A position of chess, ready for a network. Made by `position`."""

    board: chess.Board

    @cached_property
    def game(self) -> Chess:
        """The rules, on the CPU."""
        return Chess()

    @cached_property
    def planes(self) -> torch.Tensor:
        """float32 [1, 27, 8, 8]: what the network sees, from the mover's side."""
        return self.game.observe(state_from_boards([self.board], self.game))

    def seen_from_white(self, board_map: np.ndarray) -> np.ndarray:
        """[..., 8, 8] of the mover's view as White sees it: rank 1 first, file a first."""
        return board_map if self.board.turn else board_map[..., ::-1, :]


@dataclass(frozen=True)
class Opinion:
    """What a network says of a position by itself."""

    moves: tuple[tuple[chess.Move, float], ...]  # every legal move with its probability, the likeliest first
    win_draw_loss: tuple[float, float, float]  # of the mover

    def arrows(self, count: int = ARROWS) -> list[chess.svg.Arrow]:
        """The likeliest moves as arrows; the likelier, the stronger the colour."""
        most = self.moves[0][1] if self.moves else 1.0
        strengths = [(move, max(0.25, share / most)) for move, share in self.moves[:count]]
        return [
            chess.svg.Arrow(move.from_square, move.to_square, color=f"{BLUE}{round(255 * strength):02x}")
            for move, strength in reversed(strengths)
        ]


def position(fen: str) -> Position:
    """The position of a FEN. Raises NotationError for one that cannot be read."""
    return Position(board_from_fen(fen))


def opinion(network: SpikingNetwork, seen: Position) -> Opinion:
    """The network's moves and value for a position, without looking ahead."""
    return opinions(network, seen, 1)[0]


@torch.no_grad()
def opinions(network: SpikingNetwork, seen: Position, rows: int) -> list[Opinion]:
    """`opinion`, as often as there are rows in one batch of the position (see spikes.silenced)."""
    logits, wdl_logits = network(seen.planes.expand(rows, -1, -1, -1))
    _, actions = seen.game.legal_actions(state_from_boards([seen.board], seen.game))
    shares = logits[:, actions].softmax(1)
    moves = [move_from_action(action, seen.board) for action in actions.tolist()]
    ordered = [tuple((moves[i], float(row[i])) for i in row.argsort(descending=True).tolist()) for row in shares]
    return [Opinion(*said) for said in zip(ordered, map(tuple, wdl_logits.softmax(1).tolist()))]


def firing_maps(network: SpikingNetwork, seen: Position) -> dict[str, np.ndarray]:
    """Short layer name -> spikes [channels, 8, 8] of every neuron in this position, rank 1 and file a first."""
    spikes = spike_counts(network, seen.planes)
    return {short: seen.seen_from_white(spikes[name].sum(0)[0].numpy()) for name, short in layer_names(network).items()}


def board_image(seen: Position, thought: Opinion | None = None, size: int = BOARD) -> str:
    """The board as an HTML image, White below, with the likeliest moves as arrows."""
    svg = chess.svg.board(
        seen.board,
        arrows=thought.arrows() if thought else [],
        check=seen.board.king(seen.board.turn) if seen.board.is_check() else None,
        size=size,
        colors=NO_MARGIN,
    )
    data = base64.b64encode(svg.encode()).decode()
    words = f"Board: {seen.board.fen()}" + (f"; likeliest: {moves_in_words(seen, thought)}" if thought else "")
    style = f"width:{size}px;max-width:100%;height:auto;display:block"
    return f'<img src="data:image/svg+xml;base64,{data}" alt="{html.escape(words)}" style="{style}">'


def moves_in_words(seen: Position, thought: Opinion, count: int = 3) -> str:
    """The likeliest moves in SAN with their probabilities: "Nf3 12 %, e4 9 %"."""
    return ", ".join(f"{seen.board.san(move)} {percent(share)}" for move, share in thought.moves[:count])


def outcome_bar(thought: Opinion, width: int = BOARD) -> str:
    """Win, draw and loss of the mover as one bar of HTML, each part with its word where it has room."""
    parts = []
    for (name, colour, ink), share in zip(OUTCOMES, thought.win_draw_loss):
        text = f"{name} {percent(share)}" if share * width > 70 else ""
        style = f"width:{100 * share:.2f}%;background:{colour};color:{ink};overflow:hidden;white-space:nowrap"
        parts.append(f'<span style="{style};text-align:center;font-size:11px;line-height:18px">{text}</span>')
    words = ", ".join(f"{name} {percent(share)}" for (name, *_), share in zip(OUTCOMES, thought.win_draw_loss))
    style = f"display:flex;width:{width}px;max-width:100%;height:18px"
    return f'<div role="img" aria-label="{words}" title="{words}" style="{style}">{"".join(parts)}</div>'


def row(*parts: str, gap: int = 20) -> str:
    """Pieces of HTML side by side; they wrap where the page is narrow."""
    items = "".join(f'<div style="max-width:100%">{part}</div>' for part in parts)
    return f'<div style="display:flex;flex-wrap:wrap;gap:{gap}px;align-items:flex-start">{items}</div>'


def caption(text: str, width: int = BOARD) -> str:
    """A line of text below a picture. `text` is not HTML."""
    style = f"max-width:{width}px;font-size:12px;line-height:1.4;margin:2px 0 4px 0"
    return f'<div style="{style}">{html.escape(text)}</div>'
