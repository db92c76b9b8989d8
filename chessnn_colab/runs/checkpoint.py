"""Checkpoints: a whole run at one moment, verified when read, all or nothing when written, no pickle.

A checkpoint is a folder:
    weights.safetensors, optimizer.safetensors, ...   one file a group of named numpy arrays
    state.json                                        plain data: iteration, game, config, random states
    manifest.json                                     size and SHA-256 of every file above, written last
It is written as `.NAME.tmp` beside the target and renamed into place. One that stands there already is
kept as `.NAME.old` until the new one has its name, and is found there when a kill comes in between.
One process at a time may save to a folder; the run folder's lock sees to that.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..array_files import (
    MAX_ARRAY_BYTES,
    MAX_METADATA_BYTES,
    absolute,
    decode_arrays,
    decode_metadata,
    encode_arrays,
    encode_metadata,
    not_saved,
    read_file,
    unusable,
)
from ..durable import copy_flushed, flush_folder, reason, sha256, write_flushed
from ..errors import CheckpointError

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

    @property
    def weights(self) -> dict[str, np.ndarray]:
        return self.groups["weights"]


def save_checkpoint(folder: str | os.PathLike, groups: Groups, metadata: Mapping[str, Any]) -> None:
    """Write a checkpoint folder, replacing one that stands there.

    groups: names such as `weights`, `optimizer`, `replay`, each a mapping of names to numpy arrays (any shape).
    metadata: plain data that JSON keeps as it is (string keys; a tuple comes back as a list); `game` names the game.
    Raises CheckpointError when the data cannot be saved or the system refuses (a full disk, say): then what stood
    in `folder` still stands and nothing half-written is left.
    """
    folder = absolute(folder)
    _refuse_to_replace_strangers(folder)
    temporary = _beside(folder, "tmp")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        _write_files(temporary, groups, metadata)
        _move_into_place(temporary, folder)
    except OSError as error:
        raise not_saved("checkpoint", folder, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def load_checkpoint(folder: str | os.PathLike, game: str | None = None) -> Checkpoint:
    """Read a checkpoint after checking the exact set of its files, their sizes and hashes; arrays are writable.

    game: when given, a checkpoint of another game is refused.
    Raises CheckpointError naming the file that is missing, damaged or not expected.
    """
    folder = _standing(absolute(folder))
    contents = dict(_verified_files(folder, _read_manifest(folder)))
    metadata = decode_metadata(folder, contents.pop(STATE), game)
    groups = {}
    for name in sorted(contents):
        groups[name.removesuffix(SUFFIX)] = decode_arrays(folder / name, contents.pop(name))
    return Checkpoint(groups, metadata)


def copy_checkpoint(source: str | os.PathLike, target: str | os.PathLike) -> None:
    """Copy a checkpoint folder, replacing one that stands at `target`; the copy is read back before it has its name.

    Raises CheckpointError when a file of either is missing or damaged or the system refuses: then what stood at
    `target` still stands and nothing half-written is left.
    """
    source, target = _standing(absolute(source)), absolute(target)
    _refuse_to_replace_strangers(target)
    temporary = _beside(target, "tmp")
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        for name in (*_read_manifest(source), MANIFEST):
            copy_flushed(source / name, temporary / name)
        flush_folder(temporary)
        for _ in _verified_files(temporary, _read_manifest(temporary)):
            pass
        _move_into_place(temporary, target)
    except OSError as error:
        raise not_saved("checkpoint", target, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def remove_checkpoint(folder: str | os.PathLike) -> None:
    """Delete a checkpoint; a kill on the way leaves no half of it under its name."""
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
    """Return the names of the checkpoints in `parent`, sorted; one whose replacement was interrupted counts."""
    names = set()
    for entry in os.listdir(parent):
        if entry.startswith(".") and entry.endswith(".old"):
            names.add(entry[1 : -len(".old")])
        elif not entry.startswith("."):
            names.add(entry)
    return sorted(names)


def _write_files(folder: Path, groups: Groups, metadata: Mapping[str, Any]) -> None:
    files = {}
    for name, data in _encoded_files(groups, metadata):
        write_flushed(folder / name, data)
        files[name] = {"bytes": len(data), "sha256": sha256(data)}
    manifest = {"files": files, "format": _FORMAT, "version": FORMAT_VERSION}
    write_flushed(folder / MANIFEST, _canonical(manifest))
    flush_folder(folder)


def _encoded_files(groups: Groups, metadata: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    """Yield one file at a time, so that no two groups are in memory as bytes together."""
    yield STATE, encode_metadata(metadata)
    for group, arrays in groups.items():
        if not _GROUP_NAME.fullmatch(group):
            raise CheckpointError(f"checkpoint group {group!r}: expected lower-case letters, digits and underscores")
        yield group + SUFFIX, encode_arrays(group, arrays)


def _canonical(manifest: dict[str, Any]) -> bytes:
    return (json.dumps(manifest, indent=1, sort_keys=True) + "\n").encode("ascii")


def _move_into_place(temporary: Path, folder: Path) -> None:
    previous = _beside(folder, "old")
    if folder.exists():
        shutil.rmtree(previous, ignore_errors=True)
        os.rename(folder, previous)
    os.rename(temporary, folder)
    flush_folder(folder.parent)
    shutil.rmtree(previous, ignore_errors=True)


def _beside(folder: Path, ending: str) -> Path:
    return folder.with_name(f".{folder.name}.{ending}")


def _refuse_to_replace_strangers(folder: Path) -> None:
    """Saving replaces a folder whole, so it must be ours: empty, or with a manifest."""
    try:
        stranger = folder.exists() and not (folder / MANIFEST).exists()
        if stranger and folder.is_dir():
            stranger = any(folder.iterdir())
    except OSError as error:
        raise not_saved("checkpoint", folder, error) from error
    if stranger:
        raise CheckpointError(f"{folder} exists and is no checkpoint: nothing was saved. Choose another folder")


def _standing(folder: Path) -> Path:
    """Return where the checkpoint is: its name, or `.NAME.old` when a save was killed between two renames."""
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
        manifest = json.loads(data)
        written_as, version, files = manifest["format"], manifest["version"], manifest["files"]
        listed = {name: (entry["bytes"], entry["sha256"]) for name, entry in files.items()}
        whole_sizes = all(isinstance(size, int) for size, _ in listed.values())
        canonical = _canonical(manifest)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise unusable(folder, f"{MANIFEST} cannot be read ({error})") from error
    if written_as != _FORMAT:
        raise unusable(folder, f"{MANIFEST} describes {written_as!r}, expected {_FORMAT!r}")
    if version != FORMAT_VERSION:
        raise unusable(folder, f"{MANIFEST} says format {version!r}, this version reads format {FORMAT_VERSION}")
    # A manifest that is not byte for byte what we write was changed, even where it still parses.
    named_well = STATE in listed and all(_is_group_file(name) for name in listed.keys() - {STATE})
    if not (named_well and whole_sizes and canonical == data):
        raise unusable(folder, f"{MANIFEST} is not as it was written")
    return files


def _is_group_file(name: str) -> bool:
    return name.endswith(SUFFIX) and _GROUP_NAME.fullmatch(name.removesuffix(SUFFIX)) is not None


def _verified_files(folder: Path, files: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of all files the manifest lists; all must be there, whole and unchanged, and no other."""
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
