"""Games of Gomoku as PSQ, both ways; broken texts are refused in a sentence."""

import random

import pytest
import torch

from chessnn_colab.errors import NotationError
from chessnn_colab.games.base import finished
from chessnn_colab.games.gomoku.psq import psq_text, read_psq
from chessnn_colab.games.gomoku.record import Record, moves_to, position_after
from chessnn_colab.games.registry import game_text, make_game

from .counts import full

# As Gomocup's archives have them: an assigned opening, milliseconds, the names of programs, a number, the league.
GOMOCUP = (
    "Piskvorky 20x20, 11:11, 0\n10,10,0\n11,10,0\n9,9,1024\n1,20,37\npbrain-a.zip\npbrain-b.zip\n-1\n0,Freestyle1\n"
)
# As Piskvork itself saves a game of two people.
PISKVORK = "Piskvorky 15x15, 0:0, 0\r\n8,8,0\r\n9,9,0\r\n0\r\n"


def played(name: str, seed: int) -> tuple:
    """A game with random moves from a random start: the game, its start, its moves and its last position."""
    game, generator = make_game(name), torch.Generator().manual_seed(seed)
    start, actions = game.starts(1, "random-plies", generator), []
    state = start
    while not finished(state):
        mask = game.legal_action_mask(state)
        actions.append(int(torch.where(mask, torch.rand(mask.shape, generator=generator), -1.0).argmax()))
        state = game.step(state, torch.tensor(actions[-1:]))
    return game, start, actions, state


@pytest.mark.parametrize("name", ["gomoku:9", "gomoku:9:exact", "gomoku"])
def test_a_game_written_down_is_read_back(name):
    game, start, actions, state = played(name, 3)
    result = int(state.rewards[0, 0].sign())
    text = game_text(game, start, actions, int(state.ending), result, Event="Self-play", White="B", Black="A")
    record = read_psq(text)
    assert (record.size, record.black, record.white) == (game.size, "A", "B")
    assert record.headers["Event"] == "Self-play" and record.headers["Rule"].startswith(
        "exactly" if game.exact else "five"
    )
    assert list(record.actions[-len(actions) :]) == actions
    assert torch.equal(position_after(game, record.actions).board, state.board)
    winner = {1: "Black wins", -1: "White wins", 0: "no winner"}[result]
    assert record.headers["Ending"] == f"{game.endings[state.ending]}, {winner}"


def test_an_illegal_move_is_not_written():
    game = make_game("gomoku:9")
    with pytest.raises(NotationError, match="move 2, e5: there is a stone already"):
        game_text(game, game.init(1), [40, 40], 0, 0)
    won = [0, 80, 1, 79, 2, 77, 3, 76, 4]
    with pytest.raises(NotationError, match="move 10, a1: the game has ended before it"):
        game_text(game, game.init(1), [*won, 72], 1, 1)
    with pytest.raises(NotationError, match="off the board"):
        position_after(game, [81])


def test_a_cap_on_plies_does_not_end_a_line():
    game = make_game("gomoku:9", max_plies=1)
    state = position_after(game, [40, 41, 42])
    assert not finished(state) and int(state.plies_played) == 0 and int((state.board > 0).sum()) == 3


def test_texts_of_other_programs():
    record = read_psq(GOMOCUP)
    assert (record.size, record.black, record.white) == (20, "pbrain-a.zip", "pbrain-b.zip")
    assert record.actions == (9 * 20 + 9, 9 * 20 + 10, 8 * 20 + 8, 19 * 20)
    assert read_psq(PISKVORK) == Record(15, (7 * 15 + 7, 8 * 15 + 8))


def test_records_come_back_whole():
    rng = random.Random(0)
    for size in (5, 9, 15, 20):
        cells = rng.sample(range(size**2), 20)
        record = Record(size, tuple(cells), "A", "B (two)", {"Event": "x against y", "Round": "3"})
        assert read_psq(psq_text(record)) == record
        assert read_psq(psq_text(Record(size, ()))) == Record(size, ())
    awkward = Record(9, (1, 2), "12,12,0", "]\\\nC", {"Reason": "a [b] c"})
    assert read_psq(psq_text(awkward)).actions == (1, 2)


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "bad PSQ '': expected lines like"),
        ("1. e4 e5", "bad PSQ '1. e4 e5'"),
        ("Piskvorky 15x19, 0:0, 0", "a board of 15x19, expected a square"),
        ("Piskvorky 4x4, 0:0, 0", "a board of 4x4: expected a size from 5 to 20"),
        ("Piskvorky 999x999, 0:0, 0", "a board of 999x999"),
        ("Piskvorky 9x9, 0:0, 0\n10,1,0", "a move is off the board of 9x9"),
        ("Piskvorky 9x9, 0:0, 0\n0,1,0", "off the board"),
        ("Piskvorky 9x9, 0:0, 0\n1,1,0\n1,1,0", "move 2, a9: there is a stone already"),
        ("Piskvorky 9x9, 0:0, 0\n1,1,0\n1,,", "after 1 moves"),
        ("x" * 1_000_001, "PSQ of 1,000,001 characters"),
    ],
)
def test_broken_psq_is_refused(text, words):
    with pytest.raises(NotationError, match=words.replace("(", "\\(")):
        read_psq(text)


def test_whatever_is_read_can_be_played():
    """Texts with characters changed, lost and doubled give a record that makes sense, or the project's own error."""
    rng, good = random.Random(5), 0
    for _ in range(full(500, 20_000)):
        text = list(rng.choice([GOMOCUP, PISKVORK]))
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(text))
            text[at : at + rng.randint(0, 2)] = rng.choice(
                ["", "9" * 30, "[", "]", "\n", ",", "-", "\0", "\u0663", "x", ";", "("]
            )
        try:
            record = read_psq("".join(text))
        except NotationError:
            continue
        good += 1
        assert 5 <= record.size <= 20 and len(set(record.actions)) == len(record.actions)
        assert all(0 <= action < record.size**2 for action in record.actions)
    assert good > 20


def test_moves_to_a_position():
    assert moves_to([0, 1, 2, 1, 0]) == [1, 2, 3] and moves_to([0] * 9) == []
    with pytest.raises(NotationError, match="2 black and 0 white stones"):
        moves_to([1, 1, 0])
