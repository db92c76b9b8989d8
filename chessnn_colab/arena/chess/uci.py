"""A run's network as a UCI engine, for any chess program: python -m chessnn_colab uci RUN.

One thread reads commands. The main thread answers them and searches. To search is to grow one tree after the other
("rungs"), each twice as large as the one before. The answer comes from the last tree that is complete, and a search can
stop between any two evaluations. The protocol: https://www.chessprogramming.org/UCI.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping
from typing import TextIO, cast

import chess
import torch

from ...cpu import use_threads
from ...errors import ChessnnError
from ...games.base import forced_wins
from ...games.chess.notation import board_from_fen, move_from_action, parse_move, quote, state_from_boards
from ...games.chess.rules import Chess
from ...search import PolicyOutput, sample_prior
from ..conversation import Conversation, playing_actor
from ..growing import MOST_SIMULATIONS, Stopped, grown_tree, tree_sizes
from .limits import Limits, read_limits


def serve(run: str, snapshot: int | None = None, device: str = "auto") -> None:
    """Answer UCI commands from standard input until `quit` or its end. Raises what Engine raises."""
    with use_threads(1):
        Engine(run, snapshot, device).loop()


class Engine(Conversation):
    """The state of one UCI conversation. It reads `commands` and writes `answers`.

    The answer to bad input is an `info string`; nothing else changes. Raises RunError, CheckpointError or DeviceError
    when the run's network cannot be loaded.
    """

    last_word = "quit"

    def __init__(
        self,
        run: str,
        snapshot: int | None = None,
        device: str = "auto",
        commands: TextIO = sys.stdin,
        answers: TextIO = sys.stdout,
    ):
        super().__init__(commands, answers)
        self.run, self.snapshot, self.device = run, snapshot, device
        self.num_simulations = 128
        self.board = chess.Board()
        self._load()

    def obey(self, line: str) -> None:
        """Carry out one command. As UCI wants it, unknown words in front of a command are skipped."""
        words = line.split()
        while words and words[0] not in self.COMMANDS:
            words = words[1:]
        if not words:
            return self.say(f"info string unknown command {quote(line)}") if line.strip() else None
        try:
            self.COMMANDS[words[0]](self, words[1:])
        except (ChessnnError, ValueError, IndexError) as error:
            self.say(f"info string {' '.join(str(error).split()) or f'cannot read {quote(line)}'}")
            if words[0] == "go":  # the program waits for an answer
                self.say(f"bestmove {next(iter(self.board.legal_moves), '(none)')}")

    def _load(self) -> None:
        """Load the network onto the device that the options name."""
        self.actor, self.iteration = playing_actor(self.run, self.snapshot, self.device)
        self.game = cast(Chess, self.actor.game)

    # --- commands ----------------------------------------------------------------------------------------------------

    def _uci(self, words: list[str]) -> None:
        self.say(f"id name chessnn_colab iteration {self.iteration}")
        self.say("id author chessnn_colab, by playing itself")
        self.say(f"option name Simulations type spin default {self.num_simulations} min 1 max {MOST_SIMULATIONS}")
        self.say(f"option name Device type string default {self.device}")
        self.say("uciok")

    def _ready(self, words: list[str]) -> None:
        self.say("readyok")

    def _new_game(self, words: list[str]) -> None:
        self.board = chess.Board()

    def _nothing(self, words: list[str]) -> None:
        """A stop or a ponderhit that comes when the search has ended already."""

    def _set_option(self, words: list[str]) -> None:
        at = words.index("value") if "value" in words else len(words)
        name, value = " ".join(words[1:at]).lower(), " ".join(words[at + 1 :])
        if name == "simulations":
            if not value.isdecimal() or not 1 <= int(value) <= MOST_SIMULATIONS:
                raise ValueError(f"Simulations {quote(value)}: expected a whole number from 1 to {MOST_SIMULATIONS}")
            self.num_simulations = int(value)
        elif name == "device":
            before, self.device = self.device, value
            try:
                self._load()
            except ChessnnError:
                self.device = before
                raise
        else:
            raise ValueError(f"unknown option {quote(name)}: expected Simulations or Device")

    def _position(self, words: list[str]) -> None:
        at = words.index("moves") if "moves" in words else len(words)
        if words[:1] not in (["startpos"], ["fen"]):
            raise ValueError(f"position {quote(' '.join(words))}: expected startpos or fen")
        board = chess.Board() if words[0] == "startpos" else board_from_fen(" ".join(words[1:at]))
        for text in words[at + 1 :]:
            board.push(parse_move(text, board))
        self.board = board

    def _go(self, words: list[str]) -> None:
        limits = read_limits(words, self.board, self.num_simulations)
        if not any(self.board.legal_moves):
            self.say("info depth 0 score " + ("mate 0" if self.board.is_check() else "cp 0"))
            return self.say("bestmove (none)")
        self.say(f"bestmove {Search(self, limits).best()}")

    COMMANDS: Mapping[str, Callable[..., None]] = {
        "uci": _uci,
        "isready": _ready,
        "ucinewgame": _new_game,
        "setoption": _set_option,
        "position": _position,
        "go": _go,
        "stop": _nothing,
        "ponderhit": _nothing,
        "debug": _nothing,
        "register": _nothing,
    }


class Search:
    """One `go`."""

    def __init__(self, engine: Engine, limits: Limits):
        self.engine, self.limits = engine, limits
        self.board = engine.board
        self.started = time.monotonic()
        self.stopped = False
        self.nodes = 0

    def best(self) -> chess.Move:
        """Think as long as the limits allow, and return a legal move."""
        choice, wins = self._at_once()
        for depth, num_simulations in enumerate([] if wins else self._rungs(), 1):
            try:
                choice = self._rung(depth, num_simulations)
            except Stopped:
                break
        while self.limits.until_stopped and not self.stopped:
            self._heed(self.engine.inbox.get())
        return choice

    def _at_once(self) -> tuple[chess.Move, bool]:
        """An answer before any search, and whether it wins by the rules; else it is what the policy likes best."""
        actor, state = self.engine.actor, state_from_boards([self.board], self.engine.game)
        wins, plies = map(int, forced_wins(self.engine.game, state))
        if wins >= 0 and not self.limits.moves:
            move = move_from_action(wins, self.board)
            self._inform(plies, move, f"mate {(plies + 1) // 2}")
            return move, True
        with torch.no_grad():
            root = actor.root(state)
        self.nodes += 1
        move = self._chosen(sample_prior(root, torch.zeros_like(root.prior_logits)))
        self._inform(0, move, self._score(move, float(root.value)))
        return move, False

    def _before_evaluation(self) -> None:
        if self._enough():
            raise Stopped
        self.nodes += 1

    def _rungs(self) -> list[int]:
        """The sizes of the trees, in simulations."""
        limits = self.limits
        most = limits.num_simulations or MOST_SIMULATIONS
        if limits.num_simulations and limits.rungs is None and limits.seconds is None:
            return [most]  # nothing but their number ends the search: one tree gets all of it
        return tree_sizes(most)[: self.limits.rungs]

    def _rung(self, depth: int, num_simulations: int) -> chess.Move:
        state = state_from_boards([self.board], self.engine.game)
        policy = grown_tree(self.engine.actor, state, num_simulations, self._before_evaluation)
        move = self._chosen(policy)
        self._inform(depth, move, self._score(move, float(policy.value)))
        return move

    def _chosen(self, policy: PolicyOutput) -> chess.Move:
        """The search's move. With `searchmoves`, the one of these that it rates highest."""
        if not self.limits.moves:
            return move_from_action(int(policy.action), self.board)
        ranked = policy.actions[0][policy.action_weights[0].argsort(descending=True)].tolist()
        legal = self.board.legal_moves.count()
        moves = [move_from_action(action, self.board) for action in ranked[:legal]]
        return next((move for move in moves if move in self.limits.moves), self.limits.moves[0])

    def _inform(self, depth: int, move: chess.Move, score: str) -> None:
        milliseconds = max(1, round(1000 * (time.monotonic() - self.started)))
        self.engine.say(
            f"info depth {depth} score {score} nodes {self.nodes} "
            f"nps {1000 * self.nodes // milliseconds} time {milliseconds} pv {move}"
        )

    def _score(self, move: chess.Move, value: float) -> str:
        """The value in centipawns, on the logistic curve where 400 mean ten to one. A move that mates is "mate 1"."""
        after = self.board.copy(stack=False)
        after.push(move)
        if after.is_checkmate():
            return "mate 1"
        value = min(max(value, -0.999), 0.999)
        return f"cp {round(400 * math.log10((1 + value) / (1 - value)))}"

    def _enough(self) -> bool:
        while not self.stopped and not self.engine.inbox.empty():
            self._heed(self.engine.inbox.get())
        seconds = self.limits.seconds
        return self.stopped or (
            seconds is not None and not self.limits.until_stopped and time.monotonic() - self.started >= seconds
        )

    def _heed(self, line: str | None) -> None:
        """Obey a command that comes during the search."""
        if self.engine.ends(line):
            self.stopped = True
            self.engine.inbox.put(line)  # the loop must see it too
        elif line == "stop":
            self.stopped = True
        elif line == "ponderhit":
            self.limits.until_stopped, self.started = False, time.monotonic()
        elif line == "isready":
            self.engine.say("readyok")
        else:
            self.engine.say(f"info string {quote(line)} comes in the middle of a search: stop it first")
