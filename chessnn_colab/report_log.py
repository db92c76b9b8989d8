"""metrics.jsonl: one report a line, each flushed to the disk; a line cut short by a kill does not count.

NaN and infinity, which JSON does not have, are written as null and read back as NaN.
"""

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .durable import flush_folder, reason, write_atomically
from .errors import RunError


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
            return self.path.read_bytes().split(b"\n")[:-1]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise RunError(f"cannot read {self.path}: {reason(error)}") from error

    def _parse(self, number: int, line: bytes) -> dict[str, Any]:
        try:
            report = json.loads(line, object_hook=_null_to_nan)
            if isinstance(report["iteration"], int):
                return report
        except (ValueError, KeyError, TypeError, RecursionError):
            pass
        raise RunError(f"line {number} of {self.path} is not a report: {line[:60]!r}. Remove that line and try again")


def _encode(report: Mapping[str, Any]) -> bytes:
    if not isinstance(report.get("iteration"), int):
        raise RunError(f"a report needs an int `iteration`, got {report.get('iteration')!r}")
    try:
        return json.dumps(_nan_to_null(report), allow_nan=False).encode("ascii") + b"\n"
    except (TypeError, ValueError) as error:
        raise RunError(f"a report holds plain numbers, text, lists and dicts: {error}") from error


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
