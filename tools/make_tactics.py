"""Make chessnn_colab/arena/chess/data/tactics.txt: mates in one, mates in two and hanging pieces.

    python tools/make_tactics.py --each 100 --seed 0

Positions come from random games, which start from the start position or from a few pieces thrown on
the board. Each is solved exhaustively, and kept with all its solutions if it has one to three of
them.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import chess
import torch

from chessnn_colab.games.chess.boards import boards_from_state
from chessnn_colab.games.chess.rules import Chess

VALUES = {
    chess.PAWN: 1,
    chess.KNIGHT: 3,
    chess.BISHOP: 3,
    chess.ROOK: 5,
    chess.QUEEN: 9,
    chess.KING: 0,
}
MOST_SOLUTIONS = 3
CLEARLY = 2  # pawns by which the capture of a hanging piece must be better than every other move


def mates_in_one(board: chess.Board) -> list[chess.Move]:
    found = []
    for move in board.legal_moves:
        if board.gives_check(move):
            board.push(move)
            if board.is_checkmate():
                found.append(move)
            board.pop()
    return found


def mates_in_two(board: chess.Board) -> list[chess.Move]:
    """The moves after which every reply allows a mate; none if there is a mate in one."""
    if mates_in_one(board):
        return []
    found = []
    for move in list(board.legal_moves):
        board.push(move)
        replies = list(board.legal_moves)
        if replies and all(mates_after(board, reply) for reply in replies):
            found.append(move)
        board.pop()
    return found


def mates_after(board: chess.Board, reply: chess.Move) -> bool:
    board.push(reply)
    mates = bool(mates_in_one(board))
    board.pop()
    return mates


def hanging(board: chess.Board) -> list[chess.Move]:
    """The capture of a piece that no exchange wins back, if no other move wins nearly as much; else
    none.
    """
    if board.is_check() or mates_in_one(board):
        return []
    gains = {}
    for move in list(board.legal_moves):
        won = taken(board, move)
        board.push(move)
        gains[move] = -1000 if mates_in_one(board) else won - best_exchange(board)
        board.pop()
    ranked = sorted(gains, key=gains.get, reverse=True)
    best = ranked[0]
    if not board.is_capture(best) or best.promotion or gains[best] < 3 or len(ranked) < 2:
        return []
    return [best] if gains[best] - gains[ranked[1]] >= CLEARLY else []


def taken(board: chess.Board, move: chess.Move) -> int:
    """The material that a move wins at once, in pawns."""
    won = 0
    if board.is_capture(move):
        won = 1 if board.is_en_passant(move) else VALUES[board.piece_type_at(move.to_square)]
    return won + (VALUES[move.promotion] - 1 if move.promotion else 0)


def best_exchange(board: chess.Board, alpha: int = -(10**6), beta: int = 10**6) -> int:
    """What the side to move wins by captures and promotions if it may stop at any time: full
    quiescence search.
    """
    best = 0
    if best >= beta:
        return best
    alpha = max(alpha, best)
    moves = [move for move in board.legal_moves if board.is_capture(move) or move.promotion]
    for move in sorted(moves, key=lambda move: -taken(board, move)):
        won = taken(board, move)
        board.push(move)
        worth = won - best_exchange(board, won - beta, won - alpha)
        board.pop()
        best = max(best, worth)
        alpha = max(alpha, best)
        if alpha >= beta:
            break
    return best


def positions(kind: str, seed: int) -> Iterator[chess.Board]:
    """Endlessly many positions from random games, one per game."""
    game = Chess()
    generator = torch.Generator().manual_seed(seed)
    while True:
        state = game.starts(64, kind, generator)
        for ply in range(40):
            mask = game.legal_action_mask(state)
            state = game.step(
                state,
                torch.where(mask, torch.rand(mask.shape, generator=generator), -1.0).argmax(1),
            )
            boards = boards_from_state(state)  # each game gives one of its forty
            yield from (board for board in boards[ply::40] if not board.is_game_over())


def collect(
    solve: Callable[[chess.Board], list[chess.Move]], kinds: list[str], count: int, seed: int
) -> list[str]:
    """`count` lines "fen; moves", without repetitions, from positions of a random one of `kinds`
    each.
    """
    sources = [positions(kind, seed + number) for number, kind in enumerate(kinds)]
    rng = random.Random(seed)
    lines = {}
    while len(lines) < count:
        board = next(rng.choice(sources))
        board.clear_stack()
        solutions = solve(board)
        if 0 < len(solutions) <= MOST_SOLUTIONS:
            lines[board.fen()] = f"{board.fen()}; {' '.join(move.uci() for move in solutions)}"
    return list(lines.values())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--each", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    suites = {
        "mate-in-one": (mates_in_one, ["random-plies", "few-piece"]),
        "mate-in-two": (mates_in_two, ["few-piece"]),
        "hanging-piece": (hanging, ["random-plies", "standard"]),
    }
    path = (
        Path(__file__).parent.parent / "chessnn_colab" / "arena" / "chess" / "data" / "tactics.txt"
    )
    text = ""
    for number, (name, (solve, kinds)) in enumerate(suites.items()):
        lines = collect(solve, kinds, options.each, options.seed + 1000 * number)
        text += "".join(f"{name}; {line}\n" for line in lines)
        print(f"{name}: {len(lines)}", flush=True)
    path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
