"""The search of one `go`, which can stop at any time.

It grows one tree after the other ("rungs"), each twice as large as the one before. The answer comes
from the last tree that is complete. The search can stop between any two evaluations.
"""

import math
import queue
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import cast

import chess
import torch
from torch import Tensor

from ...actor import CONSIDERED, Actor, TreeStates
from ...branches import Branch, branches
from ...games.base import forced_wins
from ...games.chess.notation import action_from_move, move_from_action, reopen, state_from_boards
from ...games.chess.rules import Chess
from ...search import (
    ILLEGAL,
    MOST_SIMULATIONS,
    PolicyOutput,
    Root,
    considered_visits_table,
    sample_prior,
)
from ...text import Say
from ...tree import Expansion, tree_search
from .limits import Limits

_SIZES = [16 << doubled for doubled in range(8)]  # simulations of each tree but the last


class _Stopped(Exception):
    """This search must end: the time is up, or a command says so."""


def ends(line: str | None) -> bool:
    """Whether this command, or None for the end of the input, ends the conversation."""
    return line is None or line.lower() == "quit"


@dataclass
class Search:
    """One `go`."""

    actor: Actor
    board: chess.Board
    limits: Limits
    # commands that come during the search; None: the input's end
    inbox: queue.SimpleQueue[str | None]
    say: Say  # writes one line to the other program
    lines: int  # of play to tell, of as many moves (MultiPV)
    nodes: int = 0
    stopped: bool = False

    def __post_init__(self):
        self.started = time.monotonic()  # before the position is made: that takes part of the time
        # A draw that nobody has claimed does not end a game.
        self.state = reopen(state_from_boards([self.board], cast(Chess, self.actor.game)))

    def best(self) -> chess.Move:
        """Think as long as the limits allow, and return a legal move."""
        win, plies = map(int, forced_wins(self.actor.game, self.state))
        if win >= 0 and not self.limits.moves:
            choice = move_from_action(win, self.board)
            self._inform(plies, 1, _score(0, plies), [choice])
        else:
            choice = self._look_ahead()
        while self.limits.until_stopped and not self.stopped:
            self._heed(self.inbox.get())
        return choice

    @torch.no_grad()
    def _look_ahead(self) -> chess.Move:
        """The move that the policy likes best, and then those of one tree after the other."""
        root = self._root()
        self.nodes += 1
        choice = self._choose(0, sample_prior(root, torch.zeros_like(root.prior_logits)))
        with suppress(_Stopped):
            for depth, num_simulations in enumerate(self._rungs(), 1):
                choice = self._choose(depth, self._tree(num_simulations))
        return choice

    def _root(self) -> Root:
        """The network's opinion of the position: of the moves after `searchmoves` alone, where they
        were given.
        """
        columns = self.actor.columns
        if not self.limits.moves:
            return self.actor.root(self.state, columns, columns)
        root = self.actor.root(self.state, self.actor.game.num_actions, columns)
        asked = [action_from_move(move, self.board) for move in self.limits.moves]
        known = torch.isin(root.actions, root.actions.new_tensor(asked))
        logits, kept = torch.where(known, root.prior_logits, ILLEGAL).topk(columns)
        return root._replace(actions=root.actions.gather(1, kept), prior_logits=logits)

    def _rungs(self) -> list[int]:
        """The sizes of the trees, in simulations."""
        limits = self.limits
        most = limits.num_simulations or MOST_SIMULATIONS
        if limits.num_simulations and limits.rungs is None and limits.seconds is None:
            return [most]  # nothing but their number ends the search: one tree gets all of it
        sizes = [size for size in _SIZES if size < most]
        return [*sizes, most][: limits.rungs]

    def _tree(self, num_simulations: int) -> PolicyOutput:
        actor = self.actor
        config = replace(actor.config, num_simulations=num_simulations)
        states = TreeStates(actor, self.state, num_simulations + 1)

        def expand(parent: Tensor, action: Tensor, node: int) -> Expansion:
            self._before_evaluation()
            return states.expand(parent, action, node)

        self._before_evaluation()
        root = self._root()
        schedules = considered_visits_table(CONSIDERED, num_simulations, actor.game.device)
        return tree_search(root, expand, config, torch.zeros_like(root.prior_logits), schedules)

    def _before_evaluation(self) -> None:
        """Raise _Stopped if the search must end; else count one more evaluation."""
        seconds = self.limits.seconds
        late = seconds is not None and time.monotonic() - self.started >= seconds
        enough = self.nodes >= (self.limits.nodes or math.inf)
        while not (late or self.stopped or self.inbox.empty()):
            self._heed(self.inbox.get())
        if self.stopped or late or enough:
            raise _Stopped
        self.nodes += 1

    def _choose(self, depth: int, policy: PolicyOutput) -> chess.Move:
        """The move of this policy; the lines of its search are told to the other program."""
        found = branches(policy, self.actor.discount)
        for number, branch in enumerate(found[: self.lines], 1):
            self._inform(depth, number, _score(branch.value, branch.proof), self._moves(branch))
        move = move_from_action(int(policy.action), self.board)
        if not found:
            self._inform(depth, 1, _score(float(policy.value[1]), None), [move])
        return move

    def _moves(self, branch: Branch) -> list[chess.Move]:
        """The line of play that begins with this branch."""
        board = self.board.copy()
        moves = []
        for action in branch.line:
            moves.append(move_from_action(action, board))
            board.push(moves[-1])
        return moves

    def _inform(self, depth: int, number: int, score: str, moves: list[chess.Move]) -> None:
        milliseconds = max(1, round(1000 * (time.monotonic() - self.started)))
        self.say(
            f"info depth {depth} multipv {number} score {score} nodes {self.nodes} "
            f"nps {1000 * self.nodes // milliseconds} time {milliseconds} "
            f"pv {' '.join(map(str, moves))}"
        )

    def _heed(self, line: str | None) -> None:
        if ends(line):
            self.stopped = True
            self.inbox.put(line)  # the loop must see it too
        elif line == "stop":
            self.stopped = True
        elif line == "isready":
            self.say("readyok")
        elif line:  # a blank one says nothing
            self.say(f"info string {line!r:.120} comes in the middle of a search: stop it first")


def _score(value: float, proof: int | None) -> str:
    """A score in UCI's words: moves to a mate that is proven (see Branch.proof), else centipawns.

    The chance of a win less that of a loss, in centipawns, is on the logistic curve where 400 mean
    ten to one.
    """
    if proof:
        return f"mate {(proof + 1) // 2}"
    value = min(max(value, -0.999), 0.999)
    return f"cp {round(400 * math.log10((1 + value) / (1 - value)))}"
