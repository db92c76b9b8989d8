"""metrics.jsonl: one report a line, each flushed to the disk; a line cut short by a kill does not count.

NaN and infinity, which JSON does not have, are written as null and read back as NaN. Each line ends in a seal, the
CRC-32 of what stands before it; a line without one is an earlier version's, and is taken as it is.
"""

import json
import math
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..durable import flush_folder, read_whole, reason, write_atomically
from ..errors import RunError

MAX_LOG_BYTES = 2**30
_SEAL_KEY, _SEAL_KIND = b'"seal"', b"crc32:"


class ReportLog:
    """The reports of a run, oldest first. Every report is a dict with an int `iteration`. Raises RunError."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, report: Mapping[str, Any]) -> None:
        """Add one report; when this returns the disk has it."""
        line = _encode(report)
        try:
            is_new = not self.path.exists()
            with open(self.path, "ab+") as file:
                _drop_torn_line(file)
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
            if is_new:
                flush_folder(self.path.parent)
        except OSError as error:
            raise RunError(f"cannot write a report to {self.path}: {reason(error)}") from error

    def read(self) -> list[dict[str, Any]]:
        """Return all whole reports, none when there is no file. RunError names a line that is not a report."""
        return [self._parse(number, line) for number, line in enumerate(self._lines(), 1)]

    def truncate(self, iteration: int) -> None:
        """Drop the reports of iterations after `iteration`, all or nothing."""
        lines = self._lines()
        kept = [line for number, line in enumerate(lines, 1) if self._parse(number, line)["iteration"] <= iteration]
        if len(kept) == len(lines):
            return
        try:
            write_atomically(self.path, b"".join(line + b"\n" for line in kept))
        except OSError as error:
            raise RunError(f"cannot rewrite {self.path}: {reason(error)}; it stands as it was") from error

    def _lines(self) -> list[bytes]:
        try:
            *lines, torn = read_whole(self.path, MAX_LOG_BYTES).split(b"\n")
            # A kill leaves the beginning of a line; a whole line with another end than its own was damaged.
            return [*lines, torn] if _seal_holds(torn[:-1]) else lines
        except FileNotFoundError:
            return []
        except OSError as error:
            raise RunError(f"cannot read {self.path}: {reason(error)}") from error

    def _parse(self, number: int, line: bytes) -> dict[str, Any]:
        try:
            report = json.loads(line, object_hook=_null_to_nan)
            if not isinstance(report["iteration"], int) or _is_sealed(line) and not _seal_holds(line):
                raise ValueError("no iteration, or a seal that does not match")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise RunError(
                f"line {number} of {self.path} is no report, or damaged: {line[:60]!r}. Remove that line and try again"
            ) from error
        report.pop("seal", None)
        return report


def _encode(report: Mapping[str, Any]) -> bytes:
    if not isinstance(report.get("iteration"), int):
        raise RunError(f"a report needs an int `iteration`, got {report.get('iteration')!r}")
    try:
        body = json.dumps(_nan_to_null(report), allow_nan=False).encode("ascii")[:-1]
    except (TypeError, ValueError) as error:
        raise RunError(f"a report holds plain numbers, text, lists and dicts: {error}") from error
    return body + _seal(body) + b"\n"


def _seal(body: bytes) -> bytes:
    return b', %b: "%b%08x"}' % (_SEAL_KEY, _SEAL_KIND, zlib.crc32(body))


def _seal_holds(line: bytes) -> bool:
    place = line.rfind(b", " + _SEAL_KEY)
    return place >= 0 and line[place:] == _seal(line[:place])


def _is_sealed(line: bytes) -> bool:
    """Key and kind are looked for apart, so that no one flipped bit makes a sealed line look like one without."""
    return _SEAL_KEY in line or _SEAL_KIND in line


def _drop_torn_line(file) -> None:
    end = file.seek(0, os.SEEK_END)
    if not end:
        return
    file.seek(end - 1)
    if file.read(1) != b"\n":
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)


def _nan_to_null(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _nan_to_null(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_nan_to_null(item) for item in value]
    return value


def _null_to_nan(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: math.nan if value is None else value for key, value in fields.items()}
