"""Games played on tensors and on python-chess boards at once, and what is compared between the two.

The encoding of moves and positions is written here a second time, from its description and not from
the code.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache

import chess
import numpy as np
import torch

from chessnn_colab.games.base import concatenate, finished, select, where
from chessnn_colab.games.chess.boards import boards_from_state
from chessnn_colab.games.chess.notation import reopen, state_from_boards
from chessnn_colab.games.chess.rules import Chess
from chessnn_colab.games.chess.state import ChessState

KIWIPETE = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"
POSITION_3 = "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1"
POSITION_4 = "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1"
POSITION_5 = "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8"
POSITION_6 = "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10"
PROMOTIONS = "n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1"
CASTLING = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1"
FENS = (
    chess.STARTING_FEN,
    KIWIPETE,
    POSITION_3,
    POSITION_4,
    POSITION_5,
    POSITION_6,
    PROMOTIONS,
    CASTLING,
    "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1",
    "8/8/8/K1pP3q/8/8/8/7k w - c6 0 1",
    "4k3/8/8/8/8/8/8/R3K3 b Q - 77 120",
    "8/8/4k3/8/8/3K4/8/R7 w - - 99 32767",
)

QUEEN_DELTAS = (8, 1, 9, 7, -8, -1, -9, -7)
KNIGHT_DELTAS = (17, 15, 10, 6, -17, -15, -10, -6)
UNDERPROMOTIONS = (chess.KNIGHT, chess.BISHOP, chess.ROOK)

Choice = Callable[[random.Random, chess.Board, list[chess.Move]], chess.Move]


@cache
def encode(origin: int, target: int, promotion: int | None) -> int:
    """The action of a move between two squares as the mover sees them."""
    delta = target - origin
    if promotion in UNDERPROMOTIONS:
        return (64 + 3 * UNDERPROMOTIONS.index(promotion) + (7, 8, 9).index(delta)) * 64 + origin
    distance = chess.square_distance(origin, target)
    straight = delta // distance
    if straight * distance == delta and chess.square_distance(origin, origin + straight) == 1:
        return (QUEEN_DELTAS.index(straight) * 7 + distance - 1) * 64 + origin
    return (56 + KNIGHT_DELTAS.index(delta)) * 64 + origin


def action_of(move: chess.Move, turn: chess.Color) -> int:
    flip = 0 if turn else 56
    return encode(move.from_square ^ flip, move.to_square ^ flip, move.promotion)


def state_from_fens(fens: Sequence[str], game: Chess) -> ChessState:
    """A state with one row per FEN."""
    return state_from_boards([chess.Board(fen) for fen in fens], game)


def legal_sets(game: Chess, state: ChessState) -> list[set[int]]:
    """The legal actions of each row."""
    rows, actions = np.nonzero(game.legal_action_mask(state).numpy())
    ends = np.searchsorted(rows, np.arange(1, len(state.ply)))
    return [set(part.tolist()) for part in np.split(actions, ends)]


def check_legal_moves(
    game: Chess, state: ChessState, boards: Sequence[chess.Board]
) -> list[dict[int, chess.Move]]:
    """The legal moves of each board by action, after checking that the tensors have the same
    ones.
    """
    expected = [
        {action_of(move, board.turn): move for move in board.legal_moves} for board in boards
    ]
    for board, moves, actions in zip(boards, expected, legal_sets(game, state)):
        missing = [move.uci() for action, move in moves.items() if action not in actions]
        assert actions == moves.keys(), (
            f"{board.fen()}: missing {missing}, too many {actions - moves.keys()}"
        )
    return expected


def check_positions(state: ChessState, boards: Sequence[chess.Board]) -> None:
    """Pieces, castling rights, en-passant square, counters and side to move are those of the
    boards.
    """
    for found, board in zip(boards_from_state(state), boards, strict=True):
        assert found.fen(en_passant="fen") == board.fen(en_passant="fen")


def any_move(rng: random.Random, board: chess.Board, moves: list[chess.Move]) -> chess.Move:
    return rng.choice(moves)


def mostly_captures(rng: random.Random, board: chess.Board, moves: list[chess.Move]) -> chess.Move:
    captures = [move for move in moves if board.is_capture(move) or move.promotion]
    return rng.choice(captures if captures and rng.random() < 0.7 else moves)


class PairedGames:
    """Games in lockstep, each on a row of tensors and on a board; a finished game gives way to a
    new one.

    starts: the positions to begin from, in turn.
    """

    def __init__(self, game: Chess, starts: Sequence[chess.Board], count: int, seed: int):
        self.game = game
        self.starts = starts
        self.rng = random.Random(seed)
        self.boards = [starts[number % len(starts)].copy() for number in range(count)]
        self.state = state_from_boards(self.boards, game)
        self._fresh = state_from_boards(list(starts), game)
        self._next_start = count

    def step(self, moves: Sequence[dict[int, chess.Move]], choose: Choice) -> list[chess.Move]:
        """Play a move on every board; `moves` are each board's legal ones by action."""
        played = []
        for board, legal in zip(self.boards, moves):
            played.append(choose(self.rng, board, list(legal.values())))
        actions = [action_of(move, board.turn) for board, move in zip(self.boards, played)]
        for board, move in zip(self.boards, played):
            board.push(move)
        self.state = self.game.step(self.state, torch.tensor(actions))
        return played

    def replace_finished(self) -> None:
        ended = finished(self.state)
        rows = list(range(len(self.boards)))
        start_of = [0 for _ in rows]
        for row in ended.nonzero().squeeze(1).tolist():
            start_of[row] = self._next_start % len(self.starts)
            self.boards[row] = self.starts[start_of[row]].copy()
            self._next_start += 1
        self.state = where(ended, select(self._fresh, torch.tensor(start_of)), self.state)


def both_colours(fens: Sequence[str]) -> list[chess.Board]:
    """Each position and its mirror image with the colours exchanged."""
    return [board for fen in fens for board in (chess.Board(fen), chess.Board(fen).mirror())]


def every_move(
    game: Chess, boards: Sequence[chess.Board]
) -> tuple[ChessState, list[chess.Board], list[chess.Move]]:
    """The positions after each legal move of each board: tensors, boards, and the moves."""
    state = reopen(state_from_boards(boards, game))
    states = []
    after = []
    played = []
    for row, moves in enumerate(check_legal_moves(game, state, boards)):
        rows = torch.full((len(moves),), row)
        states.append(game.step(select(state, rows), torch.tensor(list(moves), dtype=torch.int64)))
        for move in moves.values():
            after.append(boards[row].copy())
            after[-1].push(move)
            played.append(move)
    return concatenate(states), after, played


def played_games(count: int, plies: int, seed: int) -> list[chess.Board]:
    """Boards with the moves of random games, half of them from other positions than the start."""
    rng = random.Random(seed)
    boards = []
    for number in range(count):
        board = chess.Board(FENS[number % len(FENS)] if number % 2 else chess.STARTING_FEN)
        for _ in range(plies):
            moves = list(board.legal_moves)
            if (
                not moves
                or board.is_insufficient_material()
                or board.halfmove_clock >= 100
                or board.is_repetition(3)
            ):
                break
            board.push(rng.choice(moves))
        boards.append(board)
    return boards


def after(board: chess.Board, move: chess.Move) -> chess.Board:
    """The board after `move`, with its past."""
    board = board.copy()
    board.push(move)
    return board


def mating(board: chess.Board, moves: int = 1) -> set[chess.Move]:
    """The moves that mate in at most `moves`, by looking at everything."""
    found = set()
    for move in board.legal_moves:
        then = after(board, move)
        if then.is_checkmate() or (
            moves > 1
            and any(then.legal_moves)
            and all(mating(after(then, reply), moves - 1) for reply in then.legal_moves)
        ):
            found.add(move)
    return found


def mutated(rng: random.Random, text: str, alphabet: str) -> str:
    """`text` with one to four places changed, cut, doubled, swapped or ended early."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        place, other = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        text = rng.choice(
            (
                text[:place] + rng.choice(alphabet) + text[place + 1 :],
                text[:place] + rng.choice(alphabet) + text[place:],
                text[:place] + text[place + 1 :],
                text[:place] + text[other:] if rng.random() < 0.2 else text,
                text[:other] + text[place:other] + text[other:],
                text[:place] if rng.random() < 0.1 else text,
            )
        )
    return text
