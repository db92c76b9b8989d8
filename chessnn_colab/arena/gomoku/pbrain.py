"""A run's network as a Gomocup engine, for Piskvork and its kind: python -m chessnn_colab pbrain RUN.

One thread reads commands, the main thread answers them and searches (see arena.growing). The protocol:
https://plastovicka.github.io/protocl2en.htm. Bad input is answered with ERROR or UNKNOWN and changes nothing.
"""

from __future__ import annotations

import re
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TextIO, cast

import torch

from ...cpu import use_threads
from ...errors import ChessnnError
from ...games.base import finished, winning_actions
from ...games.gomoku.notation import cell_at
from ...games.gomoku.rules import Gomoku
from ...games.gomoku.state import BLACK, WHITE, GomokuState
from ...search import sample_prior
from ..conversation import Conversation, playing_actor
from ..growing import MOST_SIMULATIONS, Stopped, grown_tree, tree_sizes

SIMULATIONS = 128  # of the largest search when no time is given
MARGIN = 0.1  # seconds of a turn that are kept for everything but thinking
MOVES_TO_GO = 20  # turns that the time left for the game must last for
EXACT = 1  # INFO rule: exactly five
_TIMES = ("timeout_turn", "timeout_match", "time_left")  # milliseconds
_QUIET = ("max_memory", "game_type", "folder", "evaluate")  # INFO that changes nothing here
_NUMBERS = re.compile(r"\s*-?\d{1,4}\s*(?:,\s*-?\d{1,4}\s*)*\Z", re.ASCII)


class BadCommand(ValueError):
    """A command that cannot be carried out; the text is the answer."""


def serve(run: str, snapshot: int | None = None, device: str = "auto") -> None:
    """Answer Gomocup commands from standard input until END or its end. Raises what Brain raises."""
    with use_threads(1):
        Brain(run, snapshot, device).loop()


class Brain(Conversation):
    """The state of one conversation. It reads `commands` and writes `answers`.

    Raises RunError, CheckpointError or DeviceError when the run's network cannot be loaded.
    """

    last_word = "end"

    def __init__(
        self,
        run: str,
        snapshot: int | None = None,
        device: str = "auto",
        commands: TextIO = sys.stdin,
        answers: TextIO = sys.stdout,
    ):
        super().__init__(commands, answers)
        self.actor, self.iteration = playing_actor(run, snapshot, device)
        self.game = cast(Gomoku, self.actor.game)
        self.pending: deque[str | None] = deque()  # commands that came during a search; None: the end of the input
        self.times: dict[str, int] = {}
        self.stones: dict[int, int] | None = None  # cell -> 1 our own, 2 the opponent's; None before START

    def next_command(self) -> str | None:
        """The next line, one that came during a search first, or None at the end of the input."""
        return self.pending.popleft() if self.pending else super().next_command()

    def obey(self, line: str) -> None:
        """Carry out one command."""
        word, _, rest = line.partition(" ")
        if not word:
            return None
        command = self.COMMANDS.get(word.upper())
        if command is None:
            return self.say(f"UNKNOWN command {word[:40]!r}: expected {', '.join(self.COMMANDS)} or END")
        try:
            command(self, rest.strip())
        except (ChessnnError, ValueError) as error:
            self.say(f"ERROR {' '.join(str(error).split())}")

    # --- commands ----------------------------------------------------------------------------------------------------

    def _start(self, rest: str) -> None:
        (size,) = _numbers(rest, 1, "START", "START 15")
        self._new_board(size, size)

    def _rect_start(self, rest: str) -> None:
        self._new_board(*_numbers(rest, 2, "RECTSTART", "RECTSTART 15,15"))

    def _new_board(self, width: int, height: int) -> None:
        if (width, height) != (self.game.size, self.game.size):
            raise BadCommand(f"a board of {width}x{height}: this network plays on {self.game.size}x{self.game.size}")
        self.stones = {}
        self.say("OK")

    def _restart(self, rest: str) -> None:
        self._begun()
        self.stones = {}
        self.say("OK")

    def _begin(self, rest: str) -> None:
        if self._begun():
            raise BadCommand("BEGIN: there are stones on the board, expected an empty one")
        self._move(self._begun())

    def _turn(self, rest: str) -> None:
        column, row = _numbers(rest, 2, "TURN", "TURN 7,7")
        self._move({**self._begun(), self._free(column, row, self._begun()): WHITE})

    def _take_back(self, rest: str) -> None:
        column, row = _numbers(rest, 2, "TAKEBACK", "TAKEBACK 7,7")
        stones, cell = self._begun(), cell_at(column, row, self.game.size)
        if cell not in stones:
            raise BadCommand(f"TAKEBACK {column},{row}: there is no stone")
        del stones[cell]
        self.say("OK")

    def _board(self, rest: str) -> None:
        stones: dict[int, int] = {}
        trouble: Exception | None = None
        while (line := self.next_command()) is not None and line.upper() != "DONE":
            try:  # the rest of a bad board is read all the same, so that it is not taken for commands
                column, row, owner = _numbers(line, 3, "BOARD", "7,7,1")
                if owner not in (BLACK, WHITE):
                    raise BadCommand(f"BOARD {line[:40]!r}: expected 1 for an own stone or 2 for the opponent's")
                stones[self._free(column, row, stones)] = owner
            except (ChessnnError, BadCommand) as error:
                trouble = trouble or error
        if line is None:
            return self.pending.append(None)
        self._begun()
        if trouble is not None:
            raise trouble
        return self._move(stones)

    def _info(self, rest: str) -> None:
        key, _, value = rest.partition(" ")
        key, value = key.lower(), value.strip()
        if key in _QUIET:
            return None
        if key not in (*_TIMES, "rule"):
            return self.say(f"DEBUG INFO {key[:40]!r} changes nothing here")
        if not value.isascii() or not value.isdecimal() or len(value) > 18:
            return self.say(f"MESSAGE INFO {key} {value[:40]!r}: expected a whole number")
        if key == "rule":
            if int(value) != (EXACT if self.game.exact else 0):
                played = "exactly five win" if self.game.exact else "five or more win"
                self.say(f"MESSAGE INFO rule {value}: this network has learned the game where {played}")
        else:
            self.times[key] = int(value)

    def _about(self, rest: str) -> None:
        self.say(
            f'name="chessnn_colab {self.game.name}", version="iteration {self.iteration}", author="chessnn_colab, by '
            'playing itself", country=""'
        )

    COMMANDS: Mapping[str, Callable[..., None]] = {
        "START": _start,
        "RECTSTART": _rect_start,
        "RESTART": _restart,
        "BEGIN": _begin,
        "TURN": _turn,
        "BOARD": _board,
        "TAKEBACK": _take_back,
        "INFO": _info,
        "ABOUT": _about,
    }

    # --- moves -------------------------------------------------------------------------------------------------------

    def _begun(self) -> dict[int, int]:
        if self.stones is None:
            raise BadCommand("no board yet: expected START first")
        return self.stones

    def _free(self, column: int, row: int, stones: Mapping[int, int]) -> int:
        cell = cell_at(column, row, self.game.size)
        if cell in stones:
            raise BadCommand(f"{column},{row}: there is a stone already")
        return cell

    def _move(self, stones: dict[int, int]) -> None:
        """Choose a move with `stones` on the board, tell it, and keep it with them."""
        state = self._position(stones)
        if finished(state):
            raise BadCommand("the game is over: expected RESTART, START or another BOARD")
        cell = Search(self, self._seconds()).best(state)
        self.stones = {**stones, cell: BLACK}
        self.say(f"{cell % self.game.size},{cell // self.game.size}")

    def _position(self, stones: Mapping[int, int]) -> GomokuState:
        """The position with us to move. Raises BadCommand when it cannot be our turn."""
        own, theirs = (sum(owner == who for owner in stones.values()) for who in (BLACK, WHITE))
        if theirs not in (own, own + 1):
            raise BadCommand(
                f"{own} own stones and {theirs} of the opponent's: with us to move, expected as many or one more of his"
            )
        board = torch.zeros(1, self.game.num_actions, dtype=torch.int8)
        for cell, owner in stones.items():
            board[0, cell] = owner if own == theirs else BLACK + WHITE - owner  # whoever is one ahead began
        return self.game.position(board.view(1, self.game.size, self.game.size))

    def _seconds(self) -> float | None:
        """How long to think; None without a limit on time."""
        turn, match, left = (self.times.get(name) for name in _TIMES)
        limits = [] if turn is None else [turn / 1000]
        if left is not None and match != 0:  # a match of 0 milliseconds has no limit
            limits.append(left / 1000 / MOVES_TO_GO)
        return max(0.0, min(limits) - MARGIN) if limits else None


class Search:
    """One move."""

    def __init__(self, brain: Brain, seconds: float | None):
        self.brain, self.seconds = brain, seconds
        self.started = time.monotonic()

    def best(self, state: GomokuState) -> int:
        """Think as long as the limits allow, and return an empty cell."""
        actor = self.brain.actor
        if (wins := int(winning_actions(self.brain.game, state))) >= 0:
            return wins
        with torch.no_grad():
            root = actor.root(state)
        choice = int(sample_prior(root, torch.zeros_like(root.prior_logits)).action)
        sizes = [SIMULATIONS] if self.seconds is None else tree_sizes(MOST_SIMULATIONS)
        with suppress(Stopped):
            for num_simulations in sizes:
                choice = int(grown_tree(actor, state, num_simulations, self._before_evaluation).action)
        return choice

    def _before_evaluation(self) -> None:
        brain = self.brain
        while not brain.inbox.empty():
            brain.pending.append(brain.inbox.get())
        ended = any(map(brain.ends, brain.pending))
        if ended or (self.seconds is not None and time.monotonic() - self.started >= self.seconds):
            raise Stopped


def _numbers(text: str, count: int, command: str, example: str) -> list[int]:
    """The numbers between commas. Raises BadCommand for anything else."""
    numbers = [int(part) for part in text.split(",")] if _NUMBERS.match(text) else []
    if len(numbers) != count:
        raise BadCommand(f"{command} {text[:40]!r}: expected {count} numbers, such as {example}")
    return numbers
