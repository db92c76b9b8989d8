"""A setting: a dataclass field that is declared once, with its default, its help, its group and its
check.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

from .errors import ConfigError

# The groups of `train --help`, in their order.
FIRST = "what people set first"
RUN = "run"
NETWORK = "network"
SEARCH = "search"
SELF_PLAY = "self-play"
LEARNING = "learning"
WORKERS = "workers"
LARGEST = 2**53  # whole number
GROUPS = (FIRST, RUN, NETWORK, SEARCH, SELF_PLAY, LEARNING, WORKERS)


@dataclass(frozen=True)
class Check:
    """Which values a setting may have."""

    holds: Callable[[Any], bool]
    expected: str  # in words; it follows "expected"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and -LARGEST <= value <= LARGEST


def whole(least: int = 1, most: int = LARGEST) -> Check:
    """The check of a setting that is a whole number from `least` to `most`."""
    return Check(
        lambda value: type(value) is int and least <= value <= most,
        f"a whole number from {least} to {most:,}",
    )


COUNT = whole()
COUNT_FROM_ZERO = whole(0)
ABOVE_ZERO = Check(
    lambda value: _is_number(value) and value > 0, f"more than 0, and at most {LARGEST:,}"
)
FROM_ZERO = Check(
    lambda value: _is_number(value) and value >= 0, f"a number from 0 up to {LARGEST:,}"
)


def one_of(*words: str) -> Check:
    """The check of a setting that is one of some words."""
    return Check(lambda value: value in words, f"one of {', '.join(words)}")


def setting(default: Any, text: str, group: str, check: Check | None = None) -> Any:
    """A dataclass field. text: sentences for `train --help`. A default of None always passes."""
    return field(default=default, metadata={"help": text, "group": group, "check": check})


def require(name: str, value: Any, check: Check, where: str = "") -> None:
    """Raise ConfigError for a value that fails the check; the message puts `where` (" on a Ray
    cluster") after it.
    """
    if not check.holds(value):
        raise ConfigError(f"{name}={value!r:.60}{where}: expected {check.expected}")


@dataclass(frozen=True)
class Settings:
    """Base of the configs. Raises ConfigError for the first setting that fails its check."""

    def __post_init__(self):
        for entry in fields(self):
            value = getattr(self, entry.name)
            check = entry.metadata.get("check")
            left_open = value is None and entry.default is None
            if check is not None and not left_open:
                require(entry.name, value, check)

    def to_dict(self) -> dict[str, Any]:
        """The settings as plain data; inverse: `from_dict`."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Raises ConfigError for an unknown name, with the valid ones."""
        known = [entry.name for entry in fields(cls)]
        unknown = sorted(set(values) - set(known))
        if unknown:
            raise ConfigError(
                f"unknown setting {', '.join(unknown)}: expected some of {', '.join(known)}"
            )
        return cls(**values)
