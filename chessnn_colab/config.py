"""TrainConfig: every choice a training run has, flat, so that a form, a shell and a config.json can all hold it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self, TypeVar

from .devices import Inventory, WorkerPlan, plan_workers
from .errors import ConfigError, require_counts
from .games.base import Game
from .games.registry import check_reward, rules
from .learner import LearnerConfig
from .network_config import NetworkConfig, preset
from .runs.folder import RunFolder, folder_path, own_folder
from .search import SearchConfig
from .selfplay_config import BOARDS, BOARDS_ON_CPU, SelfPlayConfig

POOLS = ("local", "inline", "ray")
NETWORK_SETTINGS = ("channels", "blocks", "steps", "levels", "encoding", "activation")
POLICY_HEADS = ("from", "from-to")
# These cannot change when a run is resumed: they give the weights their shape.
FIXED_FIELDS = frozenset({"preset", *NETWORK_SETTINGS, "policy_head"})
BEFORE = {"policy_head": "from", "levels": 4}  # what versions did that did not save a setting

Part = TypeVar("Part", SelfPlayConfig, SearchConfig, LearnerConfig)


@dataclass(frozen=True, kw_only=True)
class TrainConfig(LearnerConfig, SearchConfig, SelfPlayConfig):
    """One training run: its own settings, and those of self-play, search and learner, which stand in their configs.

    None lets the game, the device or the preset decide. Raises ConfigError for values that cannot be.
    """

    run: str = "auto"  # folder; auto: runs/ and the game's name; a run already there is resumed
    minutes: float | None = None  # how long to train, this time
    iterations: int | None = None  # or how many rounds, this time; neither: 20 minutes
    total_minutes: float | None = None  # spreads the learning rate's schedule over all sessions; None: over each alone
    preset: str = "auto"  # network size: cpu, t4, a100, h100, or by device
    channels: int | None = None  # neurons per square in each layer; None: the preset decides
    blocks: int | None = None  # of two layers each; None: the preset decides
    steps: int | None = None  # time steps; None: the preset decides, which is 1
    levels: int | None = None  # spikes that a neuron may fire in a step; None: the preset decides, which is 8
    encoding: str | None = None  # of the planes: direct, or rate; None: the preset decides, which is direct
    activation: str | None = None  # spikes, or its twins clipped and relu; None: the preset decides, which is spikes
    policy_head: str | None = None  # squares a move's logit reads: from, or from-to; None: both where a move has two
    games_per_iteration: int | None = None  # played before learning goes on; None: the device decides
    sample_reuse: float = 3.0  # positions learned from for each new one that is played
    batch_size: int | None = None  # positions per update; None: the device decides
    replay_capacity: int | None = None  # positions; None: the device decides
    measure_strength: bool | None = None  # puzzles or short matches, 5 % of the time; None: where `minutes` are set
    checkpoint_every: int = 5  # iterations between checkpoints, and between snapshots
    keep_checkpoints: int = 2  # how many; snapshots are all kept
    copy_to: str | None = None  # a second folder, such as one on Google Drive, that gets a copy after each checkpoint
    from_checkpoint: str | None = None  # another run's folder, whose weights this run starts with
    seed: int = 0  # of weights, games and batches
    device: str = "auto"  # that learns: cuda, mps, cpu; auto: the first of these that works
    gpus: tuple[int, ...] | None = None  # their numbers, such as 0,2; None: all
    workers: int | None = None  # processes that play; None: one for each GPU, or for each core
    workers_per_gpu: int = 1  # more may fill a large GPU
    selfplay_device: str | None = None  # cpu: play there, whatever learns; None: the device that learns
    learner_gpu: str = "shared"  # or own: no worker on the GPU that learns, where there is another
    device_failure: str = "stop"  # or cpu: what a worker does whose device does not work
    worker_timeout: float = 300.0  # seconds of silence after which a worker counts as hung
    overlap: bool = False  # play the next games while learning from these, one version behind
    pool: str = "local"  # or ray: a cluster; or inline: in this process, for debugging
    address: str | None = None  # of the Ray cluster, such as auto or 10.0.0.1:6379; None: this machine alone

    def __post_init__(self) -> None:
        for part in (SelfPlayConfig, SearchConfig, LearnerConfig):
            part.__post_init__(self)
        game = rules(self.game)
        object.__setattr__(self, "game", game.name)  # one name for one game: gomoku:15 is gomoku
        if self.run == "auto":
            object.__setattr__(self, "run", own_folder(game.name))
        self._check_game()
        counts = "iterations", "games_per_iteration", "replay_capacity", "checkpoint_every", "keep_checkpoints"
        require_counts(**{name: getattr(self, name) for name in (*counts, "batch_size")})
        for name in ("minutes", "total_minutes", "sample_reuse", "worker_timeout"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, (int, float)) and value > 0):
                raise ConfigError(f"{name}={value!r}: expected more than 0")
        if self.batch_size == 1:
            raise ConfigError("batch_size=1: expected 2 or more")
        if not isinstance(self.seed, int) or self.seed < 0:
            raise ConfigError(f"seed={self.seed!r}: expected a whole number from 0 up")
        if self.pool not in POOLS:
            raise ConfigError(f"unknown pool {self.pool!r}: expected one of {', '.join(POOLS)}")
        if self.overlap and self.pool == "inline":
            raise ConfigError(
                "overlap=True with pool='inline': workers can play beside the learner only in processes of their own, "
                "expected pool='local' or 'ray'"
            )
        if self.address is not None and self.pool != "ray":
            raise ConfigError(f"address={self.address!r} with pool={self.pool!r}: only pool='ray' has an address")
        self._network()

    def _check_game(self) -> None:
        check_reward(self.game, self.reward)
        self.start_shares(rules(self.game))
        if self.policy_head not in (None, *POLICY_HEADS):
            raise ConfigError(f"unknown policy_head {self.policy_head!r}: expected one of {', '.join(POLICY_HEADS)}")
        if self.policy_head == "from-to" and not rules(self.game).jumps:
            raise ConfigError(f"policy_head='from-to': moves of {self.game} lead to no second square, expected 'from'")
        if self.chance_samples > 1 and not rules(self.game).chance:
            raise ConfigError(f"chance_samples={self.chance_samples}: {self.game} has no chance, expected 1")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The config of plain data, as to_dict gives it. Raises ConfigError, with the valid names, for others."""
        known = [field.name for field in fields(cls)]
        unknown = sorted(set(values) - set(known))
        if unknown:
            raise ConfigError(f"unknown setting {', '.join(unknown)}: expected some of {', '.join(known)}")
        values = dict(values)
        if values.get("gpus") is not None:
            values["gpus"] = tuple(values["gpus"])
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain data."""
        return dataclasses.asdict(self)

    def part(self, kind: type[Part]) -> Part:
        """The settings of self-play, search or learner alone."""
        return kind(**{field.name: getattr(self, field.name) for field in fields(kind)})

    def with_saved(self) -> TrainConfig:
        """The same config, fitted to a run that is already in the folder.

        With preset "auto" it takes that run's network, whatever device the run is on now. Raises ConfigError when that
        run plays another game, or for another reward.
        """
        if (saved := self._saved()) is None:
            return self
        if self.game != (game := saved.get("game", "chess")):
            raise ConfigError(
                f"game={self.game!r}, but the run in {self.run} plays {game}: expected game={game!r}, or another folder"
            )
        usual = next(iter(rules(self.game).reward_kinds), None)
        if (self.reward or usual) != ((reward := saved.get("reward")) or usual):
            raise ConfigError(
                f"reward={self.reward!r}, but the run in {self.run} has reward={reward!r}: expected the same, or "
                "another folder"
            )
        saved, names = {**BEFORE, **saved}, FIXED_FIELDS if self.preset == "auto" else BEFORE
        kept = {name: saved[name] for name in names if name in saved and getattr(self, name) in (None, "auto")}
        return dataclasses.replace(self, **kept)

    def changeable(self) -> set[str]:
        """The settings that may differ from those of a run in the folder.

        All but FIXED_FIELDS, and of these the ones that the version of the run did not know, set to what it did.
        """
        saved = self._saved() or {}
        unknown = {name for name in FIXED_FIELDS - saved.keys() if getattr(self, name) in (None, BEFORE.get(name))}
        return {field.name for field in fields(self)} - FIXED_FIELDS | unknown

    def _saved(self) -> dict[str, Any] | None:
        """The config of the run that is already in the folder."""
        if not (folder_path(self.run) / "config.json").is_file():
            return None
        saved = dict(RunFolder.open(self.run).config)
        if saved.get("levels") is None:  # before 0.7 a preset decided it, and did not say so
            saved.pop("levels", None)
        return saved

    def for_device(self, device: str, machine: Inventory, plan: WorkerPlan) -> SettledTrainConfig:
        """The same config with every None filled in that the device, the workers or the preset decide."""
        name = self.preset if self.preset != "auto" else _preset_for(device, machine, plan)
        on_cpu, workers = plan.devices[0] == "cpu", len(plan.devices)
        boards = self.boards or (BOARDS_ON_CPU if on_cpu else BOARDS)
        games = max(128, boards * workers) if on_cpu else 2 * boards * workers
        defaults = {
            "levels": preset(name).levels,
            "games_per_iteration": games,
            "boards": boards,
            "batch_size": 512 if device == "cpu" else 1024,
            "replay_capacity": 300_000 if on_cpu else 500_000,
        }
        chosen = {key: value for key, value in defaults.items() if getattr(self, key) is None}
        return SettledTrainConfig.from_dict({**self.to_dict(), "preset": name, **chosen})

    def network_config(self, game: Game) -> NetworkConfig:
        """The preset with this run's overrides, for a game's planes, board and actions."""
        planes, height, width = game.observation_shape
        board = {"planes": planes, "height": height, "width": width, "actions": game.num_actions}
        jumps = () if self.policy_head == "from" else game.jumps
        return dataclasses.replace(self._network(), **board, jumps=jumps, score_limit=game.score_limit)

    def job_settings(self, network: NetworkConfig) -> dict[str, Any]:
        """What a worker needs to make its selfplay.SelfPlay, as plain data that crosses processes."""
        parts = {"search": self.part(SearchConfig), "self_play": self.part(SelfPlayConfig)}
        plain = {name: dataclasses.asdict(part) for name, part in parts.items()}
        return {"network": network.to_dict(), **plain, "precision": self.precision}

    def worker_plan(self, device: str, machine: Inventory) -> WorkerPlan:
        """Who plays where on this machine; a cluster has its own plan (see workers.ray.plan_cluster)."""
        return plan_workers(
            machine,
            device,
            self.workers,
            self.workers_per_gpu,
            self.gpus,
            self.selfplay_device,
            self.learner_gpu,
            self.device_failure,
        )

    def _network(self) -> NetworkConfig:
        base = preset(self.preset if self.preset != "auto" else "cpu")
        given = {name: getattr(self, name) for name in NETWORK_SETTINGS if getattr(self, name) is not None}
        return dataclasses.replace(base, **given)


class SettledTrainConfig(TrainConfig):
    """A config that leaves none of these to the device."""

    games_per_iteration: int
    boards: int
    batch_size: int
    replay_capacity: int


def _preset_for(device: str, machine: Inventory, plan: WorkerPlan) -> str:
    """The largest preset for which every GPU that learns or plays has the memory."""
    if "cpu" in (device, plan.devices[0]):  # cores that play could not keep up with a larger one
        return "cpu"
    if device == "mps":
        return "t4"
    used = {int(place.partition(":")[2] or 0) for place in (device, *plan.devices) if place.startswith("cuda")}
    there = [gpu for gpu in machine.gpus if gpu.index in used]
    smallest = min(there, key=lambda gpu: (gpu.memory, gpu.capability), default=None)
    if smallest is None or smallest.memory < 30 * 2**30:
        return "t4"
    # An A100 of 80 GB reports as much memory as an H100: the generation tells them apart.
    return "h100" if smallest.memory > 70 * 2**30 and smallest.capability >= (9, 0) else "a100"
