"""TrainConfig: every setting of a training run, flat, so that a form, a shell and a config.json can
all hold it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from .budget import DEFAULT_MINUTES
from .devices import Inventory, WorkerPlan, plan_workers
from .errors import ConfigError
from .games.base import Game
from .games.registry import rules
from .learner import LearnerConfig
from .memory import usable_memory
from .network_config import PRESETS, NetworkConfig
from .presets import (
    BOARDS,
    BOARDS_ON_CPU,
    LEAST_REUSE,
    MOST_REUSE,
    ON_CPU,
    ON_GPU,
    SPIKE_PRICES,
    choose_preset,
    choose_reuse,
    usual_boards,
)
from .replay import ITERATIONS_HELD, window_limit
from .runs.folder import RunFolder, folder_path, own_folder
from .search import SearchConfig
from .selfplay import SelfPlay
from .settings import (
    ABOVE_ZERO,
    COUNT,
    COUNT_FROM_ZERO,
    FIRST,
    FROM_ZERO,
    LEARNING,
    NETWORK,
    RUN,
    SELF_PLAY,
    WORKERS,
    Check,
    one_of,
    require,
    setting,
    whole,
)
from .text import Say, counted, silent
from .workers.local import InlinePool, LocalPool
from .workers.pool import Pool
from .workers.protocol import OnStart

MOST_WORKERS = 10_000
USUAL_PLIES = 100  # of a game of chess; an iteration counts no more for each of its games
NETWORK_SETTINGS = ("channels", "blocks", "steps", "levels", "reset", "activation")
# A run keeps these when it is resumed: they give the weights their shape.
FIXED_SETTINGS = frozenset({"preset", *NETWORK_SETTINGS})


@dataclass(frozen=True, kw_only=True)
class TrainConfig(LearnerConfig, SearchConfig):
    """One training run: its own settings, and those of the search and the learner.

    None leaves a setting to the game, the device or the preset (see `resolve`). Raises ConfigError
    for values that are not possible.
    """

    game: str = setting(
        "chess", "The game to learn: chess, gomoku (or gomoku:SIZE), 2048 or tictactoe.", FIRST
    )
    run: str = setting(
        "auto",
        "The run's folder. A run that is already there is resumed. auto is a folder in runs/ "
        "with the game's name.",
        FIRST,
    )
    minutes: float | None = setting(
        None,
        "How many minutes to train in this session. Without minutes and iterations it is 20.",
        FIRST,
        ABOVE_ZERO,
    )
    iterations: int | None = setting(
        None,
        "How many iterations to train in this session. With minutes too, whichever ends first.",
        FIRST,
        COUNT,
    )
    preset: str = setting(
        "auto",
        "The size of the network: cpu, t4, a100 or h100. auto chooses by the device, its free "
        "memory and the minutes, and says why.",
        FIRST,
        one_of("auto", *PRESETS),
    )
    device: str = setting(
        "auto",
        "The device that learns: cuda, mps or cpu. auto is the first of these that works.",
        FIRST,
    )

    seed: int = setting(0, "The seed of weights, games and batches.", RUN, COUNT_FROM_ZERO)
    total_minutes: float | None = setting(
        None,
        "The length of the learning rate's schedule over all sessions. By default each session "
        "has its own schedule.",
        RUN,
        ABOVE_ZERO,
    )
    measure_strength: bool | None = setting(
        None,
        "Measure the strength while training, by puzzles or short matches, in 5 % of the time. "
        "By default it is measured unless `iterations` alone is set.",
        RUN,
    )
    checkpoint_every: float = setting(
        120,
        "The seconds from one checkpoint and snapshot to the next, at the end of an iteration. "
        "They come later when saving would take more than 2 % of the time.",
        RUN,
        FROM_ZERO,
    )
    copy_to: str | None = setting(
        None,
        "A second folder, such as one on Google Drive, which gets a copy after each checkpoint.",
        RUN,
    )
    from_checkpoint: str | None = setting(
        None, "Another run's folder. A new run starts with the weights of that run.", RUN
    )

    channels: int | None = setting(
        None, "The neurons per square in each layer. By default the preset decides.", NETWORK
    )
    blocks: int | None = setting(
        None, "The number of blocks, of two layers each. By default the preset decides.", NETWORK
    )
    steps: int | None = setting(
        None, "The number of time steps. By default the preset decides, which is 1.", NETWORK
    )
    levels: int | None = setting(
        None,
        "The spikes that a neuron may fire in a step. By default the preset decides, which is 8.",
        NETWORK,
    )
    reset: str | None = setting(
        None,
        "What a spike takes off its neuron's membrane: soft, one threshold; or hard, all of it, as "
        "most neuromorphic chips do (with --levels 1). By default it is soft.",
        NETWORK,
    )
    activation: str | None = setting(
        None,
        "The neurons' output: spikes, or numbers without spikes for comparison (clipped, relu). "
        "By default it is spikes.",
        NETWORK,
    )

    positions_per_iteration: int | None = setting(
        None,
        "The positions played before the network learns again. By default the device decides, and "
        f"it is about {USUAL_PLIES} for each of 128 games or more.",
        SELF_PLAY,
        COUNT,
    )
    boards: int | None = setting(
        None,
        f"The games that a worker plays in lockstep. By default {BOARDS_ON_CPU} on a CPU and "
        f"{BOARDS} on a GPU.",
        SELF_PLAY,
        COUNT,
    )
    max_plies: int | None = setting(
        None,
        "A longer game is stopped and gets an estimated result. By default the game decides: "
        "chess 160.",
        SELF_PLAY,
        COUNT,
    )

    sample_reuse: float | None = setting(
        None,
        "How often each position is learned from, on average. By default it is chosen once, when "
        f"a run begins: on GPUs from {LEAST_REUSE:g} to {MOST_REUSE:g}, so that learning takes "
        f"about as long as playing, and on a CPU {MOST_REUSE:g}.",
        LEARNING,
        ABOVE_ZERO,
    )
    bootstrap_after: int | None = setting(
        None,
        "The number of positions after which value targets look at the search's values instead "
        "of the material. 0 is from the first game on. By default the game decides: chess "
        "200,000.",
        LEARNING,
        COUNT_FROM_ZERO,
    )
    batch_size: int | None = setting(
        None,
        "The positions per update. By default the device and the preset decide.",
        LEARNING,
        whole(2),
    )
    replay_capacity: int | None = setting(
        None,
        "The most positions that are kept to learn from. The latest are kept: a number that grows "
        f"with those played, and never less than {ITERATIONS_HELD} iterations. By default the "
        "memory is the limit.",
        LEARNING,
        COUNT,
    )

    workers: int | None = setting(
        None,
        "The number of processes that play. By default one for each GPU, or for each core (16 at "
        "most on one machine). Several workers share a GPU when there are more workers than GPUs.",
        WORKERS,
        whole(most=MOST_WORKERS),
    )
    gpus: tuple[int, ...] | None = setting(
        None,
        "The numbers of the GPUs to use, such as 0,2. By default all.",
        WORKERS,
        Check(
            lambda gpus: isinstance(gpus, (tuple, list)) and 0 < len(set(gpus)) == len(gpus),
            "different GPU numbers such as 0,2 (leave gpus out for all)",
        ),
    )
    selfplay_device: str | None = setting(
        None, "The device that plays, such as cpu. By default the device that learns.", WORKERS
    )
    learner_gpu: str = setting(
        "all",
        "all: every GPU that plays learns too, from its part of each batch. one: a single GPU "
        "learns while the others wait.",
        WORKERS,
        one_of("all", "one"),
    )
    pool: str = setting(
        "local",
        "Where the workers are: local (this machine), ray (a cluster) or inline (this process, "
        "for debugging).",
        WORKERS,
        one_of("local", "inline", "ray"),
    )
    address: str | None = setting(
        None,
        "The address of the Ray cluster, such as auto or 10.0.0.1:6379. By default a cluster of "
        "this machine alone.",
        WORKERS,
    )

    def __post_init__(self):
        super().__post_init__()
        if isinstance(self.gpus, list):  # from JSON
            object.__setattr__(self, "gpus", tuple(self.gpus))
        for name in ("run", "copy_to", "from_checkpoint"):
            if (folder := getattr(self, name)) is not None:
                object.__setattr__(self, name, str(folder))
        game = rules(str(self.game))
        object.__setattr__(self, "game", game.name)  # gomoku:15 is named gomoku
        if self.run == "auto":
            object.__setattr__(self, "run", own_folder(game.name))
        require("search", self.search, one_of("two-rung", "tree"), " in self-play")
        if self.bootstrap_after is not None and game.score_limit:
            raise ConfigError(
                f"bootstrap_after={self.bootstrap_after} for the game {game.name!r}: expected "
                "none, because its value targets always look at the search's values"
            )
        if self.address is not None and self.pool != "ray":
            raise ConfigError(
                f"address={self.address!r} with pool={self.pool!r}: only pool='ray' has an address"
            )
        self._shape()

    def worker_plan(self, device: str, machine: Inventory) -> WorkerPlan:
        """Which workers play on which device, when `device` of this `machine` learns.

        Raises ConfigError, DeviceError or WorkerError.
        """
        if self.pool != "ray":
            return plan_workers(machine, device, self.workers, self.gpus, self.selfplay_device)
        if self.gpus is not None:
            raise ConfigError(
                f"gpus={self.gpus} on a Ray cluster, where Ray gives out the GPUs: leave it out. "
                "CUDA_VISIBLE_DEVICES in the environment of `ray start` limits those of a machine"
            )
        from .workers.ray import join_cluster, plan_cluster  # Ray is an extra

        return plan_cluster(
            join_cluster(self.address),
            self.workers,
            self.selfplay_device or ("cpu" if self.device == "cpu" else None),
        )

    def resolve(
        self,
        device: str,
        machine: Inventory,
        plan: WorkerPlan,
        saved: Mapping[str, Any] | None = None,
        say: Say = silent,
    ) -> ResolvedTrainConfig:
        """The config with every setting filled in that the saved run, the device, the workers or
        the preset decide.

        saved: the settings of a run that is resumed (see `saved_config`); empty for a new run. With
        preset "auto" the network is that of the run, on any device. say: gets the reason when a
        preset is chosen. Raises ConfigError when the run plays another game.
        """
        values = self.to_dict()
        if saved:
            self._check_same_game(saved)
            if self.preset == "auto":
                for name in FIXED_SETTINGS & saved.keys():
                    if values[name] in (None, "auto"):
                        values[name] = saved[name]
        learners = self.learners(device, plan, say)
        preset = values["preset"]  # the run's, if it has one
        if self.preset == "auto":
            minutes = self.total_minutes or self.minutes or DEFAULT_MINUTES
            found = choose_preset(device, machine, plan, minutes, learners)
            preset = values["preset"] = _preset_of_run(preset, *found, say)
        values["sample_reuse"] = (
            self.sample_reuse
            or (saved or {}).get("sample_reuse")
            or choose_reuse(preset, device, machine, plan, learners, say)
        )
        workers = len(plan.devices)
        learning = ON_CPU if device == "cpu" else ON_GPU[preset]
        boards = self.boards or usual_boards(plan.devices[0])
        plies = min(self.max_plies or rules(self.game).self_play_plies, USUAL_PLIES)
        games = max(128, boards * workers)
        decided = {
            "positions_per_iteration": games * plies,
            "boards": boards,
            "batch_size": learning.batch_size,
            "learning_rate": learning.learning_rate,
            "warm_up": learning.warm_up,
            "spike_penalty": self._price(saved),
            "replay_capacity": window_limit(usable_memory()),
        }
        for name, value in decided.items():
            if values[name] is None:
                values[name] = value
        resolved = ResolvedTrainConfig.from_dict(values)
        positions = resolved.positions_per_iteration
        if positions < boards * workers:
            raise ConfigError(
                f"positions_per_iteration={positions} for {counted(workers, 'worker')} of "
                f"{counted(boards, 'board')}: expected {boards * workers} or more, or fewer boards"
            )
        if resolved.replay_capacity < positions:
            raise ConfigError(
                f"replay_capacity={resolved.replay_capacity} with positions_per_iteration="
                f"{positions}: expected as many or more, or some would never be learned from"
            )
        return resolved

    def learners(self, device: str, plan: WorkerPlan, say: Say = silent) -> int:
        """How many devices learn, when `device` does: every GPU that plays, or one. say: gets the
        reason where several GPUs play, and not all may learn.
        """
        workers = len(plan.devices)
        wanted = self.learner_gpu == "all" and self.pool != "inline"
        on_gpus = plan.devices[0].startswith("cuda") and workers > plan.workers_per_gpu
        if not (wanted and on_gpus):
            return 1
        reason = plan.learns_alone if device.startswith("cuda") else f"the run's device is {device}"
        if reason:
            say(f"One device learns while the GPUs wait: {reason}")
            return 1
        learners = min(workers, self.batch_size or workers)
        if learners < workers:
            say(f"Only {learners} of {workers} GPUs learn: a batch has {learners} positions")
        return learners

    def _price(self, saved: Mapping[str, Any] | None) -> float:
        """Of spikes: that of the saved run, which an old one lacks, or the game's."""
        if saved:
            return saved.get("spike_penalty", 0.0)
        spiking = self.activation in (None, "spikes")
        return SPIKE_PRICES.get(self.game, 0.0) * spiking

    def _check_same_game(self, saved: Mapping[str, Any]) -> None:
        kept = saved.get("game")
        if self.game != kept:
            raise ConfigError(
                f"game={self.game!r}, but the run in {self.run} has game={kept!r}: "
                "expected the same, or another folder"
            )

    def network_config(self, game: Game) -> NetworkConfig:
        """The preset with this run's overrides, for a game's planes, board and actions."""
        planes, height, width = game.observation_shape
        return dataclasses.replace(
            self._shape(),
            planes=planes,
            height=height,
            width=width,
            actions=game.num_actions,
            jumps=game.jumps,
            score_limit=game.score_limit,
        )

    def job_settings(self, network: NetworkConfig) -> dict[str, Any]:
        """The arguments of a worker's selfplay.SelfPlay, as plain data that crosses processes."""
        own = ("game", "boards", "max_plies", "precision", "bootstrap_after")
        values = self.to_dict()
        return {
            "network": network.to_dict(),
            "search": {name: values[name] for name in vars(SearchConfig())},
            **{name: values[name] for name in own},
        }

    def open_pool(
        self,
        network: NetworkConfig,
        plan: WorkerPlan,
        logs: Path,
        say: Say,
        on_start: OnStart | None = None,
    ) -> Pool:
        """The workers of `plan`, started. logs: the folder for what each prints; say: gets
        sentences for the user; on_start: gets which workers have started.

        Raises WorkerError when a worker cannot start.
        """
        settings = self.job_settings(network)
        if self.pool == "inline":
            return InlinePool(SelfPlay, settings, plan, say)
        if self.pool == "ray":
            from .workers.ray import RayPool  # Ray is an extra

            return RayPool(
                SelfPlay, settings, plan, address=self.address, on_message=say, on_start=on_start
            )
        return LocalPool(SelfPlay, settings, plan, logs=logs, on_message=say, on_start=on_start)

    def _shape(self) -> NetworkConfig:
        """The preset's network with the settings that are given."""
        base = PRESETS["cpu" if self.preset == "auto" else self.preset]
        given = {
            name: value for name in NETWORK_SETTINGS if (value := getattr(self, name)) is not None
        }
        return dataclasses.replace(base, **given)


class ResolvedTrainConfig(TrainConfig):
    """A TrainConfig that leaves none of these to the device."""

    positions_per_iteration: int
    boards: int
    batch_size: int
    replay_capacity: int
    sample_reuse: float
    learning_rate: float
    warm_up: int
    spike_penalty: float

    def updates(self, positions: int) -> int:
        """The updates that an iteration makes for so many new positions, at least one."""
        return max(1, round(positions * self.sample_reuse / self.batch_size))


CHANGEABLE = {field.name for field in fields(TrainConfig)} - FIXED_SETTINGS


def saved_config(run: str) -> dict[str, Any] | None:
    """The settings of the run in the folder `run`; None if there is no run. Raises RunError."""
    if not (folder_path(run) / "config.json").is_file():
        return None
    return dict(RunFolder.open(run).config)


def _preset_of_run(saved: str, chosen: str, reason: str, say: Say) -> str:
    """The preset that a run saved, else ("auto") the one that is chosen now; says why."""
    if saved == "auto":
        say(reason)
        return chosen
    if saved != chosen:
        say(
            f"This run keeps its network (preset {saved}). A new run would get {chosen}: name "
            "another run folder for it"
        )
    return saved
