"""Checkpoints: one safetensors file each, verified when read, all or nothing when written.

Arrays are called GROUP/NAME, such as weights/stem.conv.weight, optimizer/0.exp_avg and
replay/actions. The header holds the metadata as JSON and the SHA-256 of the whole file, computed
with zeros in place of its 64 digits, because safetensors alone loads a flipped bit without an
error. A snapshot and a shared file are checkpoints that have the group `weights` alone. Any reader
of safetensors can open them. Nothing here reads or writes pickle.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import safetensors.numpy

from ..errors import CheckpointError, RunError
from .files import AnyPath, absolute, decode_object, open_plain, refused, unusable, write_atomically

SUFFIX = ".safetensors"
# 2: the value head says chances, and a replay has three of each position.
FORMAT = "chessnn_colab checkpoint 2"
_PREFIX = b'{"__metadata__": {"sha256": "'  # of the header, behind its length in 8 bytes
_DIGITS = slice(8 + len(_PREFIX), 8 + len(_PREFIX) + 64)
_BLANK = b"0" * 64
_ADVICE = ". What was saved before stands; make room there or choose another folder, then go on"
_TYPES = {
    "|b1": "BOOL",
    "|i1": "I8",
    "|u1": "U8",
    "<i2": "I16",
    "<u2": "U16",
    "<i4": "I32",
    "<u4": "U32",
    "<i8": "I64",
    "<u8": "U64",
    "<f2": "F16",
    "<f4": "F32",
    "<f8": "F64",
}  # numpy's name of a type -> the one in safetensors

# A tuple of arrays is saved as one array: they are concatenated along their first axis.
Arrays = Mapping[str, np.ndarray | tuple[np.ndarray, ...]]
Groups = Mapping[str, Arrays]


class Checkpoint(NamedTuple):
    """Named groups of named arrays, and plain data. A snapshot has the group `weights` alone."""

    groups: dict[str, dict[str, np.ndarray]]
    metadata: dict[str, Any]

    def part(self, name: str) -> dict[str, Any]:
        """A part of the metadata, such as `config`, the settings of the training that made it, or
        `card`; empty if the file has none.
        """
        part = self.metadata.get(name)
        return part if isinstance(part, dict) else {}


def save_checkpoint(path: AnyPath, groups: Groups, metadata: Mapping[str, Any]) -> None:
    """Write a checkpoint file, replacing one of that name.

    groups: names such as `weights`, `optimizer`, `replay`, each a mapping of names to numpy arrays
    of any shape. Arrays in C order are written without a copy. metadata: plain data that JSON keeps
    as it is (string keys; a tuple comes back as a list); `game` names the game. Raises
    CheckpointError when the data cannot be saved or the system refuses, for example because the
    disk is full. The file that was at `path` is kept then.
    """
    path = absolute(path)
    entries, contents = _encode_arrays(groups)
    header = _encode_header(list(groups), entries, metadata)
    digest = hashlib.sha256(header)
    for content in contents:
        digest.update(content)
    sealed = header[: _DIGITS.start] + digest.hexdigest().encode() + header[_DIGITS.stop :]
    with refused(f"cannot save checkpoint {path}", _ADVICE, CheckpointError):
        write_atomically(path, sealed, *contents)


def load_checkpoint(path: AnyPath, game: str | None = None) -> Checkpoint:
    """Read a checkpoint, snapshot or shared file after checking its SHA-256; arrays are writable.

    game: when given, a checkpoint of another game is refused. Raises CheckpointError naming a file
    that is missing, damaged or not a checkpoint, RunError when there is no memory for it.
    """
    path = absolute(path)
    try:
        with open_plain(path) as file:
            # A huge file that is something else is refused before memory is taken for it.
            if file.read(_DIGITS.start)[8:] != _PREFIX:
                raise unusable(path, "it is damaged, or it is not a checkpoint of this package")
            file.seek(0)
            data = file.read()
        content = memoryview(data)
        digest = hashlib.sha256(content[: _DIGITS.start])
        digest.update(_BLANK)
        digest.update(content[_DIGITS.stop :])
        if digest.hexdigest().encode() != data[_DIGITS]:
            raise unusable(path, "it is damaged: its SHA-256 is not the one in its header")
        described = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
        if described["format"] != FORMAT:
            raise CheckpointError(
                f"{path} is of another version, whose values meant something else (it is a "
                f"{described['format']!r:.60}, this version reads {FORMAT!r}): train anew, or use "
                "the version that made it"
            )
        metadata = decode_object(described["metadata"])
        groups = {}
        for group in json.loads(described["groups"]):
            groups[group] = {}
        for full_name, array in safetensors.numpy.load(data).items():
            group, _, name = full_name.partition("/")
            groups[group][name] = array if array.flags.writeable else array.copy()
    except CheckpointError:
        raise
    except MemoryError as error:  # it says nothing about the file
        raise RunError(f"no memory for {path}: end other programs, then try again") from error
    # Where the hash is right, the content was made wrong on purpose. safetensors raises several
    # kinds of error for that.
    except Exception as error:
        raise unusable(path, f"it cannot be read ({error})") from error
    check_game(path, metadata, game)
    return Checkpoint(groups, metadata)


def check_game(source: Path, metadata: Mapping[str, Any], game: str | None) -> None:
    """Raise CheckpointError when `metadata` of `source` is of another game than `game` (None: any
    game will do).
    """
    if game is not None and metadata.get("game") != game:
        raise CheckpointError(
            f"{source} is of the game {metadata.get('game')!r:.60}, expected {game!r}"
        )


def _encode_arrays(groups: Groups) -> tuple[dict[str, Any], list[memoryview]]:
    """GROUP/NAME -> what the header says of an array, and the bytes of all arrays in this order.

    Raises CheckpointError naming what cannot be saved.
    """
    entries = {}
    contents = []
    end = 0
    for group, members in groups.items():
        if "/" in group:
            raise CheckpointError(f"checkpoint group {group!r}: expected a name without a slash")
        for name, value in members.items():
            parts = value if isinstance(value, tuple) else (value,)
            parts = [np.asarray(part, order="C") for part in parts]
            first = parts[0]
            if first.dtype.str not in _TYPES:
                raise CheckpointError(f"cannot save {group}.{name}: numbers of type {first.dtype}")
            shape = list(first.shape)
            if len(parts) > 1:
                shape[0] = sum(len(part) for part in parts)
            begin = end
            for part in parts:
                contents.append(part.reshape(-1).view(np.uint8).data)
                end += part.nbytes
            entries[f"{group}/{name}"] = {
                "dtype": _TYPES[first.dtype.str],
                "shape": shape,
                "data_offsets": [begin, end],
            }
    return entries, contents


def _encode_header(
    groups: list[str], entries: Mapping[str, Any], metadata: Mapping[str, Any]
) -> bytes:
    """The header of the file with its length before it; zeros stand in place of the SHA-256."""
    try:
        text = json.dumps(dict(metadata))
    except (TypeError, ValueError) as error:
        raise CheckpointError(
            f"cannot save metadata: expected numbers, text, lists and dicts; {error}"
        ) from error
    described = {
        "sha256": _BLANK.decode(),
        "format": FORMAT,
        "groups": json.dumps(groups),
        "metadata": text,
    }
    header = json.dumps({"__metadata__": described, **entries}).encode("ascii")
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header
