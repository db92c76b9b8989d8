"""metrics.jsonl: one report per line, each flushed to the disk. A last line that a kill cut short
is dropped.

JSON has neither NaN nor infinity: both are written as null, and null is read back as NaN.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import RunError
from .files import (
    decode_object,
    encode_object,
    flush,
    flush_folder,
    read_whole,
    refused,
    write_atomically,
)

METRICS_FILE = "metrics.jsonl"
LONGEST_LINE = 2**22  # bytes; 20,000 moves of 2048 take 40,000


def append_report(folder: Path, report: Mapping[str, Any]) -> None:
    """Add a report, plain data with an int `iteration`; the disk has it when this returns. Raises
    RunError when the system refuses.
    """
    path = folder / METRICS_FILE
    line = encode_object(report)
    with refused(f"cannot write a report to {path}"):
        with open(path, "ab+") as file:
            size = file.tell()
            file.seek(max(size - LONGEST_LINE, 0))
            end = file.read()
            file.truncate(size - len(end) + end.rfind(b"\n") + 1)
            file.write(line)
            flush(file)
        flush_folder(folder)


def read_reports(folder: Path) -> list[dict[str, Any]]:
    """Return all whole reports, oldest first. RunError names a line that is not a report."""
    path = folder / METRICS_FILE
    with refused(f"cannot read {path}"):
        lines = _whole_lines(path)
    return [_decode(path, number, line) for number, line in enumerate(lines, 1)]


def drop_reports_after(folder: Path, iteration: int) -> None:
    """Drop the reports of iterations after `iteration`, all or nothing. Raises RunError."""
    reports = read_reports(folder)
    kept = [report for report in reports if report["iteration"] <= iteration]
    if len(kept) == len(reports):
        return
    path = folder / METRICS_FILE
    with refused(f"cannot rewrite {path}", "; it is unchanged"):
        write_atomically(path, *map(encode_object, kept))


def _whole_lines(path: Path) -> list[bytes]:
    """The lines that end with a line end, none when there is no file. Raises OSError."""
    try:
        data = read_whole(path)
    except FileNotFoundError:
        return []
    return [line for line in data.splitlines(keepends=True) if line.endswith(b"\n")]


def _decode(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        report = decode_object(line, object_hook=_null_to_nan)
        if not isinstance(report["iteration"], int):
            raise ValueError("its iteration is not a whole number")
    except (ValueError, KeyError) as error:
        raise RunError(
            f"line {number} of {path} is not a report, or it is damaged: {line[:60]!r}. "
            "Remove that line and try again"
        ) from error
    return report


def _null_to_nan(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: math.nan if value is None else value for key, value in fields.items()}
