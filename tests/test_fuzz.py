"""Broken FEN, PGN, moves and UCI commands, through every reader: the project's own error, or what
it read is chess.
"""

import functools
import io
import random
import re
from pathlib import Path

import chess
import pytest

from chessnn_colab.arena.chess.limits import read_limits
from chessnn_colab.arena.chess.uci import Engine
from chessnn_colab.errors import NotationError
from chessnn_colab.games.chess.boards import boards_from_state
from chessnn_colab.games.chess.notation import board_from_fen, parse_move, state_from_boards
from chessnn_colab.games.chess.pgn import game_from_pgn
from chessnn_colab.games.chess.rules import Chess

from .chess_games import FENS, check_legal_moves, check_positions, mutated, played_games
from .counts import full
from .small_run import make_run
from .test_pgn import SCHOLARS_MATE, pgn_of, text_of

FEN_TEXTS = full(900, 12_000)
PGN_TEXTS = full(200, 8_000)
COMMANDS = full(600, 8_000)


@functools.cache
def seeds() -> list[str]:
    return [
        *FENS,
        *(board.fen(en_passant="fen") for board in played_games(60, 90, seed=21)),
        "r1bqkb1r/pppp1Qpp/2n2n2/4p3/2B1P3/8/PPPP1PPP/RNB1K1NR b KQkq - 0 4",  # mate
        "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1",
        "8/8/8/8/8/5k2/8/5K1N w - - 3 90",
        "7k/8/8/8/8/8/7r/K7 w - - 100 160",
    ]


@functools.cache
def pgns() -> list[str]:
    return [
        SCHOLARS_MATE,
        *map(pgn_of, played_games(12, 10, seed=22)),
        pgn_of(played_games(1, 40, seed=23)[0]),
        "\n\n".join(map(pgn_of, played_games(3, 8, seed=24))),
    ]


NINES = ("9" * 20, "9" * 400, "9" * 5000)  # too large for an int64, for a float, for int()
PLAIN = 'abcdefgh0123456789kqrnbpKQRNBPOxw-+=#/. *[]{}();$"\\\n'
STRANGE = "\0\x1b\x7f\x85\r\t\ufeff\u00a0\u00b2\u0663\u00e9\u2654\u2028\u202e\uff11\ud800\U0001f642"


def broken(rng: random.Random, sources: list[str]) -> str:
    """One of `sources` with characters, fields or digits changed, or a part of it repeated without
    end.
    """
    text = rng.choice(sources)
    kind = rng.randrange(5)
    if kind == 0:
        return mutated(rng, text, PLAIN)
    if kind == 1:
        return mutated(rng, text, STRANGE)
    if kind == 2:  # fields: two exchanged, or one of another text in the place of one
        fields, others = (re.findall(r"\s+|\S+", source) for source in (text, rng.choice(sources)))
        one = rng.randrange(len(fields))
        other = rng.randrange(len(fields))
        fields[one], fields[other] = rng.choice(
            ((fields[other], fields[one]), (rng.choice(others), fields[other]))
        )
        return "".join(fields)
    places = [match.span() for match in re.finditer(r"\d+", text)] or [(0, 0)]
    start, end = rng.choice(places)
    if kind == 3:
        digits = rng.choice(
            (str(rng.randrange(10)), "-1", "1e9", "0x1", "+1", "1_0", "\u0663", *NINES)
        )
        return text[:start] + digits + text[end:]
    start, end = sorted(rng.randrange(len(text) + 1) for _ in range(2))
    return text[:end] + text[start:end][:40] * rng.choice((2, 20, 300)) + text[end:]


def read(reader, text: str):
    """What `reader` makes of a text, None when it is refused as it should be."""
    try:
        return reader(text)
    except NotationError as error:
        assert str(error).isprintable() and len(str(error)) < 700, f"{text!r}: {error!r}"
    except Exception as error:
        raise AssertionError(f"{text!r}: {error!r}") from error


def test_a_broken_fen_is_refused_or_is_that_position():
    rng = random.Random(31)
    game = Chess()
    boards = []
    texts = []
    for _ in range(FEN_TEXTS):
        text = broken(rng, seeds())
        if (board := read(board_from_fen, text)) is not None:
            assert board.is_valid(), text
            boards.append(board)
            texts.append(text)
    assert FEN_TEXTS // 20 < len(boards) < FEN_TEXTS
    state = state_from_boards(boards, game)
    check_positions(state, boards)
    check_legal_moves(game, state, boards)
    for text, board, back in zip(texts, boards, boards_from_state(state), strict=True):
        assert back.is_valid() and back.fen(en_passant="fen") == board.fen(en_passant="fen"), text
        assert read(board_from_fen, back.fen(en_passant="fen")) == board, text


def test_a_broken_pgn_is_refused_or_holds_a_game_of_chess(caplog):
    rng = random.Random(32)
    taken = 0
    for _ in range(PGN_TEXTS):
        text = broken(rng, pgns())
        parsed = read(game_from_pgn, text)
        if parsed is None:
            continue
        taken += 1
        board = parsed.end().board()
        assert board.is_valid() and len(board.move_stack) == len(list(parsed.mainline())), text
        back = game_from_pgn(text_of(board, "unfinished", 0))
        assert back.board() == parsed.board(), text
        assert list(back.mainline_moves()) == board.move_stack, text
    assert PGN_TEXTS // 20 < taken < PGN_TEXTS
    assert not caplog.records


def test_a_broken_move_is_refused_or_legal():
    rng = random.Random(33)
    boards = [chess.Board(fen) for fen in seeds()]
    boards = [board for board in boards if any(board.legal_moves)]
    taken = 0
    for _ in range(COMMANDS):
        board = rng.choice(boards)
        move = rng.choice(list(board.legal_moves))
        text = broken(rng, [move.uci(), board.san(move)])
        played = read(lambda text, board=board: parse_move(text, board), text)
        if played is not None:
            taken += 1
            assert board.is_legal(played), (text, board.fen())
    assert COMMANDS // 20 < taken < COMMANDS


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> str:
    return make_run(Path(tmp_path_factory.mktemp("fuzz")) / "run", (0,))


def test_a_broken_uci_position_is_answered_or_taken(run):
    engine = Engine(run, None, io.StringIO(), io.StringIO())
    rng = random.Random(34)
    sources = [
        "position startpos moves e2e4 e7e5 g1f3",
        "setoption name Simulations value 64",
        "isready",
        "ucinewgame",
        *(f"position fen {fen}" for fen in seeds()),
        f"position fen {FENS[1]} moves e1g1 a6e2 c3e2",
    ]
    taken = 0
    for _ in range(COMMANDS):
        line = broken(rng, sources)
        before = engine.board
        engine.answers.seek(0)
        engine.answers.truncate()
        try:
            engine.obey(line)
        except Exception as error:
            raise AssertionError(f"{line!r}: {error!r}") from error
        said = engine.answers.getvalue()
        assert said[:-1].isprintable() and said[-1:] in ("", "\n"), line
        assert engine.board.is_valid() and (engine.board is before or not said), line
        taken += engine.board is not before
    assert COMMANDS // 50 < taken < COMMANDS


def test_bytes_that_are_no_text_do_not_end_a_uci_game(run):
    """A terminal of another encoding, whichever way: the command is refused, and the next one is
    answered.
    """
    commands = io.BytesIO(b"isready\n\xff\xe9\nposition fen \xe2\x99\x94\nisready\n")
    answers = io.BytesIO()
    talking = Engine(
        run, None, io.TextIOWrapper(commands, "ascii"), io.TextIOWrapper(answers, "ascii")
    )
    talking.loop()
    said = answers.getvalue().decode("ascii").splitlines()
    assert [line.split()[0] for line in said] == [
        "readyok",
        "info",
        "info",
        "readyok",
    ] and "xff" in said[1]


def test_a_broken_go_is_refused_or_has_limits():
    rng = random.Random(35)
    sources = [
        "wtime 1000 btime 900 winc 10 binc 10 movestogo 3",
        "movetime 50",
        "nodes 7 searchmoves e2e4 d2d4",
        "depth 3",
        "infinite",
        "ponder wtime 1 btime 1",
    ]
    taken = 0
    for _ in range(COMMANDS):
        line = broken(rng, sources)
        try:
            limits = read_limits(line.split(), chess.Board(), 16)
        except (NotationError, ValueError):
            continue
        except Exception as error:
            raise AssertionError(f"{line!r}: {error!r}") from error
        taken += 1
        assert limits.seconds is None or limits.seconds >= 0, line
        assert all(map(chess.Board().is_legal, limits.moves)), line
    assert COMMANDS // 20 < taken < COMMANDS
