"""The search of one `go`, which can stop at any time.

It grows one tree after the other ("rungs"), each twice as large as the one before. The answer comes
from the last tree that is complete. The search can stop between any two evaluations.
"""

from __future__ import annotations

import math
import queue
import time
from collections.abc import Callable
from dataclasses import replace
from typing import cast

import chess
import torch
from torch import Tensor

from ...actor import Actor, TreeStates
from ...games.base import forced_wins
from ...games.chess.notation import move_from_action, quote, state_from_boards
from ...games.chess.rules import Chess
from ...search import PolicyOutput, sample_prior
from ...tree import Expansion, tree_search
from .limits import MOST_SIMULATIONS, Limits

_SIZES = [16 << doubled for doubled in range(8)]  # simulations of each tree but the last


class _Stopped(Exception):
    """This search must end: the time is up, or a command says so."""


def ends(line: str | None) -> bool:
    """Whether this command, or None for the end of the input, ends the conversation."""
    return line is None or line.lower() == "quit"


class Search:
    """One `go`.

    inbox: commands that come during the search, None at the end of the input. say: writes one line
    to the other program.
    """

    def __init__(
        self,
        actor: Actor,
        board: chess.Board,
        limits: Limits,
        inbox: queue.Queue[str | None],
        say: Callable[[str], None],
    ):
        self.actor = actor
        self.board = board
        self.limits = limits
        self.inbox = inbox
        self.say = say
        self.state = state_from_boards([board], cast(Chess, actor.game))
        self.started = time.monotonic()
        self.stopped = False
        self.nodes = 0

    def best(self) -> chess.Move:
        """Think as long as the limits allow, and return a legal move."""
        choice, wins = self._at_once()
        for depth, num_simulations in enumerate([] if wins else self._rungs(), 1):
            try:
                choice = self._rung(depth, num_simulations)
            except _Stopped:
                break
        while self.limits.until_stopped and not self.stopped:
            self._heed(self.inbox.get())
        return choice

    def _at_once(self) -> tuple[chess.Move, bool]:
        """An answer before any search, and whether it wins by the rules; else it is what the policy
        likes best.
        """
        wins, plies = map(int, forced_wins(self.actor.game, self.state))
        if wins >= 0 and not self.limits.moves:
            move = move_from_action(wins, self.board)
            self._inform(plies, move, f"mate {(plies + 1) // 2}")
            return move, True
        with torch.no_grad():
            root = self.actor.root(self.state)
        self.nodes += 1
        move = self._chosen(sample_prior(root, torch.zeros_like(root.prior_logits)))
        self._inform(0, move, self._score(move, float(root.value)))
        return move, False

    def _before_evaluation(self) -> None:
        if self._enough():
            raise _Stopped
        self.nodes += 1

    def _rungs(self) -> list[int]:
        """The sizes of the trees, in simulations."""
        limits = self.limits
        most = limits.num_simulations or MOST_SIMULATIONS
        if limits.num_simulations and limits.rungs is None and limits.seconds is None:
            return [most]  # nothing but their number ends the search: one tree gets all of it
        sizes = [size for size in _SIZES if size < most]
        return [*sizes, most][: limits.rungs]

    def _rung(self, depth: int, num_simulations: int) -> chess.Move:
        policy = self._tree(num_simulations)
        move = self._chosen(policy)
        self._inform(depth, move, self._score(move, float(policy.value)))
        return move

    def _tree(self, num_simulations: int) -> PolicyOutput:
        """The policy of a tree with this many simulations. Raises _Stopped when there is no time
        left for its next evaluation.
        """
        actor = self.actor
        config = replace(actor.config, num_simulations=num_simulations)
        branches = TreeStates(actor, self.state, num_simulations + 1)

        def expand(parent: Tensor, action: Tensor, node: int) -> Expansion:
            self._before_evaluation()
            return branches.expand(parent, action, node)

        with torch.no_grad():
            self._before_evaluation()
            root = actor.root(self.state, actor.columns, actor.columns)
            return tree_search(root, expand, config, torch.zeros_like(root.prior_logits))

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
        self.say(
            f"info depth {depth} score {score} nodes {self.nodes} "
            f"nps {1000 * self.nodes // milliseconds} time {milliseconds} pv {move}"
        )

    def _score(self, move: chess.Move, value: float) -> str:
        """The value in centipawns, on the logistic curve where 400 mean ten to one. A move that
        mates is "mate 1".
        """
        after = self.board.copy(stack=False)
        after.push(move)
        if after.is_checkmate():
            return "mate 1"
        value = min(max(value, -0.999), 0.999)
        return f"cp {round(400 * math.log10((1 + value) / (1 - value)))}"

    def _enough(self) -> bool:
        while not self.stopped and not self.inbox.empty():
            self._heed(self.inbox.get())
        seconds = self.limits.seconds
        return self.stopped or (
            seconds is not None
            and not self.limits.until_stopped
            and time.monotonic() - self.started >= seconds
        )

    def _heed(self, line: str | None) -> None:
        """Obey a command that comes during the search."""
        if ends(line):
            self.stopped = True
            self.inbox.put(line)  # the loop must see it too
        elif line == "stop":
            self.stopped = True
        elif line == "ponderhit":
            self.limits.until_stopped = False
            self.started = time.monotonic()
        elif line == "isready":
            self.say("readyok")
        else:
            self.say(f"info string {quote(line)} comes in the middle of a search: stop it first")
