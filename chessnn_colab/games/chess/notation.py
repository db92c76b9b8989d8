"""Chess as people write it, FEN, UCI and SAN, to and from states and actions; python-chess reads and writes.

This is the boundary where input is checked: whatever is not chess raises NotationError, quoting it. python-chess
shows the board as White sees it, a state as its mover does, so that Black's squares are flipped (square ^ 56).
"""

from __future__ import annotations

import dataclasses
import re
from typing import Iterator, Sequence

import chess
import torch

from ...errors import NotationError
from ..base import where
from .bitboards import DIRECTIONS, KNIGHT_JUMPS, signed
from .rules import Chess, ChessState, destinations
from .moves import KNIGHT_PLANES, UNDERPROMOTION_PLANES

MAX_COUNTER = 32_767  # of either FEN counter: a packed position keeps its ply in 16 bits
_PIECES = (chess.PAWN, chess.KNIGHT, chess.BISHOP, chess.ROOK, chess.QUEEN, chess.KING)
_UNDERPROMOTIONS = (chess.KNIGHT, chess.BISHOP, chess.ROOK)
_UNSIGNED = (1 << 64) - 1
_DESTINATIONS = destinations().tolist()
_UCI = re.compile("[a-h][1-8][a-h][1-8][nbrq]?")
_FAULTS = {chess.IllegalMoveError: "illegal", chess.AmbiguousMoveError: "ambiguous"}
_QUOTED = 120  # characters of bad input that an error repeats


def board_from_fen(fen: str) -> chess.Board:
    """The position of `fen`, legal. Raises NotationError for what cannot be read or cannot be chess."""
    try:
        board = chess.Board(fen)
    except ValueError as error:
        why = str(error).partition(": ")[0]  # what follows repeats the FEN
        raise NotationError(f"invalid FEN {quote(fen)}: {why}; a valid one is {chess.STARTING_FEN!r}") from error
    check_board(board, fen)
    return board


def check_board(board: chess.Board, fen: str | None = None) -> None:
    """Raises NotationError, saying why, when the position cannot arise in chess, or is of another kind of chess.

    fen: how the position was given, for the error to quote.
    """
    status = board.status()
    reasons = [flag.name.lower().replace("_", " ") for flag in chess.Status if flag & status]
    if board.uci_variant != "chess" or board.chess960:
        reasons.append(f"this is {'Chess960' if board.chess960 else board.uci_variant}")
    if board.promoted & board.kings:
        reasons.append("a king that was a pawn")
    if max(board.halfmove_clock, board.fullmove_number) > MAX_COUNTER:
        reasons.append(f"a counter above {MAX_COUNTER:,}")
    if reasons:
        raise NotationError(
            f"impossible position {quote(fen or board.fen(en_passant='fen'))}: {', '.join(reasons)}; "
            "expected one of ordinary chess"
        )


def state_from_fens(fens: Sequence[str], game: Chess) -> ChessState:
    """One state a FEN, without a past. Raises NotationError, for no FENs at all too."""
    return state_from_boards([board_from_fen(fen) for fen in fens], game)


def state_from_boards(boards: Sequence[chess.Board], game: Chess) -> ChessState:
    """One state a board; its moves since the last capture or pawn move are played again, so that repetitions count.

    The ply cap counts from here. A board that was played on past a draw is taken as it stands. Raises NotationError.
    """
    if not boards:
        raise NotationError("no positions: expected at least one")
    starts, actions = zip(*(_rewound(board) for board in boards))
    state = _without_past(starts, game)
    lengths = torch.tensor([len(played) for played in actions], device=game.device)
    state = dataclasses.replace(state, plies_played=-lengths)
    for state in play_on(state, actions, game):
        pass
    return state


def play_on(state: ChessState, actions: Sequence[Sequence[int]], game: Chess) -> Iterator[ChessState]:
    """The states before, between and after `actions`, legal ones for each row; a shorter row waits at its end.

    Draws do not end a row: people play on when nobody claims them.
    """
    yield state
    for ply in range(max(map(len, actions))):
        playing = torch.tensor([ply < len(played) for played in actions], device=game.device)
        action = torch.tensor([played[ply] if ply < len(played) else 0 for played in actions], device=game.device)
        state = where(playing, game.step(reopen(state), action), state)
        yield state


def reopen(state: ChessState) -> ChessState:
    """The same positions, not finished, so that any legal move in them can be played."""
    no = torch.zeros_like(state.terminated)
    return dataclasses.replace(state, terminated=no, truncated=no)


def _rewound(board: chess.Board) -> tuple[chess.Board, list[int]]:
    """The position after the last capture or pawn move that `board` remembers, and the actions since."""
    check_board(board)
    start, moves = board.copy(), []
    while start.move_stack and start.halfmove_clock > 0:
        moves.append(start.pop())
    check_board(start)
    current, actions = start.copy(stack=False), []
    for move in reversed(moves):
        actions.append(action_from_move(move, current))
        current.push(move)
    return start, actions


def _without_past(boards: Sequence[chess.Board], game: Chess) -> ChessState:
    rows = torch.tensor([_row(board) for board in boards], dtype=torch.int64, device=game.device)
    return game.from_position(rows[:, :12], *rows[:, 12:].unbind(1))


def _row(board: chess.Board) -> list[int]:
    """Twelve bitboards, castling rights, en-passant square, clock, ply and player, as the mover sees them."""

    def seen(bits: int) -> int:
        return signed(bits if board.turn else chess.flip_vertical(bits))

    sides = (board.turn, not board.turn)
    pieces = [seen(board.pieces_mask(piece, colour)) for colour in sides for piece in _PIECES]
    ep_square = 0 if board.ep_square is None else seen(1 << board.ep_square)
    return [*pieces, seen(board.castling_rights), ep_square, board.halfmove_clock, board.ply(), int(not board.turn)]


def boards_from_state(state: ChessState) -> list[chess.Board]:
    """The positions as python-chess boards, without their past."""
    columns = (
        state.pieces,
        state.castling_rights,
        state.ep_square,
        state.halfmove_clock,
        state.ply,
        state.current_player,
    )
    return [_board(*row) for row in zip(*(column.tolist() for column in columns))]


def _board(pieces: list[int], castling_rights: int, ep_square: int, clock: int, ply: int, player: int) -> chess.Board:
    def seen(bits: int) -> int:
        return chess.flip_vertical(bits & _UNSIGNED) if player else bits & _UNSIGNED

    board = chess.Board(None)
    board.turn = player == 0
    for number, bits in enumerate(pieces):
        for square in chess.scan_forward(seen(bits)):
            board.set_piece_at(square, chess.Piece(_PIECES[number % 6], (number < 6) == board.turn))
    board.castling_rights = seen(castling_rights)
    board.ep_square = chess.msb(seen(ep_square)) if ep_square else None
    board.halfmove_clock = clock
    board.fullmove_number = ply // 2 + 1
    return board


def fens_from_state(state: ChessState) -> list[str]:
    """The positions as FEN, with the en-passant square after every double push, as the FEN standard has it."""
    return [board.fen(en_passant="fen") for board in boards_from_state(state)]


def action_from_move(move: chess.Move, board: chess.Board) -> int:
    """The action number of a legal move of the side to move on `board`. Raises NotationError when it is not legal."""
    if not board.is_legal(move):
        raise NotationError(f"illegal move {move.uci()!r} in {board.fen()!r}: {_expected(board)}")
    flip = 0 if board.turn else 56
    origin, target = move.from_square ^ flip, move.to_square ^ flip
    files = chess.square_file(target) - chess.square_file(origin)
    ranks = chess.square_rank(target) - chess.square_rank(origin)
    if board.is_castling(move):  # python-chess also takes the king's move onto its rook
        files = 2 if files > 0 else -2
    return _plane(files, ranks, move.promotion) * 64 + origin


def _plane(files: int, ranks: int, promotion: int | None) -> int:
    if promotion in _UNDERPROMOTIONS:
        return UNDERPROMOTION_PLANES + 3 * _UNDERPROMOTIONS.index(promotion) + files + 1
    if files and ranks and abs(files) != abs(ranks):
        return KNIGHT_PLANES + KNIGHT_JUMPS.index((files, ranks))
    distance = max(abs(files), abs(ranks))
    return DIRECTIONS.index((files // distance, ranks // distance)) * 7 + distance - 1


def move_from_action(action: int, board: chess.Board) -> chess.Move:
    """The move that an action means on `board`. Raises NotationError when it is none, or not legal there."""
    if not 0 <= action < Chess.num_actions:
        raise NotationError(f"unknown action {action}: expected 0 to {Chess.num_actions - 1}")
    plane, origin = divmod(action, 64)
    target = _DESTINATIONS[action]
    flip = 0 if board.turn else 56
    promotion = None
    if plane >= UNDERPROMOTION_PLANES:
        promotion = _UNDERPROMOTIONS[(plane - UNDERPROMOTION_PLANES) // 3]
    elif target >= 56 and board.piece_type_at(origin ^ flip) == chess.PAWN:
        promotion = chess.QUEEN
    move = chess.Move(origin ^ flip, target ^ flip, promotion)
    # The way back tells an action that leaves the board from one to a1.
    if not board.is_legal(move) or action_from_move(move, board) != action:
        raise NotationError(f"illegal action {action} in {board.fen()!r}: {_expected(board)}")
    return move


def parse_move(text: str, board: chess.Board) -> chess.Move:
    """A legal move from UCI ("e2e4", "e7e8q") or SAN ("Nf3"). Raises NotationError quoting text and position."""
    try:
        move = _read_move(text.strip(), board)
    except ValueError as error:
        fault = _FAULTS.get(type(error), "unreadable")
        raise NotationError(f"{fault} move {quote(text)} in {board.fen()!r}: {_expected(board)}") from error
    if not move:
        raise NotationError(f"null move {quote(text)} in {board.fen()!r}: {_expected(board)}")
    return move


def _read_move(text: str, board: chess.Board) -> chess.Move:
    # Only lower case is UCI: B2b3 is a bishop's move in SAN.
    return board.parse_uci(text) if _UCI.fullmatch(text) else board.parse_san(text)


def quote(text: object) -> str:
    """Bad input as an error repeats it: on one line, the end left off when it is long."""
    shown = repr(text)
    return shown if len(shown) <= _QUOTED else f"{shown[:_QUOTED]}..."


def _expected(board: chess.Board) -> str:
    moves = [move.uci() for move in board.legal_moves]
    if not moves:
        return "no move is legal there, the game is over"
    if len(moves) <= 5:
        return f"expected {' or '.join(moves)}"
    return f"expected one of its {len(moves)} legal moves, like {moves[0]}"
