"""Self-play: many games in lockstep on one device, finished ones replaced at once, records out as
numpy.

Nothing of a ply touches the host. Every few plies one block of rows is copied over. `Assembler`
cuts it into games while the device plays the next block. A call plays a number of positions. The
games that it leaves unfinished go on in the next call, with the weights of then: every game is
played to its end, so a short game is never preferred to a long one, and no board is ever empty.
"""

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import torch

from .actor import Actor
from .assembler import Assembler
from .data_parallel import Group, learn_as_rank
from .devices import Inventory, detect_device, out_of_memory, time_convolutions
from .errors import ConfigError
from .games.registry import make_game
from .graphs import Graphs
from .in_flight import ROWS, Arrays, OnArrays, Share
from .int8 import playing_dtype
from .learner import graphs_of_updates
from .learning import Batch, OnUpdate
from .lockstep import PLIES_A_BLOCK, Lockstep, graphs_for
from .network import actor_copy, build_network, load_arrays
from .network_config import NetworkConfig
from .records import GameRecords
from .search import SearchConfig

EVALUATIONS_A_BLOCK = 300  # of a board; 64 boards of preset cpu take five seconds of a core
CUTTER = ThreadPoolExecutor(1, "cut")  # one thread of a process, because each has memory of its own


# on_progress(games done, plies done, records of the games done since the last call) -> go on?
OnProgress = Callable[[int, int, GameRecords], bool]


class SelfPlay:
    """A network that plays itself on one device; what a worker process runs (see workers).

    network and search are the fields of their configs as plain dicts, so that they cross processes.
    boards: games in lockstep. max_plies: see games.registry.make_game.
    bootstrap_after: positions; None: the game decides (see games.base.Game).
    """

    def __init__(
        self,
        device: str,
        network: Mapping[str, Any],
        search: Mapping[str, Any],
        boards: int,
        game: str = "chess",
        max_plies: int | None = None,
        precision: str = "auto",
        bootstrap_after: int | None = None,
    ):
        # A worker that plays on the CPU does not start the driver of a GPU.
        machine = None if device.startswith("cuda") else Inventory((), device == "mps", 1)
        self._device_name = detect_device(device, machine).name
        time_convolutions(device)
        self.device = device
        self.messages = []  # for the user
        self.game = make_game(game, max_plies, device)
        if bootstrap_after is not None:
            self.game.bootstrap_after = bootstrap_after
        self.boards = boards
        self.search = SearchConfig(**search)
        self.network = build_network(NetworkConfig.from_dict(network), device)
        self.version = 0
        self._halved = False
        self.dtype = playing_dtype(precision, device, self.network.config)
        self._actor = self._new_actor()
        self._graphs = graphs_for(self._actor)
        self._updates = graphs_of_updates(torch.device(device))

    def describe(self) -> str:
        """The device's name, for people."""
        return self._device_name

    def set_weights(self, version: int, arrays: Arrays) -> None:
        """Play with these weights (network.to_arrays) from the next call of `play` on.

        version: the number of positions that were played before, as Play wants it. Raises
        ConfigError.
        """
        load_arrays(self.network, arrays)
        self.version = version
        self._actor = self._new_actor()

    def play(self, share: Share, seed: int, on_progress: OnArrays) -> Arrays:
        """Play share.positions positions: first on in the games share.games, then in new ones. The
        same share, seed, weights and device give the same games.

        on_progress gets the games and plies so far, and the games that have ended since its last
        call as GameRecords.to_arrays, or None; play stops when it returns False. Returns the games
        in flight. Where memory runs out, the games in lockstep are halved, once and for good, and
        go on from another seed. Raises ConfigError when half of them are too many too.
        """
        games_before = plies_before = 0  # on more boards, before memory ran out
        games = share.games

        def hand_over(ended: int, plies: int, records: GameRecords) -> bool:
            arrays = records.to_arrays() if records.num_games else None
            return on_progress(games_before + ended, plies_before + plies, arrays)

        while True:
            play = Play(self._actor, self.boards, seed, self.version, self._graphs, games)
            try:
                play.run(share.positions - plies_before, hand_over)
                self._tell_trouble(self._graphs)
                return play.in_flight()
            except (RuntimeError, MemoryError) as error:
                if not out_of_memory(error):
                    raise
            # Here the error is gone, and with it the tensors of the frames that it held.
            play.hand_over(hand_over)
            games = play.in_flight()
            games_before += play.assembler.games
            plies_before += play.assembler.plies
            self._halve_boards()
            seed += 1

    def learn(
        self, state: Any, group: Sequence[Any], batches: Iterable[Batch], on_update: OnUpdate
    ) -> dict[str, Any] | None:
        """Be one of the learner's ranks (see data_parallel.learn_as_rank). The weights to play with
        stay those of set_weights.
        """
        own = self.network, self.game
        try:
            return learn_as_rank(*own, state, Group(*group), batches, on_update, self._updates)
        finally:
            self._tell_trouble(self._updates)

    def _tell_trouble(self, graphs: Graphs) -> None:
        if graphs.trouble:
            self.messages.append(f"{self.device}: {graphs.trouble}")
            graphs.trouble = ""

    def _halve_boards(self) -> None:
        boards = self.boards
        if self._halved or boards == 1:
            raise ConfigError(
                f"out of memory on {self.device} with boards={boards}, having halved them once: "
                "set boards lower, or let fewer workers share the device (workers)"
            )
        self._halved = True
        self.boards = boards // 2
        if self.device.startswith("cuda"):
            # torch up to 2.12 refuses after a recording that failed (issue 180395).
            with suppress(RuntimeError):
                torch.cuda.empty_cache()
        self.messages.append(
            f"out of memory on {self.device} with boards={boards}: goes on with {boards // 2}, and "
            f"slower. Next time set boards={boards // 2}, or a smaller preset"
        )

    def _new_actor(self) -> Actor:
        return Actor(self.game, actor_copy(self.network, self.dtype), self.search)


class Play:
    """Self-play on boards in lockstep, from seed `seed`.

    version: positions that the run had played before, which decide on the value targets (see
    Game.bootstrap_after). graphs: what earlier calls found out about replaying plies (see
    graphs_for). games: in flight, to be played first (see in_flight). limit: of the number of
    games; each of them is played to its end, on no more boards than there are games.
    """

    def __init__(
        self,
        actor: Actor,
        boards: int,
        seed: int,
        version: int = 0,
        graphs: Graphs | None = None,
        games: Arrays | None = None,
        limit: int = sys.maxsize,
    ):
        self.lockstep = Lockstep(actor, boards, seed, graphs, games, limit)
        # A worker is heard, and hears, once a block.
        affordable = max(1, EVALUATIONS_A_BLOCK // actor.config.evaluations)
        self.plies_a_block = min(PLIES_A_BLOCK, affordable)
        self.assembler = Assembler(actor.game, version, games)
        self._cutting: Future[GameRecords] | None = None

    def run(self, positions: int, on_progress: OnProgress) -> None:
        """Play at least `positions` positions, or all games there are, telling `on_progress` every
        few plies; stop when it returns False.
        """
        left = positions
        played = 1
        boards = len(self.lockstep.boards.number)
        goes_on = True
        while goes_on and left > 0 and played:
            plies = min(self.plies_a_block, math.ceil(left / boards))
            block = self.lockstep.play_block(plies)
            played = int((block["number"] >= 0).sum())
            left -= played
            goes_on = self.hand_over(on_progress)
            self._cutting = CUTTER.submit(self.assembler.add, block)
        self.hand_over(on_progress)

    def hand_over(self, on_progress: OnProgress) -> bool:
        """Hand over what the last block has brought, if that was not done yet. Returns what
        on_progress says.
        """
        cutting = self._cutting
        if cutting is None:
            return True
        self._cutting = None
        try:
            records = cutting.result()
        except MemoryError:  # rows are lost, and fewer boards would not bring them back
            raise ConfigError(
                "this machine's memory is full: set boards, workers, replay_capacity or games lower"
            ) from None
        return on_progress(self.assembler.games, self.assembler.plies, records)

    def in_flight(self) -> Arrays:
        """The games in progress, and those that wait to be started, once all is handed over."""
        numbers, games = self.lockstep.games()
        rows = self.assembler.rows_of(numbers)
        return {**games, **{ROWS + name: array for name, array in rows.items()}} if rows else {}
