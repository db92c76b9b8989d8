"""config.json of a run: written at the first start, compared and written again at every later one."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from ..errors import ConfigError, RunError
from ..files import decode_sealed, encode_sealed, read_whole, write_atomically

CONFIG_FILE = "config.json"
MAX_CONFIG_BYTES = 2**20
OF_A_SESSION = {"run", "minutes", "iterations", "from_checkpoint"}


def check_same_config(saved: Mapping[str, Any], wanted: Mapping[str, Any], may_change: Collection[str]) -> None:
    """Raise ConfigError that lists every setting in which `wanted` differs from `saved` and may not.

    Nested dicts are compared setting by setting (`network.channels`). A name in `may_change` frees all below it.
    """
    found = differences(saved, wanted)
    different = [found[name] for name in found if not any(f"{name}.".startswith(f"{free}.") for free in may_change)]
    if different:
        raise ConfigError(
            f"these settings cannot change when a run goes on: {', '.join(different)}. "
            "Set them back, or choose another run folder"
        )


def differences(saved: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, str]:
    """Name -> "name (was 1, now 2)", of the settings that differ. Raises ConfigError as plain_config does."""
    before, after = _flat(plain_config(saved)), _flat(plain_config(wanted))
    return {
        name: f"{name} (was {_shown(before, name)}, now {_shown(after, name)})"
        for name in sorted(before.keys() | after.keys())
        if (name in before, before.get(name)) != (name in after, after.get(name))
    }


def _flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat = {}
    for key, value in config.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat


def _shown(config: Mapping[str, Any], name: str) -> str:
    return json.dumps(config[name]) if name in config else "not there"


def plain_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return `config` as it comes back from JSON (tuples as lists). Raises ConfigError for what JSON cannot hold."""
    try:
        return json.loads(json.dumps(dict(config), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ConfigError(f"a run's config holds plain numbers, text, lists and dicts: {error}") from error


def settle_config(folder: Path, wanted: dict[str, Any], may_change: Collection[str]) -> tuple[str, ...]:
    """Write config.json, after check_same_config when there is one. Raises ConfigError, RunError or OSError.

    Returns in words what has changed of the settings that were there, but for those that say how long and where.
    """
    changed: tuple[str, ...] = ()
    if (folder / CONFIG_FILE).exists():
        saved = read_config(folder)
        check_same_config(saved, wanted, may_change)
        if saved == wanted:
            return ()
        changed = tuple(
            text for name, text in differences(saved, wanted).items() if name in saved.keys() - OF_A_SESSION
        )
    elif any((folder / name).exists() for name in ("metrics.jsonl", "checkpoints", "snapshots")):
        # A first start writes config.json before these, so a kill cannot have left them without it.
        raise RunError(f"{folder} holds a run without {CONFIG_FILE}: put that file back or choose another run folder")
    write_atomically(folder / CONFIG_FILE, encode_sealed(wanted, indent=2))
    return changed


def read_config(folder: Path) -> dict[str, Any]:
    """Return config.json of the run in `folder`. Raises RunError when it is missing or damaged."""
    try:
        return decode_sealed(read_whole(folder / CONFIG_FILE, MAX_CONFIG_BYTES))
    except FileNotFoundError as error:
        raise RunError(f"{folder} is not a run folder: it has no {CONFIG_FILE}") from error
    except (OSError, ValueError) as error:
        raise RunError(f"{folder / CONFIG_FILE} cannot be read: {error}") from error
