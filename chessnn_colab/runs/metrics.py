"""metrics.jsonl: one report per line, each flushed to the disk. A line that a kill cut short does not count.

JSON has neither NaN nor infinity: both are written as null, and null is read back as NaN. Each line is sealed (see
files).
"""

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import RunError
from ..files import decode_sealed, encode_sealed, flush_folder, read_whole, reason, seal_holds, write_atomically

MAX_METRICS_BYTES = 2**30


class Metrics:
    """The reports of a run, oldest first. Each report is a dict with an int `iteration`. Methods raise RunError."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, report: Mapping[str, Any]) -> None:
        """Add one report; the disk has it when this returns."""
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
        return [self._decode(number, line) for number, line in enumerate(self._lines(), 1)]

    def truncate(self, iteration: int) -> None:
        """Drop the reports of iterations after `iteration`, all or nothing."""
        lines = self._lines()
        kept = [line for number, line in enumerate(lines, 1) if self._decode(number, line)["iteration"] <= iteration]
        if len(kept) == len(lines):
            return
        try:
            write_atomically(self.path, b"".join(kept))
        except OSError as error:
            raise RunError(f"cannot rewrite {self.path}: {reason(error)}; it stands as it was") from error

    def _lines(self) -> list[bytes]:
        """Return the whole lines, each with its line end."""
        try:
            *lines, torn = read_whole(self.path, MAX_METRICS_BYTES).split(b"\n")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise RunError(f"cannot read {self.path}: {reason(error)}") from error
        # A kill leaves the beginning of a line. A whole line with another character for its line end was damaged.
        if seal_holds(torn[:-1] + b"\n"):
            lines.append(torn)
        return [line + b"\n" for line in lines]

    def _decode(self, number: int, line: bytes) -> dict[str, Any]:
        try:
            report = decode_sealed(line, object_hook=_null_to_nan)
            if not isinstance(report["iteration"], int):
                raise ValueError("its iteration is not a whole number")
        except (ValueError, KeyError) as error:
            raise RunError(
                f"line {number} of {self.path} is not a report, or it is damaged: {line[:60]!r}. "
                "Remove that line and try again"
            ) from error
        return report


def _encode(report: Mapping[str, Any]) -> bytes:
    if not isinstance(report.get("iteration"), int):
        raise RunError(f"a report needs an int `iteration`, got {report.get('iteration')!r}")
    try:
        return encode_sealed(_nan_to_null(report))
    except (TypeError, ValueError) as error:
        raise RunError(f"a report holds plain numbers, text, lists and dicts: {error}") from error


def _drop_torn_line(file: BinaryIO) -> None:
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
