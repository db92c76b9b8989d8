"""Self-play: many games in lockstep on one device, finished ones replaced at once, records out as numpy.

Nothing of a ply touches the host. Every few plies one block of rows is copied over, and `Assembler` cuts it into
games. The games of a call are fixed beforehand: numbered, each with its own start position, and every one is played to
its end, so a short game is never preferred to a long one. As they run out the batch shrinks.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Callable, Mapping

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from .actor import Actor
from .devices import choose_dtype, describe, out_of_memory, require_device
from .errors import ConfigError
from .games.base import Game, concatenate, finished, select, where
from .games.chess.rules import Chess
from .network import actor_copy, build_network, load_arrays
from .network_config import NetworkConfig
from .records import GameRecords
from .search import PolicyOutput, SearchConfig, rows_of, sample_gumbel

POLICY_WIDTH = 16  # actions kept of each policy target: what lies beyond the 16 best is dropped
PLIES_A_BLOCK = 8  # plies between two copies to the host
FEW_ROWS = 16  # boards are left behind so many at a time

# on_progress(games done, plies done, records of the games done since the last call) -> go on?
OnProgress = Callable[[int, int, GameRecords], bool]


@dataclass(frozen=True)
class SelfPlayConfig:
    """How games are played for training."""

    boards: int = 64  # games in lockstep
    max_plies: int = 160  # then a game is stopped, and labelled by material
    few_piece_starts: float = 0.4  # share of games that start with a few pieces thrown on the board
    random_starts: float = 0.2  # share that start after a few random moves; the rest start as chess does
    sampling_plies: int = 30  # a game samples its moves until a random ply below this, then takes the search's
    discount: float = 0.99  # what a win is worth a ply later
    td_lambda: float = 0.85  # 1: value targets are the outcome alone; below, also the material soon to come

    def __post_init__(self):
        if self.boards < 1 or self.max_plies < 1 or self.sampling_plies < 1:
            raise ConfigError(
                f"boards={self.boards}, max_plies={self.max_plies}, sampling_plies={self.sampling_plies}: "
                "expected whole numbers from 1 up"
            )
        if min(self.few_piece_starts, self.random_starts) < 0 or self.few_piece_starts + self.random_starts > 1:
            raise ConfigError(
                f"few_piece_starts={self.few_piece_starts}, random_starts={self.random_starts}: "
                "expected shares from 0 up that add up to at most 1"
            )
        for name in ("discount", "td_lambda"):
            if not 0 < getattr(self, name) <= 1:
                raise ConfigError(f"{name}={getattr(self, name)}: expected more than 0 and at most 1")


class SelfPlay:
    """A network that plays itself on one device; what a worker process runs (see workers).

    game, network, search and self_play are the fields of their configs as plain dicts, so that they cross processes.
    """

    def __init__(
        self,
        device: str,
        network: Mapping[str, Any],
        search: Mapping[str, Any],
        self_play: Mapping[str, Any],
        precision: str = "auto",
    ):
        require_device(device)
        self.device = device
        self.messages: list[str] = []  # for the user
        self.config = SelfPlayConfig(**self_play)
        self.game = Chess(self.config.max_plies, device)
        self.search = SearchConfig(**search)
        self.network = build_network(NetworkConfig.from_dict(network), device)
        self.version = -1
        self._halved = False
        self.dtype = choose_dtype(precision, device)
        self._actor = self._new_actor()

    def describe(self) -> str:
        return describe(self.device)

    def set_weights(self, version: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Play with these weights (network.to_arrays) from the next call of `play` on."""
        load_arrays(self.network, arrays)
        self.version = version
        self._actor = self._new_actor()

    def play(self, num_games: int, seed: int, on_progress: Callable[[int, int, dict | None], bool]) -> None:
        """Play `num_games` games; the same seed, weights and device give the same games.

        on_progress gets the counts of play_games and the new games as GameRecords.to_arrays, or None. Where memory
        runs out the games in lockstep are halved, once and for good, and what was not handed over yet is played from
        another seed. Raises ConfigError when half of them are too many too.
        """
        hand_over = HandOver(on_progress)
        while hand_over.games < num_games:
            try:
                return play_games(self._actor, self.config, num_games - hand_over.begin(), seed, hand_over)
            except (RuntimeError, MemoryError) as error:
                if not out_of_memory(error):
                    raise
            # Here the error is gone, and with it the tensors of the frames that it held.
            self._halve_boards()
            seed += 1

    def _halve_boards(self) -> None:
        boards = self.config.boards
        if self._halved or boards == 1:
            raise ConfigError(
                f"out of memory on {self.device} with boards={boards}, having halved them once: set boards "
                "lower, or let fewer workers share the device (workers_per_gpu)"
            )
        self._halved = True
        self.config = dataclasses.replace(self.config, boards=boards // 2)
        if self.device.startswith("cuda"):
            torch.cuda.empty_cache()
        self.messages.append(
            f"out of memory on {self.device} with boards={boards}: goes on with {boards // 2}, and "
            f"slower. Next time set boards={boards // 2}, or a smaller preset"
        )

    def _new_actor(self) -> Actor:
        return Actor(self.game, actor_copy(self.network, self.dtype), self.search, self.config.discount)


class HandOver:
    """Passes finished games on as arrays, and adds up what several calls of play_games played."""

    def __init__(self, on_progress: Callable[[int, int, dict | None], bool]):
        self.games = 0  # handed over
        self._on_progress = on_progress
        self._before = 0

    def begin(self) -> int:
        """The games handed over before the call of play_games that follows."""
        self._before = self.games
        return self.games

    def __call__(self, games: int, plies: int, records: GameRecords) -> bool:
        self.games = self._before + games
        return self._on_progress(self.games, plies, records.to_arrays() if records.num_games else None)


def play_games(actor: Actor, config: SelfPlayConfig, num_games: int, seed: int, on_progress: OnProgress) -> None:
    """Play `num_games` games in lockstep, telling `on_progress` every few plies; stops when it returns False.

    Games cut short that way are handed over too, as unfinished and without a value target.
    """
    lockstep = Lockstep(actor, config, num_games, seed)
    assembler = Assembler(config.discount, config.td_lambda)
    while lockstep.active > 0:
        games = assembler.add(lockstep.play_block())
        if not on_progress(assembler.games, assembler.plies, games):
            rest = assembler.unfinished()
            if rest.num_games:
                on_progress(assembler.games, assembler.plies, rest)
            return


class Lockstep:
    """The boards of one call of `play_games` and the games still to start."""

    def __init__(self, actor: Actor, config: SelfPlayConfig, num_games: int, seed: int):
        self.actor, self.game, self.config = actor, actor.game, config
        device = actor.game.device
        self.generator = torch.Generator(device).manual_seed(seed)
        on_host = torch.Generator().manual_seed(seed)
        self.num_games = num_games
        self.starts = start_positions(self.game, config, num_games, on_host)
        self.sample_until = torch.randint(0, config.sampling_plies, (num_games,), generator=on_host).to(device)
        boards = min(config.boards, num_games)
        self.active = boards
        self.number = torch.arange(boards, device=device)  # [B] each board's game, -1 when there is none left
        self.next_number = torch.tensor(boards, device=device)
        self.state = select(self.starts, self.number)

    def play_block(self) -> dict[str, np.ndarray]:
        """PLIES_A_BLOCK plies on every board, as arrays [plies, boards, ...] on the host."""
        rows = [self._ply() for _ in range(PLIES_A_BLOCK)]
        block = {name: torch.stack([row[name] for row in rows]).cpu().numpy() for name in rows[0]}
        playing = self.number >= 0
        self.active = int(playing.sum())
        self._shrink(playing)
        return block

    def _ply(self) -> dict[str, Tensor]:
        state, number = self.state, self.number
        policy = self.actor.act(state, self.generator)
        game = number.clamp(min=0)
        sampling = state.plies_played < self.sample_until[game]
        action = torch.where(sampling, sample_actions(policy, self.generator), policy.action)
        after = self.game.step(state, action)
        ended = finished(after) & (number >= 0)
        row = {
            "number": number,
            "position": self.game.pack(state),
            "player": state.current_player,
            "action": action,
            "value": policy.value,
            "ended": ended,
            "ending": after.ending,
            "outcome": self._outcome(after),
            "standing": self._standing(state),
            **best_actions(policy),
        }
        self._restart(after, ended)
        return row

    def _outcome(self, state: Any) -> Tensor:
        """float32 [B]: what the game was worth to the first player; for a game at the cap, its label."""
        return torch.where(state.truncated, self._standing(state), state.rewards[:, 0])

    def _standing(self, state: Any) -> Tensor:
        """float32 [B]: what the game would be worth to the first player if it were stopped here."""
        label = self.game.truncation_value(state)
        return torch.where(state.current_player == 0, label, -label)

    def _restart(self, after: Any, ended: Tensor) -> None:
        number = self.next_number + ended.cumsum(0) - 1
        number = torch.where(number < self.num_games, number, -1)
        self.number = torch.where(ended, number, self.number)
        self.next_number = self.next_number + ended.sum()
        fresh = select(self.starts, self.number.clamp(min=0))
        self.state = where(ended & (self.number >= 0), fresh, after)

    def _shrink(self, playing: Tensor) -> None:
        """Leave boards without a game behind."""
        size = room_for(self.active, self.game.device.type == "cpu")
        if size < len(playing):
            kept = rows_of(playing, size)
            self.state, self.number = select(self.state, kept), self.number[kept]


def room_for(active: int, on_cpu: bool) -> int:
    """Boards to go on with when `active` of them have a game; a GPU meets powers of two alone, so few shapes."""
    blocks = max(1, math.ceil(active / FEW_ROWS))
    return FEW_ROWS * (blocks if on_cpu else 2 ** math.ceil(math.log2(blocks)))


def start_positions(game: Game, config: SelfPlayConfig, count: int, generator: torch.Generator) -> Any:
    """`count` states: the configured mix of starts, in random order. `generator` is a CPU generator."""
    few = round(config.few_piece_starts * count)
    scrambled = min(round(config.random_starts * count), count - few)
    parts = [("few-piece", few), ("random-plies", scrambled), ("standard", count - few - scrambled)]
    states = concatenate([game.starts(number, kind, generator) for kind, number in parts if number])
    order = torch.randperm(count, generator=generator).to(states.ply.device)
    return select(states, order)


def sample_actions(policy: PolicyOutput, generator: torch.Generator) -> Tensor:
    """int64 [B]: actions drawn from the improved policy."""
    logits = policy.action_weights.log() + sample_gumbel(policy.action_weights, generator)
    return policy.actions.gather(1, logits.argmax(1, keepdim=True)).squeeze(1)


def best_actions(policy: PolicyOutput) -> dict[str, Tensor]:
    """The POLICY_WIDTH best actions of the improved policy and their weights, made to sum to one; the rest zeros."""
    weights, columns = policy.action_weights.topk(min(POLICY_WIDTH, policy.action_weights.shape[1]), dim=1)
    weights, actions = weights / weights.sum(1, keepdim=True), policy.actions.gather(1, columns)
    room = (0, POLICY_WIDTH - weights.shape[1])
    return {"policy_actions": functional.pad(actions, room), "policy_weights": functional.pad(weights, room)}


class Assembler:
    """Cuts blocks of lockstep rows into whole games, on the host."""

    def __init__(self, discount: float, td_lambda: float):
        self.discount, self.td_lambda = discount, td_lambda
        self.games = 0  # finished so far
        self.plies = 0  # played so far, in unfinished games too
        self._rows: dict[str, np.ndarray] | None = None

    def add(self, block: Mapping[str, np.ndarray]) -> GameRecords:
        """Take in a block [plies, boards, ...]; returns the games that ended in it, in order of their numbers."""
        rows = {name: array.reshape(-1, *array.shape[2:]) for name, array in block.items()}
        rows = {name: array[rows["number"] >= 0] for name, array in rows.items()}
        self.plies += len(rows["number"])
        if self._rows is not None:
            rows = {name: np.concatenate((self._rows[name], array)) for name, array in rows.items()}
        done = np.isin(rows["number"], rows["number"][rows["ended"]])
        self._rows = {name: array[~done] for name, array in rows.items()}
        records = self._records({name: array[done] for name, array in rows.items()})
        self.games += records.num_games
        return records

    def unfinished(self) -> GameRecords:
        """The games still going on, as they stand: ending 0, no value target."""
        rows, self._rows = self._rows, None
        return self._records(rows or {})

    def _records(self, rows: Mapping[str, np.ndarray]) -> GameRecords:
        if not rows or not len(rows["number"]):
            return GameRecords.empty(POLICY_WIDTH, Chess.packed_words)
        order = np.argsort(rows["number"], kind="stable")
        rows = {name: array[order] for name, array in rows.items()}
        lengths = np.unique(rows["number"], return_counts=True)[1]
        last = np.cumsum(lengths) - 1
        ended, outcome = rows["ended"][last], rows["outcome"][last]
        endings = np.where(ended, rows["ending"][last], 0)
        results = np.where(ended & (endings != Chess.endings.index("truncated")), np.sign(outcome), 0)
        return GameRecords(
            positions=rows["position"],
            actions=rows["action"].astype(np.uint16),
            policy_actions=rows["policy_actions"].astype(np.uint16),
            policy_weights=rows["policy_weights"].astype(np.float16),
            root_values=rows["value"].astype(np.float16),
            value_targets=self._value_targets(rows, lengths, ended, endings, outcome),
            game_lengths=lengths.astype(np.int32),
            endings=endings.astype(np.uint8),
            results=results.astype(np.int8),
        )

    def _value_targets(self, rows: Mapping[str, np.ndarray], lengths, ended, endings, outcome) -> np.ndarray:
        """float16 [N]: what each position was worth to its mover, by `td_returns`; NaN in unfinished games."""
        capped = endings == Chess.endings.index("truncated")
        # A label is no win: it does not fade with distance unless the standings before it do.
        discount = np.where(capped & (self.td_lambda == 1), 1.0, self.discount)
        final = np.where(ended, outcome, np.nan)
        returns = td_returns(final, rows["standing"], lengths, self.td_lambda, discount)
        return (returns * np.where(rows["player"] == 0, 1.0, -1.0)).astype(np.float16)


def td_returns(
    final: np.ndarray, standing: np.ndarray, lengths: np.ndarray, td_lambda: float, discount: np.ndarray
) -> np.ndarray:
    """[N] lambda-returns of games laid end to end, each of lengths[i] positions (Sutton & Barto 2018, 12.1).

    G[last] = final[i] and G[t] = (1 - lambda) standing[t + 1] + lambda discount[i] G[t + 1]: the outcome, mixed with
    how the game stood on the way there. Lambda 0.85 looks some six plies ahead.
    """
    last = np.cumsum(lengths) - 1
    returns, running = np.empty(len(standing)), final.astype(float)
    for back in range(lengths.max(initial=0)):
        live = lengths > back
        at = (last - back)[live]
        if back:
            running[live] = (1 - td_lambda) * standing[at + 1] + td_lambda * discount[live] * running[live]
        returns[at] = running[live]
    return returns
