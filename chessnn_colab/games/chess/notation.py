"""Chess as people write it, in FEN, UCI and SAN, to and from states and actions; python-chess reads
and writes.

This is where input is checked: anything that is not chess raises NotationError, which quotes it.
python-chess shows a position as White sees it, a state shows it as its mover does, so Black's
squares are flipped here (square ^ 56).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

import chess
import torch

from ...errors import NotationError
from ..base import where
from .bitboards import signed
from .moves import PLANES, destinations
from .rules import Chess
from .state import ChessState, Position

MAX_COUNTER = 32_767  # of either FEN counter: a packed position keeps its ply in 16 bits
_PIECES = (chess.PAWN, chess.KNIGHT, chess.BISHOP, chess.ROOK, chess.QUEEN, chess.KING)
_UNDERPROMOTIONS = (None, chess.KNIGHT, chess.BISHOP, chess.ROOK)  # as moves.PLANES numbers them
_UNSIGNED = (1 << 64) - 1
_DESTINATIONS = destinations().tolist()
_UCI = re.compile("[a-h][1-8][a-h][1-8][nbrq]?")
_QUOTED = 120  # characters of bad input that an error repeats


def board_from_fen(fen: str) -> chess.Board:
    """The position of `fen`. Raises NotationError when it cannot be read, or is not a possible
    position of chess.
    """
    try:
        board = chess.Board(fen)
    except ValueError as error:
        why = str(error).partition(": ")[0]  # what follows repeats the FEN
        raise NotationError(
            f"invalid FEN {quote(fen)}: {why}; a valid one is {chess.STARTING_FEN!r}"
        ) from error
    check_board(board, fen)
    return board


def check_board(board: chess.Board, fen: str | None = None) -> None:
    """Raise NotationError, with the reason, for an impossible position or another kind of chess.

    fen: the text that gave the position, for the error to quote.
    """
    status = board.status()
    reasons = [str(flag.name).lower().replace("_", " ") for flag in chess.Status if flag & status]
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
    """A state with one row per FEN, each a game that starts there. Raises NotationError, also when
    `fens` is empty.
    """
    return state_from_boards([board_from_fen(fen) for fen in fens], game)


def state_from_boards(boards: Sequence[chess.Board], game: Chess) -> ChessState:
    """A state with one row per board, whose moves are played again as far as they matter to
    repetitions.

    The ply cap counts from the positions given. A board that was played on after a draw is an
    unfinished game. Raises NotationError for an impossible position, an illegal past, and when
    `boards` is empty.
    """
    if not boards:
        raise NotationError("no positions: expected at least one")
    starts, actions = zip(*map(_rewound, boards))
    rows = torch.tensor([_row(board) for board in starts], dtype=torch.int64, device=game.device)
    state = game.from_position(Position(rows[:, :12], *rows[:, 12:].unbind(1)))
    lengths = torch.tensor([len(played) for played in actions], device=game.device)
    state.plies_played.copy_(-lengths)  # the cap counts from the last position on
    for ply in range(max(map(len, actions))):
        action = torch.tensor(
            [played[ply] if ply < len(played) else 0 for played in actions], device=game.device
        )
        state = where(lengths > ply, game.step(reopen(state), action), state)
    return state


def reopen(state: ChessState) -> ChessState:
    """The same positions as unfinished games, so that step plays on after a draw or the ply cap."""
    flags = state.flags.clone()
    flags[:, 1:] = False
    return dataclasses.replace(state, flags=flags)


def _rewound(board: chess.Board) -> tuple[chess.Board, list[int]]:
    """The position after the last capture or pawn move that `board` remembers, and the actions
    since.
    """
    check_board(board)
    start = board.copy()
    moves = []
    while start.move_stack and start.halfmove_clock > 0:
        moves.append(start.pop())
    check_board(start)
    current = start.copy(stack=False)
    actions = []
    for move in reversed(moves):
        actions.append(action_from_move(move, current))
        current.push(move)
    return start, actions


def _row(board: chess.Board) -> list[int]:
    """The numbers of a Position: twelve bitboards and five columns, as the mover sees them."""

    def seen(bits: int) -> int:
        return signed(bits if board.turn else chess.flip_vertical(bits))

    sides = (board.turn, not board.turn)
    pieces = [seen(board.pieces_mask(piece, colour)) for colour in sides for piece in _PIECES]
    ep_square = 0 if board.ep_square is None else seen(1 << board.ep_square)
    return [
        *pieces,
        seen(board.castling_rights),
        ep_square,
        board.halfmove_clock,
        board.ply(),
        int(not board.turn),
    ]


def boards_from_state(state: ChessState) -> list[chess.Board]:
    """One python-chess board per row of `state`, without the moves that led there."""
    return [_board(*row) for row in zip(*(column.tolist() for column in state.position))]


def _board(
    pieces: list[int], castling_rights: int, ep_square: int, clock: int, ply: int, player: int
) -> chess.Board:
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


def action_from_move(move: chess.Move, board: chess.Board) -> int:
    """The action number of a legal move of the side to move on `board`. Raises NotationError when
    it is not legal.
    """
    if not board.is_legal(move):
        raise NotationError(f"illegal move {move.uci()!r} in {board.fen()!r}: {_expected(board)}")
    flip = 0 if board.turn else 56
    origin = move.from_square ^ flip
    target = move.to_square ^ flip
    files = chess.square_file(target) - chess.square_file(origin)
    ranks = chess.square_rank(target) - chess.square_rank(origin)
    if board.is_castling(move):  # python-chess also takes the king's move onto its rook
        files = 2 if files > 0 else -2
    piece = _UNDERPROMOTIONS.index(move.promotion) if move.promotion in _UNDERPROMOTIONS else 0
    return PLANES.index((files, ranks, piece)) * 64 + origin


def move_from_action(action: int, board: chess.Board) -> chess.Move:
    """The move that `action` stands for on `board`. Raises NotationError when it is not legal
    there.
    """
    if not 0 <= action < len(_DESTINATIONS):
        raise NotationError(f"unknown action {action}: expected 0 to {len(_DESTINATIONS) - 1}")
    plane, origin = divmod(action, 64)
    target = _DESTINATIONS[action]
    flip = 0 if board.turn else 56
    promotion = _UNDERPROMOTIONS[PLANES[plane][2]]
    if promotion is None and target >= 56 and board.piece_type_at(origin ^ flip) == chess.PAWN:
        promotion = chess.QUEEN
    move = chess.Move(origin ^ flip, target ^ flip, promotion)
    # An action that leaves the board has the destination a1: the way back tells the two apart.
    if not board.is_legal(move) or action_from_move(move, board) != action:
        raise NotationError(f"illegal action {action} in {board.fen()!r}: {_expected(board)}")
    return move


def parse_move(text: str, board: chess.Board, place: str = "") -> chess.Move:
    """A legal move of `board` from UCI ("e2e4", "E7E8Q") or SAN ("Nf3", "0-0", "a8=Q", "a8q"),
    spaces around it or not.

    place: what an error calls the position, instead of its FEN. Raises NotationError, which quotes
    `text`.
    """
    place = place or repr(board.fen())
    try:
        move = _read_move(text.strip(), board)
    except chess.AmbiguousMoveError as error:
        raise NotationError(
            f"ambiguous move {quote(text)} in {place}: say which piece moves, as in Nbd2 or b1d2"
        ) from error
    except chess.IllegalMoveError as error:
        raise NotationError(f"illegal move {quote(text)} in {place}: {_expected(board)}") from error
    except ValueError as error:
        raise NotationError(
            f"unreadable move {quote(text)} in {place}: expected UCI such as e2e4 or SAN such as Nf3"
        ) from error
    if not move:
        raise NotationError(f"null move {quote(text)} in {place}: {_expected(board)}")
    return move


def _read_move(text: str, board: chess.Board) -> chess.Move:
    # B2b3 is a bishop's move: capitals are UCI only where they cannot be SAN.
    if _UCI.fullmatch(text) or (_UCI.fullmatch(text.lower()) and not chess.SAN_REGEX.match(text)):
        return board.parse_uci(text.lower())
    return board.parse_san(text)


def quote(text: object) -> str:
    """Bad input as an error repeats it: on one line, cut off when it is long."""
    shown = repr(text)
    return shown if len(shown) <= _QUOTED else f"{shown[:_QUOTED]}..."


def _expected(board: chess.Board) -> str:
    moves = [move.uci() for move in board.legal_moves]
    if not moves:
        return "no move is legal there, the game is over"
    if len(moves) <= 5:
        return f"expected {' or '.join(moves)}"
    promotions = [move for move in board.legal_moves if move.promotion]
    hint = f"; a promotion names its piece, as in {board.san(promotions[0])}" if promotions else ""
    return f"expected one of its {len(moves)} legal moves, such as {moves[0]}{hint}"
