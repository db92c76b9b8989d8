"""JSON objects with a seal, so that damage is found: their last entry, `seal`, is the SHA-256 of the file.

A file without a seal was made by hand or by an earlier version, and is taken as it is.
"""

import json
from collections.abc import Mapping
from typing import Any

from .durable import BLANK_SEAL, SEAL_LENGTH, seal, seal_holds

_SEAL_KEY, _SEAL_KIND = b'"seal"', b"sha256:"


def encode_sealed(values: Mapping[str, Any]) -> bytes:
    """Return the file's content. Raises TypeError or ValueError for what JSON does not have."""
    text = json.dumps({**values, "seal": (_SEAL_KIND + BLANK_SEAL).decode("ascii")}, indent=2)
    data = (text + "\n").encode("ascii")
    return seal(data, data.rindex(_SEAL_KIND) + len(_SEAL_KIND))


def decode_sealed(data: bytes) -> dict[str, Any]:
    """Return what was given to encode_sealed. Raises ValueError in a sentence for anything damaged."""
    try:
        values = json.loads(data)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    if not isinstance(values, dict):
        raise ValueError(f"expected a JSON object, got {type(values).__name__}")
    if (_SEAL_KEY in data or _SEAL_KIND in data) and not _seal_holds(data):
        raise ValueError(
            "it is not as it was written (its seal does not match). Put a copy of it back; or, if you "
            "changed it yourself, remove the line with its seal"
        )
    return {name: value for name, value in values.items() if name != "seal"}


def _seal_holds(data: bytes) -> bool:
    """Key and kind are looked for apart, so that no one flipped bit makes a sealed file look like one without."""
    start = _SEAL_KEY + b': "' + _SEAL_KIND
    place = data.rfind(start)
    return place >= 0 and len(data) >= place + len(start) + SEAL_LENGTH and seal_holds(data, place + len(start))
