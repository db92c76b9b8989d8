"""config.json of a run: plain JSON, written at the first start, compared and replaced at later
ones.
"""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from ..errors import ConfigError, RunError
from .files import decode_object, encode_object, read_whole, write_atomically

CONFIG_FILE = "config.json"
OF_A_SESSION = {"run", "minutes", "iterations", "from_checkpoint"}
_NOT_THERE = "not there"


def write_config(
    folder: Path, saved: Mapping[str, Any], wanted: Mapping[str, Any], may_change: Collection[str]
) -> tuple[str, ...]:
    """Write the settings `wanted`, as `plain_config` gives them, of a run whose settings are
    `saved` (empty for a new one).

    Returns what has changed, in words, without the settings that say how long and where to train.
    Raises ConfigError that lists every setting that differs and is not in `may_change`, OSError.
    """
    differences = {
        name: f"{name} (was {_shown(saved, name)}, now {_shown(wanted, name)})"
        # Before version 0.18 there was a setting device_failure.
        for name in sorted(saved.keys() - {"device_failure"} | wanted.keys())
        if saved.get(name) != wanted.get(name)  # a setting of a newer version is left open
    }
    fixed = [text for name, text in differences.items() if name not in may_change]
    if saved and fixed:
        raise ConfigError(
            f"these settings cannot change when a run is resumed: {', '.join(fixed)}. "
            "Set them back, or choose another run folder"
        )
    write_atomically(folder / CONFIG_FILE, encode_object(wanted, indent=2))
    return tuple(text for name, text in differences.items() if name in saved.keys() - OF_A_SESSION)


def read_config(folder: Path) -> dict[str, Any]:
    """Return config.json of the run in `folder`. Raises RunError when it is missing or damaged."""
    try:
        values = decode_object(read_whole(folder / CONFIG_FILE))
    except FileNotFoundError as error:
        raise RunError(f"{folder} is not a run folder: it has no {CONFIG_FILE}") from error
    except (OSError, ValueError) as error:
        raise RunError(f"{folder / CONFIG_FILE} cannot be read: {error}") from error
    if "seal" in values:
        raise RunError(
            f"{folder} holds a run of an earlier version, which this version cannot read: "
            "choose another run folder, or train this one with the version that made it"
        )
    return values


def plain_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return `config` as it comes back from JSON (tuples as lists). Raises ConfigError for what
    JSON cannot hold.
    """
    try:
        return json.loads(json.dumps(dict(config), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"a run's config holds plain numbers, text, lists and dicts: {error}"
        ) from error


def _shown(config: Mapping[str, Any], name: str) -> str:
    return json.dumps(config[name]) if name in config else _NOT_THERE
