"""Self-play: many games in lockstep on one device, finished ones replaced at once, records out as
numpy.

Nothing of a ply touches the host. Every few plies one block of rows is copied over. `Assembler`
cuts it into games while the device plays the next block. The games of a call are fixed beforehand:
they are numbered, each with its own start position. Every one is played to its end, so a short game
is never preferred to a long one. As games run out the batch shrinks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .actor import Actor, Noise
from .assembler import Assembler
from .devices import Inventory, choose_dtype, detect_device, out_of_memory, time_convolutions
from .errors import ConfigError
from .games.base import finished, select, start_positions, where
from .games.registry import make_game
from .graphs import Graphs, Replays
from .network import actor_copy, build_network, load_arrays
from .network_config import NetworkConfig
from .records import POLICY_WIDTH, GameRecords
from .search import PolicyOutput, SearchConfig, padded, rows_of, sample_gumbel
from .transfer import to_host

BOARDS_ON_CPU = 64  # games in lockstep, unless a run says otherwise
BOARDS = 512  # the same on a GPU
PLIES_A_BLOCK = 8  # plies between two copies to the host
FEW_ROWS = 16  # a batch shrinks by multiples of so many boards
CUTTER = ThreadPoolExecutor(1, "cut")  # one thread of a process, because each has memory of its own
# What records keep in two bytes is copied in two bytes; a uint16 comes as an int16 of the same
# bits.
NARROW = {"action": torch.int16, "policy_actions": torch.int16, "policy_weights": torch.float16}


# on_progress(games done, plies done, records of the games done since the last call) -> go on?
OnProgress = Callable[[int, int, GameRecords], bool]
OnArrays = Callable[
    [int, int, dict[str, np.ndarray] | None], bool
]  # the same, of GameRecords.to_arrays


class SelfPlay:
    """A network that plays itself on one device; what a worker process runs (see workers).

    network and search are the fields of their configs as plain dicts, so that they cross processes.
    boards: games in lockstep; None: by the device. max_plies and reward: see games.registry.make_game.
    bootstrap_after: positions; None: the game decides (see games.base.Game).
    """

    def __init__(
        self,
        device: str,
        network: Mapping[str, Any],
        search: Mapping[str, Any],
        game: str = "chess",
        boards: int | None = None,
        max_plies: int | None = None,
        reward: str | None = None,
        precision: str = "auto",
        bootstrap_after: int | None = None,
    ):
        # A worker that plays on the CPU does not start the driver of a GPU.
        machine = None if device.startswith("cuda") else Inventory((), device == "mps", 1)
        self._device_name = detect_device(device, machine).name
        time_convolutions(device)
        self.device = device
        self.messages: list[str] = []  # for the user
        self.game = make_game(game, max_plies, device, reward)
        if bootstrap_after is not None:
            self.game.bootstrap_after = bootstrap_after
        self.boards = boards or (BOARDS_ON_CPU if device == "cpu" else BOARDS)
        self.search = SearchConfig(**search)
        self.network = build_network(NetworkConfig.from_dict(network), device)
        self.version = 0
        self._halved = False
        self.dtype = choose_dtype(precision, device)
        self._actor = self._new_actor()
        self._graphs = graphs_for(self._actor)

    def describe(self) -> str:
        """The device's name, for people."""
        return self._device_name

    def set_weights(self, version: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Play with these weights (network.to_arrays) from the next call of `play` on.

        version: the number of positions that were played before, as play_games wants it. Raises
        ConfigError.
        """
        load_arrays(self.network, arrays)
        self.version = version
        self._actor = self._new_actor()

    def play(self, num_games: int, seed: int, on_progress: OnArrays) -> None:
        """Play `num_games` games; the same seed, weights and device give the same games.

        on_progress gets the counts of play_games and the new games as GameRecords.to_arrays, or
        None. Where memory runs out, the games in lockstep are halved, once and for good; what was
        not handed over yet is played from another seed. Raises ConfigError when half of them are
        too many too.
        """
        before = 0  # games handed over by calls of play_games that ran out of memory
        done = 0  # all games handed over

        def hand_over(games: int, plies: int, records: GameRecords) -> bool:
            nonlocal done
            done = before + games
            return on_progress(done, plies, records.to_arrays() if records.num_games else None)

        while done < num_games:
            before = done
            left = num_games - done
            try:
                play_games(
                    self._actor, self.boards, left, seed, hand_over, self.version, self._graphs
                )
                self._report_graphs()
                return
            except (RuntimeError, MemoryError) as error:
                if not out_of_memory(error):
                    raise
            # Here the error is gone, and with it the tensors of the frames that it held.
            self._halve_boards(num_games)
            seed += 1

    def _report_graphs(self) -> None:
        if self._graphs.trouble:
            self.messages.append(f"{self.device}: {self._graphs.trouble}")
            self._graphs.trouble = ""

    def _halve_boards(self, num_games: int) -> None:
        boards = min(self.boards, num_games)
        if self._halved or boards == 1:
            raise ConfigError(
                f"out of memory on {self.device} with boards={boards}, having halved them once: set boards "
                "lower, or let fewer workers share the device (workers)"
            )
        self._halved = True
        self.boards = boards // 2
        if self.device.startswith("cuda"):
            torch.cuda.empty_cache()
        self.messages.append(
            f"out of memory on {self.device} with boards={boards}: goes on with {boards // 2}, and "
            f"slower. Next time set boards={boards // 2}, or a smaller preset"
        )

    def _new_actor(self) -> Actor:
        return Actor(self.game, actor_copy(self.network, self.dtype), self.search)


def play_games(
    actor: Actor,
    boards: int,
    num_games: int,
    seed: int,
    on_progress: OnProgress,
    version: int = 0,
    graphs: Graphs | None = None,
) -> None:
    """Play `num_games` games in lockstep, telling `on_progress` every few plies; stops when it
    returns False.

    Games cut short that way are handed over too, as unfinished, and labelled as they stand (see
    Assembler.unfinished).
    version: positions that the run had played before, which decide on the value targets (see
    Game.bootstrap_after). graphs: what earlier calls found out
    about replaying plies (see graphs_for).
    """
    lockstep = Lockstep(actor, boards, num_games, seed, graphs)
    game = actor.game
    bootstrap = version >= game.bootstrap_after
    td_lambda = game.bootstrap_lambda if bootstrap else game.td_lambda
    assembler = Assembler(game.endings.index("truncated"), game.discount, td_lambda, bootstrap)
    goes_on = True
    cutting = CUTTER.submit(assembler.add, lockstep.play_block())
    while goes_on and lockstep.active > 0:
        block = lockstep.play_block()
        games = cutting.result()
        goes_on = on_progress(assembler.games, assembler.plies, games)
        cutting = CUTTER.submit(assembler.add, block)
    games = cutting.result()
    on_progress(assembler.games, assembler.plies, games)
    if (rest := assembler.unfinished()).num_games:
        on_progress(assembler.games, assembler.plies, rest)


class Boards(NamedTuple):
    """The games in progress."""

    state: Any  # [B]
    number: Tensor  # int64 [B], each board's game, -1 where there is none left
    next_number: Tensor  # int64 [], of the game to start next


class Lockstep:
    """The boards of one call of `play_games` and the games still to start."""

    def __init__(
        self, actor: Actor, boards: int, num_games: int, seed: int, graphs: Graphs | None = None
    ):
        self.actor, self.game = actor, actor.game
        self._replays = Replays(graphs or graphs_for(actor))
        device = actor.game.device
        self.generator = torch.Generator(device).manual_seed(seed)
        on_host = torch.Generator().manual_seed(seed)
        self.num_games = num_games
        self.starts = start_positions(self.game, self.game.start_shares, num_games, on_host)
        self.sample_until = torch.randint(
            0, self.game.sampling_plies, (num_games,), generator=on_host
        ).to(device)
        boards = min(boards, num_games)
        self.active = boards
        number = torch.arange(boards, device=device)
        next_number = torch.tensor(boards, device=device)
        self.boards = Boards(select(self.starts, number), number, next_number)

    def play_block(self) -> dict[str, np.ndarray]:
        """PLIES_A_BLOCK plies on every board, as arrays [plies, boards, ...] on the host."""
        rows = [self.play_ply() for _ in range(PLIES_A_BLOCK)]
        stacked = {name: torch.stack([row[name] for row in rows]) for name in rows[0]}
        narrow = {name: rows_.to(NARROW.get(name, rows_.dtype)) for name, rows_ in stacked.items()}
        playing = self.boards.number >= 0
        block = to_host({**narrow, "active": playing.sum()})
        self.active = int(block.pop("active"))
        self._shrink(playing)
        return block

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
        sampling = state.plies_played < self.sample_until[number.clamp(min=0)]
        action = torch.where(sampling, sample_actions(policy, choice), policy.action)
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
            "estimate": self._estimate(state),
            **({"reward": after.rewards[:, 0]} if self.game.score_limit else {}),
            **best_actions(policy),
        }
        return row, self._restart(after, ended, boards)

    def _outcome(self, state: Any) -> Tensor:
        """float32 [B]: what the game was worth to the first player; for a game at the cap, its
        label.
        """
        return torch.where(state.truncated, self._estimate(state), state.rewards[:, 0])

    def _estimate(self, state: Any) -> Tensor:
        """float32 [B]: what the game would be worth to the first player if it were stopped here."""
        label = self.game.truncation_value(state)
        return torch.where(state.current_player == 0, label, -label)

    def _restart(self, after: Any, ended: Tensor, boards: Boards) -> Boards:
        started = boards.next_number + ended.cumsum(0)
        fresh_number = torch.where(started <= self.num_games, started - 1, -1)
        number = torch.where(ended, fresh_number, boards.number)
        fresh = select(self.starts, number.clamp(min=0))
        state = where(ended & (number >= 0), fresh, after)
        return Boards(state, number, started[-1])

    def _shrink(self, playing: Tensor) -> None:
        """Drop boards that have no game any more."""
        size = room_for(self.active, self.game.device.type == "cpu")
        if size < len(playing):
            kept = rows_of(playing, size)
            state, number, next_number = self.boards
            self.boards = Boards(select(state, kept), number[kept], next_number)


def graphs_for(actor: Actor) -> Graphs:
    """Replay plies on CUDA, but for a search with proofs, whose sizes follow from the positions."""
    return Graphs(on=actor.game.device.type == "cuda" and actor.config.solve == "off")


def room_for(active: int, on_cpu: bool) -> int:
    """Boards to continue with when `active` of them have a game. A GPU sees powers of two only, so
    few shapes.
    """
    blocks = max(1, math.ceil(active / FEW_ROWS))
    return FEW_ROWS * (blocks if on_cpu else 2 ** math.ceil(math.log2(blocks)))


def sample_actions(policy: PolicyOutput, noise: Tensor) -> Tensor:
    """int64 [B]: actions drawn from the improved policy by Gumbel noise [B, columns]."""
    weights = policy.action_weights
    column = (weights.log() + noise[:, : weights.shape[1]]).argmax(1, keepdim=True)
    return policy.actions.gather(1, column).squeeze(1)


def best_actions(policy: PolicyOutput) -> dict[str, Tensor]:
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
