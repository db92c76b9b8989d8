"""The shape of a network, and the shapes that have names. Knows no torch."""

from dataclasses import dataclass, field
from typing import Any

from .errors import ConfigError
from .settings import FROM_ZERO, Check, Settings, one_of, whole

# Of any size of a network: a larger one is a slip of the hand, or a file made to harm.
LARGEST = 10_000
SIZE = whole(most=LARGEST)


def _checked(default: Any, check: Check = SIZE) -> Any:
    return field(default=default, metadata={"check": check})


@dataclass(frozen=True)
class NetworkConfig(Settings):
    """The shape of a SpikingNetwork. Defaults are the "cpu" preset for chess."""

    planes: int = _checked(27)  # binary input planes
    height: int = _checked(8)  # of the board
    width: int = _checked(8)
    actions: int = _checked(4672)  # policy logits
    channels: int = _checked(32)
    blocks: int = _checked(3)
    steps: int = _checked(1)  # T, time steps a forward
    # Most spikes a neuron fires in one step: 1 is the LIF neuron, more the I-LIF.
    levels: int = _checked(8)
    # What a spike takes off the membrane: the threshold (soft), or all of it (hard).
    reset: str = _checked("soft", one_of("soft", "hard"))
    # What neurons give on: whole spikes; or, as twins to compare with, numbers from 0 to `levels`,
    # or from 0 up.
    activation: str = _checked("spikes", one_of("spikes", "clipped", "relu"))
    value_hidden: int = _checked(64)  # width of the value head's hidden layer
    # How far the actions of each policy plane lead, as (columns, rows): their logits read both
    # squares. Empty: one.
    jumps: tuple[tuple[int, int], ...] = ()
    # Above 0 the value head tells scores, up to this one; 0: win, draw and loss.
    score_limit: float = _checked(0.0, FROM_ZERO)
    score_bins: int = _checked(128)  # into which a value head for scores divides them

    def __post_init__(self):
        super().__post_init__()
        if self.activation != "spikes" and self.steps > 1:
            raise ConfigError(
                f"activation={self.activation!r} with steps={self.steps}: expected steps=1 without "
                "spikes"
            )
        if self.reset == "hard" and self.levels > 1:
            raise ConfigError(f"reset='hard' with levels={self.levels}: expected levels=1")
        # JSON has lists.
        object.__setattr__(self, "jumps", tuple((columns, rows) for columns, rows in self.jumps))
        if self.jumps and len(self.jumps) * self.squares != self.actions:
            raise ConfigError(
                f"{len(self.jumps)} jumps for {self.actions} actions on {self.squares} squares: "
                "expected one for each policy plane, or none"
            )

    @property
    def squares(self) -> int:
        """Squares of the board."""
        return self.height * self.width

    @property
    def slots(self) -> int:
        """The most spikes that a neuron can fire in one evaluation."""
        return self.steps * self.levels

    @property
    def value_outputs(self) -> int:
        """Outputs of the value head."""
        return self.score_bins if self.score_limit else 3


PRESETS = {
    "cpu": NetworkConfig(),
    "t4": NetworkConfig(channels=64, blocks=6),
    "a100": NetworkConfig(channels=128, blocks=10, value_hidden=128),
    "h100": NetworkConfig(channels=192, blocks=15, value_hidden=256),
}
