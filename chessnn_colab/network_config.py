"""The shape of a network, and the shapes that have names. Knows no torch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from .errors import ConfigError

ENCODINGS = ("direct", "rate")
ACTIVATIONS = ("spikes", "clipped", "relu")
SIZES = (
    "planes",
    "height",
    "width",
    "actions",
    "channels",
    "blocks",
    "steps",
    "levels",
    "value_hidden",
)
LEAST = {**dict.fromkeys(SIZES, 1), "score_bins": 2}
LARGEST = (
    10_000  # of any size of a network: a larger one is a slip of the hand, or a file made to harm
)


@dataclass(frozen=True)
class NetworkConfig:
    """The shape of a SpikingNetwork. Defaults are the "cpu" preset for chess."""

    planes: int = 27  # binary input planes
    height: int = 8  # of the board
    width: int = 8
    actions: int = 4672  # policy logits
    channels: int = 32
    blocks: int = 3
    steps: int = 1  # T, time steps a forward
    levels: int = 8  # most spikes a neuron fires in one step: 1 is the LIF neuron, more the I-LIF
    tau: float = 2.0  # membrane time constant, in steps
    threshold: float = 1.0  # membrane potential at which a neuron fires
    encoding: str = (
        "direct"  # "direct": the same current each step; "rate": planes thinned at random each step
    )
    # What neurons give on: whole spikes; or, as twins to compare with, numbers from 0 to `levels`,
    # or from 0 up.
    activation: str = "spikes"
    value_hidden: int = 64  # width of the value head's hidden layer
    # How far the actions of each policy plane lead, as (columns, rows): their logits read both
    # squares. Empty: one.
    jumps: tuple[tuple[int, int], ...] = ()
    score_limit: float = (
        0.0  # above 0 the value head tells scores, up to this one; 0: win, draw and loss
    )
    score_bins: int = 128  # into which a value head for scores divides them

    def __post_init__(self):
        for name, least in LEAST.items():
            value = getattr(self, name)
            if type(value) is not int or not least <= value <= LARGEST:
                raise ConfigError(
                    f"network {name}={value!r:.60}: expected a whole number from {least} to {LARGEST:,}"
                )
        for name in ("tau", "threshold"):
            value = getattr(self, name)
            if type(value) not in (int, float) or not 0 < value < math.inf:
                raise ConfigError(f"network {name}={value!r:.60}: expected a number above 0")
        self._check_jumps()
        if type(self.score_limit) not in (int, float) or not 0 <= self.score_limit < math.inf:
            raise ConfigError(
                f"network score_limit={self.score_limit!r:.60}: expected a number from 0 up"
            )
        if not self.tau > 1:
            raise ConfigError(f"network tau={self.tau}: expected more than 1 time step")
        for name, known in (("encoding", ENCODINGS), ("activation", ACTIVATIONS)):
            if (value := getattr(self, name)) not in known:
                raise ConfigError(
                    f"unknown {name} {value!r:.60}: expected one of {', '.join(known)}"
                )
        if self.activation != "spikes" and self.steps > 1:
            raise ConfigError(
                f"activation={self.activation!r} with steps={self.steps}: expected steps=1 without spikes"
            )

    def _check_jumps(self) -> None:
        jumps, planes = self.jumps, self.actions // self.squares
        pairs = isinstance(jumps, (tuple, list)) and all(
            isinstance(jump, (tuple, list)) for jump in jumps
        )
        if not pairs or any(len(jump) != 2 or {*map(type, jump)} != {int} for jump in jumps):
            raise ConfigError(f"network jumps={jumps!r:.60}: expected pairs of whole numbers")
        if any(abs(columns) >= self.width or abs(rows) >= self.height for columns, rows in jumps):
            raise ConfigError(
                f"network jumps={jumps!r:.60}: expected none that leaves a board of this size"
            )
        if jumps and (len(jumps) != planes or self.actions % self.squares):
            raise ConfigError(
                f"network jumps={jumps!r:.60}: expected one pair for each of {planes} policy planes, or none"
            )
        object.__setattr__(self, "jumps", tuple((columns, rows) for columns, rows in jumps))

    @property
    def squares(self) -> int:
        """Squares of the board."""
        return self.height * self.width

    @property
    def value_outputs(self) -> int:
        """Outputs of the value head."""
        return self.score_bins if self.score_limit else 3

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain data; inverse: `from_dict`."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> NetworkConfig:
        """Raises ConfigError on an unknown key, and for anything but a dict."""
        if not isinstance(values, Mapping):
            raise ConfigError(f"network settings: expected a dict, got {values!r:.60}")
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise ConfigError(
                f"unknown network settings {', '.join(unknown)}: expected some of {', '.join(sorted(known))}"
            )
        return cls(**values)


PRESETS: dict[str, NetworkConfig] = {
    "cpu": NetworkConfig(),
    "t4": NetworkConfig(channels=64, blocks=6),
    "a100": NetworkConfig(channels=128, blocks=10, value_hidden=128),
    "h100": NetworkConfig(channels=192, blocks=15, value_hidden=256),
}


def preset(name: str) -> NetworkConfig:
    """The network of one of PRESETS. Raises ConfigError listing them."""
    if name not in PRESETS:
        raise ConfigError(f"unknown preset {name!r}: expected one of {', '.join(PRESETS)}")
    return PRESETS[name]
