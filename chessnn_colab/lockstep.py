"""Boards in lockstep on one device. Nothing of a ply touches the host, and a game that ends makes
room for the next one at once.
"""

import sys
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .actor import Actor, Noise
from .games.base import Game, concatenate, finished, select, start_positions, where
from .games.registry import make_game
from .graphs import Graphs, Replays, map_tensors
from .in_flight import LIMIT, STATE, Arrays, count
from .records import POLICY_WIDTH
from .search import PolicyOutput, best_action, padded, sample_gumbel
from .transfer import to_device, to_host

PLIES_A_BLOCK = 8  # plies between two copies to the host
LEAST_STARTS = 64  # positions that are drawn together, so that each kind has its share
MOST_STARTS = 256  # more would take the host longer than a GPU plays a block
# What records keep in two bytes is copied in two bytes; a uint16 comes as an int16 of the same
# bits.
NARROW = {"action": torch.int16, "policy_actions": torch.int16, "policy_weights": torch.float16}


class Boards(NamedTuple):
    """The games in progress."""

    state: Any  # [B]
    number: Tensor  # int64 [B], each board's game, -1 where there is none
    sample_until: Tensor  # int64 [B], the ply from which the game plays the best action
    next_number: Tensor  # int64 [], of the game to start next


class StartQueue:
    """The games to start next, by their numbers: `games` in flight, then new ones.

    Game n is in row n % size. Rows are filled in place, because a recorded ply always reads the
    same memory. New games are drawn on the host, while the device plays. limit: how many there are
    in all.
    """

    def __init__(
        self, game: Game, boards: int, games: Arrays, generator: torch.Generator, limit: int
    ):
        self.game, self.generator, self.limit = game, generator, limit
        on_cpu = game.device.type == "cpu"
        self.on_host = game if on_cpu else make_game(game.name, game.max_plies)
        # For two blocks: while one is played, nobody knows yet how many games it starts. Short
        # games end several times in a block.
        self.least = 2 * boards * max(1, 4 * PLIES_A_BLOCK // game.max_plies)
        self.chunk = min(max(boards, LEAST_STARTS), MOST_STARTS)
        # As many as are in flight at most, and no other size follows: MPS keeps each for good.
        block = boards + self.least + self.chunk
        self.size = max(count(games), block) + block
        empty = game.init(1)
        self.state = map_tensors(
            lambda field: field.new_zeros((self.size, *field.shape[1:])), empty
        )
        self.sample_until = torch.zeros(self.size, dtype=torch.int64, device=game.device)
        self.end = 0  # the number after the last one
        self.end_on_device = torch.zeros((), dtype=torch.int64, device=game.device)
        if games:
            fields = {name: games[STATE + name] for name in vars(empty)}
            self._append(type(empty), {**fields, LIMIT: games[LIMIT]})

    def fill(self, started: int) -> None:
        """Add new games until there are enough. At least the first `started` have begun."""
        while self.end - started < self.least and self.end < self.limit:
            new = min(self.chunk, self.limit - self.end)
            state = start_positions(self.on_host, new, self.generator)
            limits = torch.randint(0, self.game.sampling_plies, (new,), generator=self.generator)
            drawn = {name: field.numpy() for name, field in vars(state).items()}
            self._append(type(state), {**drawn, LIMIT: limits.numpy()})

    def _append(self, kind: type[Any], games: Arrays) -> None:
        """kind: of a state of `games`, which are its fields and the limits."""
        fields = to_device(games, self.game.device)
        limits = fields.pop(LIMIT)
        first = self.end % self.size
        room = self.size - first

        def put(kept: Tensor, new: Tensor) -> Tensor:
            before_the_end = kept[first : first + len(new)]
            before_the_end.copy_(new[:room])
            kept[: max(len(new) - room, 0)].copy_(new[room:])
            return kept

        put(self.sample_until, limits)
        map_tensors(put, self.state, kind(**fields))
        self.end += len(limits)
        # MPS keeps a graph for each value that is filled in.
        self.end_on_device.zero_().add_(self.end)


class Lockstep:
    """Boards that are played together. A game that ends makes room for the next one at once."""

    def __init__(
        self,
        actor: Actor,
        boards: int,
        seed: int,
        graphs: Graphs | None = None,
        games: Arrays | None = None,
        limit: int = sys.maxsize,
    ):
        self.actor, self.game = actor, actor.game
        self._replays = Replays(graphs or graphs_for(actor))
        device = actor.game.device
        self.generator = torch.Generator(device).manual_seed(seed)
        on_host = torch.Generator().manual_seed(seed)
        self.queue = StartQueue(self.game, boards, games or {}, on_host, limit)
        self.started = boards  # games, at least
        self.queue.fill(self.started)
        number = torch.arange(boards, device=device)
        self.boards = Boards(
            select(self.queue.state, number),
            number,
            self.queue.sample_until[number],
            torch.tensor(boards, device=device),
        )

    def play_block(self, plies: int = PLIES_A_BLOCK) -> Arrays:
        """Some plies on every board, as arrays [plies, boards, ...] on the host. An error leaves
        the boards as they were.
        """
        before = self.boards
        try:
            rows = [self.play_ply() for _ in range(plies)]
            stacked = {name: torch.stack([row[name] for row in rows]) for name in rows[0]}
            narrow = {
                name: array.to(NARROW.get(name, array.dtype)) for name, array in stacked.items()
            }
            begun = {**narrow, "started": self.boards.next_number}
            self.queue.fill(self.started)  # while a GPU plays
            block = to_host(begun)
            self.started = int(block.pop("started"))
        except BaseException:
            self.boards = before
            raise
        return block

    def games(self) -> tuple[np.ndarray, Arrays]:
        """The numbers of the games on the boards and of those that wait, and where they stand (see
        in_flight).
        """
        boards, queue = self.boards, self.queue
        state = concatenate((boards.state, queue.state))
        fields = {STATE + name: field for name, field in vars(state).items()}
        limits = torch.cat((boards.sample_until, queue.sample_until))
        counts = {"number": boards.number, "started": boards.next_number}
        arrays = to_host({**fields, LIMIT: limits, **counts})
        number = arrays.pop("number")
        playing = np.flatnonzero(number >= 0)
        waiting = np.arange(int(arrays.pop("started")), queue.end)
        rows = np.concatenate((playing, len(number) + waiting % queue.size))
        games = {name: array[rows] for name, array in arrays.items()}
        return np.concatenate((number[playing], waiting)), games

    def play_ply(self) -> dict[str, Tensor]:
        """One ply on every board; returns its row of the block."""
        boards = len(self.boards.number)
        noise = self.actor.draw(boards, self.generator)
        choice = sample_gumbel(noise.gumbel, self.generator)
        row, self.boards = self._replays(self.ply, boards, self.boards, noise, choice)
        return row

    def ply(self, boards: Boards, noise: Noise, choice: Tensor) -> tuple[dict[str, Tensor], Boards]:
        """The row and the boards after one ply. It is a function of its arguments alone.

        choice: float32 [B, columns], the noise that draws the action played from the policy.
        """
        state, number = boards.state, boards.number
        policy = self.actor.improve(state, noise)
        sampling = state.plies_played < boards.sample_until
        action = torch.where(sampling, sample_actions(policy, choice), policy.action)
        after = self.game.step(state, action)
        over = finished(after)
        row = {
            "number": number,
            "position": self.game.pack(state),
            "player": state.current_player,
            "action": action,
            "value": policy.value[0] if self.game.score_limit else policy.value.t(),
            "ended": over,
            "ending": after.ending,
            "reward" if self.game.score_limit else "outcome": after.rewards[:, 0],
            **policy_targets(policy),
        }
        guess = self.game.guessed_chances(state)
        if guess is not None:
            row["guess"] = guess
        return row, self._restart(after, over, boards)

    def _restart(self, after: Any, free: Tensor, boards: Boards) -> Boards:
        """The boards, with the next games on those that are `free`: their game is over, now or long
        ago.
        """
        number = boards.next_number + free.cumsum(0) - 1
        starts = free & (number < self.queue.end_on_device)
        row = number % self.queue.size
        return Boards(
            where(starts, select(self.queue.state, row), after),
            torch.where(starts, number, torch.where(free, -1, boards.number)),
            torch.where(starts, self.queue.sample_until[row], boards.sample_until),
            boards.next_number + starts.sum(),
        )


def graphs_for(actor: Actor) -> Graphs:
    """Replay plies on CUDA, but for a search with proofs, because the number of forcing moves
    depends on the position, and for an actor that replays its searches itself.
    """
    replays_itself = actor.replays.graphs.on
    pure = actor.config.solve == "off" and not replays_itself
    return Graphs(on=actor.game.device.type == "cuda" and pure)


def sample_actions(policy: PolicyOutput, noise: Tensor) -> Tensor:
    """int64 [B]: actions drawn from the improved policy by Gumbel noise [B, columns]."""
    weights = policy.action_weights
    return best_action(policy.actions, weights.log() + noise[:, : weights.shape[1]])


def policy_targets(policy: PolicyOutput) -> dict[str, Tensor]:
    """The POLICY_WIDTH best actions of the improved policy and their weights, made to sum to one;
    the rest zeros.
    """
    weights, columns = policy.action_weights.topk(
        min(POLICY_WIDTH, policy.action_weights.shape[1]), dim=1
    )
    weights, actions = weights / weights.sum(1, keepdim=True), policy.actions.gather(1, columns)
    return {
        "policy_actions": padded(actions, POLICY_WIDTH),
        "policy_weights": padded(weights, POLICY_WIDTH),
    }
