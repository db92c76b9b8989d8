"""Checkpoints: a whole run at one moment, verified when read, all or nothing when written, no pickle.

A checkpoint is a folder:
    weights.safetensors, optimizer.safetensors, ...   one file per group of named numpy arrays
    state.json                                        plain data: iteration, game, config, counts
    manifest.json                                     size and SHA-256 of every file above, written last
It is written as `.NAME.tmp` beside the target and renamed into place. A checkpoint that stands there already is
kept as `.NAME.old` until the new one has its name, and is found there after a kill in between.
Only one process at a time may save to a folder; the run folder's lock makes sure of that.
"""

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import CheckpointError
from ..files import (
    MAX_ARRAY_BYTES,
    MAX_METADATA_BYTES,
    AnyPath,
    absolute,
    check_game,
    copy_flushed,
    decode_arrays,
    decode_metadata,
    decode_sealed,
    encode_arrays,
    encode_metadata,
    encode_sealed,
    flush_folder,
    not_saved,
    read_file,
    reason,
    sha256,
    unusable,
    write_flushed,
)

FORMAT_VERSION = 1
MANIFEST, STATE, SUFFIX = "manifest.json", "state.json", ".safetensors"
_FORMAT = "chessnn_colab checkpoint"
_GROUP_NAME = re.compile(r"[a-z][a-z0-9_]*")

Groups = Mapping[str, Mapping[str, np.ndarray]]


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What was saved: named groups of named arrays (a snapshot has `weights` only), and plain data."""

    groups: dict[str, dict[str, np.ndarray]]
    metadata: dict[str, Any]


def save_checkpoint(folder: AnyPath, groups: Groups, metadata: Mapping[str, Any]) -> None:
    """Write a checkpoint folder, replacing one that stands there.

    groups: names such as `weights`, `optimizer`, `replay`, each a mapping of names to numpy arrays (any shape).
    metadata: plain data that JSON keeps as it is (string keys; a tuple comes back as a list); `game` names the game.
    Raises CheckpointError when the data cannot be saved or the system refuses (a full disk, for example). Then what
    stood in `folder` still stands, and nothing half-written is left.
    """
    with _replacing(absolute(folder)) as temporary:
        files = {}
        for name, data in _encoded_files(groups, metadata):
            files[name] = {"bytes": len(data), "sha256": write_flushed(temporary / name, [data])}
        manifest = encode_sealed({"format": _FORMAT, "version": FORMAT_VERSION, "files": files}, indent=1)
        write_flushed(temporary / MANIFEST, [manifest])


def load_checkpoint(folder: AnyPath, game: str | None = None) -> Checkpoint:
    """Read a checkpoint after checking the exact set of its files, their sizes and hashes; arrays are writable.

    game: when given, a checkpoint of another game is refused.
    Raises CheckpointError naming the file that is missing, damaged or not expected.
    """
    folder = _standing(absolute(folder))
    contents = dict(_verified_files(folder, _read_manifest(folder)))
    metadata = decode_metadata(folder, contents.pop(STATE))
    check_game(folder, metadata, game)
    groups = {}
    for name in sorted(contents):
        groups[name.removesuffix(SUFFIX)] = decode_arrays(folder / name, contents.pop(name))
    return Checkpoint(groups, metadata)


def copy_checkpoint(source: AnyPath, target: AnyPath) -> None:
    """Copy a checkpoint folder, replacing one that stands at `target`; the copy is read back before it has its name.

    Raises CheckpointError when a file of either is missing or damaged or the system refuses. Then what stood at
    `target` still stands, and nothing half-written is left.
    """
    source = _standing(absolute(source))
    with _replacing(absolute(target)) as temporary:
        for name in (*_read_manifest(source), MANIFEST):
            copy_flushed(source / name, temporary / name)
        for _ in _verified_files(temporary, _read_manifest(temporary)):
            pass


def remove_checkpoint(folder: AnyPath) -> None:
    """Delete a checkpoint. A kill on the way leaves no half of it under its name. Raises CheckpointError."""
    folder = absolute(folder)
    temporary = _beside(folder, "tmp")
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        if folder.exists():
            shutil.rmtree(_beside(folder, "old"), ignore_errors=True)
            os.rename(folder, temporary)
            shutil.rmtree(temporary)
    except OSError as error:
        raise CheckpointError(f"cannot delete checkpoint {folder}: {reason(error)}") from error


def clear_interrupted_saves(parent: Path) -> None:
    """Finish what a killed save left in `parent`; for the only process that writes there. Raises OSError."""
    for leftover in sorted(parent.glob(".*.old")):
        folder = parent / leftover.name[1 : -len(".old")]
        if folder.exists():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            os.rename(leftover, folder)
    for leftover in parent.glob(".*.tmp"):
        if leftover.is_dir():
            shutil.rmtree(leftover)
        else:
            leftover.unlink()


def list_checkpoints(parent: Path) -> list[str]:
    """Return the names of the checkpoints in `parent`, sorted. One whose replacement was interrupted counts.

    Raises OSError.
    """
    names = set()
    for entry in os.listdir(parent):
        if entry.startswith(".") and entry.endswith(".old"):
            names.add(entry[1 : -len(".old")])
        elif not entry.startswith("."):
            names.add(entry)
    return sorted(names)


def _encoded_files(groups: Groups, metadata: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    """Yield one file at a time, so that no two groups are in memory as bytes together."""
    yield STATE, encode_metadata(metadata)
    for group, arrays in groups.items():
        if not _GROUP_NAME.fullmatch(group):
            raise CheckpointError(f"checkpoint group {group!r}: expected lower-case letters, digits and underscores")
        yield group + SUFFIX, encode_arrays(group, arrays)


@contextmanager
def _replacing(folder: Path) -> Iterator[Path]:
    """Make a folder that takes the place of the checkpoint `folder` at the end, or is deleted after an error."""
    _refuse_to_replace_strangers(folder)
    temporary, previous = _beside(folder, "tmp"), _beside(folder, "old")
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        yield temporary
        flush_folder(temporary)
        if folder.exists():
            shutil.rmtree(previous, ignore_errors=True)
            os.rename(folder, previous)
        os.rename(temporary, folder)
        flush_folder(folder.parent)
        shutil.rmtree(previous, ignore_errors=True)
    except OSError as error:
        raise not_saved("checkpoint", folder, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _beside(folder: Path, ending: str) -> Path:
    return folder.with_name(f".{folder.name}.{ending}")


def _refuse_to_replace_strangers(folder: Path) -> None:
    """Saving replaces a folder whole, so the folder must be ours: empty, or with a manifest."""
    try:
        stranger = folder.exists() and not (folder / MANIFEST).exists()
        if stranger and folder.is_dir():
            stranger = any(folder.iterdir())
    except OSError as error:
        raise not_saved("checkpoint", folder, error) from error
    if stranger:
        raise CheckpointError(f"{folder} exists and is not a checkpoint: nothing was saved. Choose another folder")


def _standing(folder: Path) -> Path:
    """Return where the checkpoint is: at its name, or at `.NAME.old` after a kill between two renames."""
    try:
        for candidate in (folder, _beside(folder, "old")):
            if candidate.is_dir():
                return candidate
        found = "it is a file, and a checkpoint is a folder" if folder.exists() else "there is no such folder"
    except (OSError, ValueError) as error:
        found = str(error)
    raise CheckpointError(f"no checkpoint at {folder}: {found}")


def _read_manifest(folder: Path) -> dict[str, dict[str, Any]]:
    """Return file name -> {"bytes", "sha256"}."""
    data = read_file(folder, folder / MANIFEST, MAX_METADATA_BYTES)
    try:
        manifest = decode_sealed(data)
        written_as, version, files = manifest["format"], manifest["version"], manifest["files"]
        listed = {name: (entry["bytes"], entry["sha256"]) for name, entry in files.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise unusable(folder, f"{MANIFEST} cannot be read ({error})") from error
    if written_as != _FORMAT:
        raise unusable(folder, f"{MANIFEST} describes {written_as!r}, expected {_FORMAT!r}")
    if version != FORMAT_VERSION:
        raise unusable(folder, f"{MANIFEST} says format {version!r}, this version reads format {FORMAT_VERSION}")
    named_well = STATE in listed and all(_is_group_file(name) for name in listed.keys() - {STATE})
    if not (named_well and all(type(size) is int for size, _ in listed.values())):
        raise unusable(folder, f"{MANIFEST} does not list the files of a checkpoint")
    return files


def _is_group_file(name: str) -> bool:
    return name.endswith(SUFFIX) and _GROUP_NAME.fullmatch(name.removesuffix(SUFFIX)) is not None


def _verified_files(folder: Path, files: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of all files in the manifest. All must be there, unchanged, and no other file."""
    try:
        # Names with a dot in front come from the system (.DS_Store, .ipynb_checkpoints), not from a save.
        present = {name for name in os.listdir(folder) if not name.startswith(".")} - {MANIFEST}
    except OSError as error:
        raise unusable(folder, reason(error)) from error
    if extra := sorted(present - files.keys()):
        raise unusable(folder, f"{extra[0]} is not in its manifest")
    if missing := sorted(files.keys() - present):
        raise unusable(folder, f"{missing[0]} is missing")
    for name, expected in files.items():
        limit = MAX_METADATA_BYTES if name == STATE else MAX_ARRAY_BYTES
        data = read_file(folder, folder / name, min(limit, expected["bytes"]))
        if len(data) != expected["bytes"]:
            raise unusable(folder, f"{name} has {len(data)} bytes where its manifest says {expected['bytes']}")
        if sha256(data) != expected["sha256"]:
            raise unusable(folder, f"{name} is damaged (its SHA-256 is not the manifest's)")
        yield name, data
