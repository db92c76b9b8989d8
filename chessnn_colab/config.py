"""TrainConfig: every choice a training run has, flat, so that a form, a shell and a config.json can all hold it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Mapping

from .devices import Inventory, WorkerPlan, plan_workers
from .errors import ConfigError
from .games.chess.rules import NUM_OBSERVATION_PLANES, Chess
from .learner import LearnerConfig
from .network_config import NetworkConfig, preset
from .runs.folder import RunFolder
from .search import SearchConfig
from .selfplay import SelfPlayConfig

POOLS = ("local", "inline", "ray")
# What cannot change when a run goes on: the network is its weights' shape.
FIXED_FIELDS = frozenset({"preset", "channels", "blocks", "steps", "levels", "encoding"})


@dataclass(frozen=True)
class TrainConfig:
    """One training run. Raises ConfigError for values that cannot be; None lets the device or the preset decide."""

    run: str = "runs/chess"  # folder; a run already there goes on
    minutes: float | None = None  # how long to train, this time
    iterations: int | None = None  # or how many rounds, this time; neither: 20 minutes
    preset: str = "auto"  # network size: cpu, t4, a100, h100, or by device
    channels: int | None = None  # these five override the preset's
    blocks: int | None = None
    steps: int | None = None
    levels: int | None = None
    encoding: str | None = None
    games_per_iteration: int | None = None
    boards: int | None = None  # games in lockstep, each worker
    search: str = "two-rung"  # or tree, or policy
    candidates: int = 8  # two-rung: root moves looked at in training
    survivors: int = 4  # of them, those whose best reply is looked at
    num_simulations: int = 32  # tree: evaluations a move in training
    value_scale: float = 0.3  # weight of the search's values against the network's prior
    max_plies: int = 160
    few_piece_starts: float = 0.4
    random_starts: float = 0.2
    sampling_plies: int = 30
    discount: float = 0.99  # a win's worth a ply later
    td_lambda: float = 0.85  # below 1, value targets also see the material of the next plies
    sample_reuse: float = 3.0  # how often a position is learned from, on average
    batch_size: int | None = None
    learning_rate: float = 2e-3
    weight_decay: float = 1e-4
    clip_norm: float = 1.0
    value_weight: float = 1.0
    entropy_bonus: float = 0.01  # with search policy
    precision: str = "auto"  # auto, float32, bfloat16, float16
    replay_capacity: int | None = None
    checkpoint_every: int = 5  # iterations between checkpoints, and between snapshots
    keep_checkpoints: int = 2
    copy_to: str | None = None  # a second folder, on Google Drive say, that gets a copy after each checkpoint
    from_checkpoint: str | None = None  # another run's folder, whose weights this run starts with
    seed: int = 0
    device: str = "auto"
    gpus: tuple[int, ...] | None = None
    workers: int | None = None
    workers_per_gpu: int = 1
    selfplay_device: str | None = None
    learner_gpu: str = "shared"  # or own: no worker on the GPU that learns, where there is another
    device_failure: str = "stop"  # or cpu: what a worker does whose device does not work
    worker_timeout: float = 300.0  # seconds of silence after which a worker counts as hung
    overlap: bool = False  # play the next games while learning from these, one version behind
    pool: str = "local"  # or ray: a cluster; or inline: in this process, for debugging
    address: str | None = None  # of the Ray cluster, such as auto or 10.0.0.1:6379; None: this machine alone

    def __post_init__(self):
        if self.minutes is not None and not self.minutes > 0:
            raise ConfigError(f"minutes={self.minutes}: expected more than 0")
        for name in (
            "iterations",
            "games_per_iteration",
            "boards",
            "replay_capacity",
            "checkpoint_every",
            "keep_checkpoints",
        ):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{name}={value}: expected a whole number from 1 up")
        if not self.sample_reuse > 0:
            raise ConfigError(f"sample_reuse={self.sample_reuse}: expected more than 0")
        if not self.worker_timeout > 0:
            raise ConfigError(f"worker_timeout={self.worker_timeout}: expected seconds, more than 0")
        if self.pool not in POOLS:
            raise ConfigError(f"unknown pool {self.pool!r}: expected one of {', '.join(POOLS)}")
        if self.overlap and self.pool == "inline":
            raise ConfigError(
                "overlap=True with pool='inline': workers play beside the learner only in processes of "
                "their own, expected pool='local' or 'ray'"
            )
        if self.address is not None and self.pool != "ray":
            raise ConfigError(f"address={self.address!r} with pool={self.pool!r}: only pool='ray' has an address")
        if self.preset != "auto":
            preset(self.preset)
        # The parts check their own values.
        self.search_config(), self.selfplay_config(), self.learner_config(), self.network_config()

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "TrainConfig":
        """Raises ConfigError, with the valid names, on an unknown key."""
        known = [field.name for field in fields(cls)]
        unknown = sorted(set(values) - set(known))
        if unknown:
            raise ConfigError(f"unknown setting {', '.join(unknown)}: expected some of {', '.join(known)}")
        values = dict(values)
        if values.get("gpus") is not None:
            values["gpus"] = tuple(values["gpus"])
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def with_saved_network(self) -> "TrainConfig":
        """With preset "auto" and a run already in the folder: that run's network, whatever device it is now on."""
        if self.preset != "auto" or not (Path(self.run).expanduser() / "config.json").is_file():
            return self
        saved = RunFolder.open(self.run).config
        kept = {name: saved[name] for name in FIXED_FIELDS if name in saved and getattr(self, name) in (None, "auto")}
        return dataclasses.replace(self, **kept)

    def for_device(self, device: str, machine: Inventory, plan: WorkerPlan) -> "TrainConfig":
        """The same config with every None that the device, the workers or the preset decide filled in."""
        name = self.preset if self.preset != "auto" else _preset_for(device, machine)
        on_cpu, workers = plan.devices[0] == "cpu", len(plan.devices)
        boards = self.boards or (64 if on_cpu else 512)
        games = max(128, boards * workers) if on_cpu else 2 * boards * workers
        defaults = {
            "games_per_iteration": games,
            "boards": boards,
            "batch_size": 512 if device == "cpu" else 1024,
            "replay_capacity": 300_000 if on_cpu else 500_000,
        }
        chosen = {key: value for key, value in defaults.items() if getattr(self, key) is None}
        return dataclasses.replace(self, preset=name, **chosen)

    def network_config(self) -> NetworkConfig:
        """The preset with this run's overrides, for chess."""
        base = preset(self.preset if self.preset != "auto" else "cpu")
        overrides = {
            name: getattr(self, name)
            for name in ("channels", "blocks", "steps", "levels", "encoding")
            if getattr(self, name) is not None
        }
        return dataclasses.replace(base, planes=NUM_OBSERVATION_PLANES, actions=Chess.num_actions, **overrides)

    def search_config(self) -> SearchConfig:
        return SearchConfig(
            self.search, self.candidates, self.survivors, self.num_simulations, value_scale=self.value_scale
        )

    def selfplay_config(self) -> SelfPlayConfig:
        return SelfPlayConfig(
            self.boards or 64,
            self.max_plies,
            self.few_piece_starts,
            self.random_starts,
            self.sampling_plies,
            self.discount,
            self.td_lambda,
        )

    def learner_config(self) -> LearnerConfig:
        return LearnerConfig(
            self.batch_size or 512,
            self.learning_rate,
            self.weight_decay,
            self.clip_norm,
            self.value_weight,
            self.entropy_bonus,
            self.search == "policy",
            self.precision,
        )

    def worker_plan(self, device: str, machine: Inventory) -> WorkerPlan:
        """On this machine; a cluster has its own (see cluster.plan_cluster)."""
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


def _preset_for(device: str, machine: Inventory) -> str:
    """The largest preset that the device trains in reasonable time; thresholds by memory."""
    if device == "cpu":
        return "cpu"
    if device == "mps":
        return "t4"
    gigabytes = max((gpu.memory for gpu in machine.gpus), default=0) / 2**30
    return "t4" if gigabytes < 30 else "a100" if gigabytes < 79 else "h100"
