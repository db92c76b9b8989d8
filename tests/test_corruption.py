"""Every damage to a file of a run is found by what reads it, and the error names the file."""

import json
import zlib

import numpy as np
import pytest

from chessnn_colab.errors import CheckpointError, RunError
from chessnn_colab.files import BLANK_SEAL, decode_sealed, encode_sealed, seal
from chessnn_colab.runs.folder import RunFolder, find_checkpoint

from .damage import damaged_copies, flipped
from .test_checkpoint import make_groups, rewrite_manifest

VALUES = {"preset": "cpu", "channels": None, "minutes": 5.0, "gpus": [0, 1], "text": 'a "seal": "sha256:" of é'}
REPORTS = [
    {"iteration": iteration, "policy_loss": 3.5 / (iteration + 1), "endings": {"checkmate": iteration}}
    for iteration in range(5)
]


def line_of_0_3(report: dict) -> bytes:
    """A line of metrics.jsonl as version 0.3 wrote it."""
    body = json.dumps(report).encode("ascii")[:-1]
    return body + b', "seal": "crc32:%08x"}\n' % zlib.crc32(body)


SEALED = {
    "a line": encode_sealed(VALUES),
    "a file": encode_sealed(VALUES, indent=2),
    "a line of 0.3": line_of_0_3(VALUES),
    "a file of 0.3": seal((json.dumps({**VALUES, "seal": f"sha256:{BLANK_SEAL}"}, indent=2) + "\n").encode("ascii")),
}


@pytest.mark.parametrize("kind", SEALED)
def test_every_bit_and_every_cut_of_a_sealed_object(kind):
    data = SEALED[kind]
    assert decode_sealed(data) == VALUES
    damaged = [flipped(data, bit) for bit in range(8 * len(data))] + [data[:length] for length in range(len(data))]
    for content in damaged:
        with pytest.raises(ValueError, match="seal|JSON|expected|decode|char"):
            decode_sealed(content)
            pytest.fail(repr(content))


def test_a_file_written_by_hand_needs_no_seal():
    assert decode_sealed(b'{"preset": "cpu"}') == {"preset": "cpu"}
    with pytest.raises(ValueError, match="remove the line with its seal"):
        decode_sealed(SEALED["a file"].replace(b"cpu", b"t4"))
    lines = [line for line in SEALED["a file"].replace(b"cpu", b"t4").split(b"\n") if b'"seal": "sha256' not in line]
    assert decode_sealed(b"\n".join(lines))["preset"] == "t4"


@pytest.fixture
def run(tmp_path) -> RunFolder:
    with RunFolder.create_or_open(tmp_path / "run", VALUES) as run:
        yield run


def test_every_damage_of_the_config_is_laid_to_it(run):
    path = run.path / "config.json"
    for what, damaged in damaged_copies(path.read_bytes(), seed=1):
        path.write_bytes(damaged)
        with pytest.raises(RunError, match="config.json"):
            RunFolder.open(run.path)
            pytest.fail(what)


def test_every_damage_of_the_reports_is_refused_or_is_a_torn_last_line(run):
    """A kill leaves the beginning of a last line, which does not count; nothing else may pass."""
    path = run.path / "metrics.jsonl"
    path.write_bytes(b"".join(map(line_of_0_3, REPORTS[:2])))
    for report in REPORTS[2:]:
        run.append_report(report)
    data = path.read_bytes()
    for what, damaged in damaged_copies(data, seed=2):
        path.write_bytes(damaged)
        if data.startswith(damaged):
            assert run.read_reports() == REPORTS[: damaged.count(b"\n")], what
            continue
        with pytest.raises(RunError, match="metrics.jsonl"):
            run.read_reports()
            pytest.fail(what)


@pytest.mark.parametrize("version", ["this", "0.3"])
@pytest.mark.parametrize(
    "name", ["weights.safetensors", "optimizer.safetensors", "replay.safetensors", "state.json", "manifest.json"]
)
def test_every_damage_of_a_runs_only_checkpoint_is_laid_to_its_file(run, name, version):
    """Damage to a size or a hash in the manifest is laid to the file that it is of."""
    path = run.save_checkpoint(3, make_groups(), {"text": VALUES["text"]}) / name
    if version == "0.3":
        rewrite_manifest(path.parent)
    data, said = path.read_bytes(), "" if name == "manifest.json" else name
    for what, damaged in damaged_copies(data, seed=3):
        if version == "0.3" and damaged == data[:-1] and not said:  # a manifest without its last line end says the same
            continue
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=f"000003 cannot be used: .*{said}"):
            find_checkpoint(run.path)
            pytest.fail(f"{name}: {what}")
    path.write_bytes(data)
    np.testing.assert_array_equal(find_checkpoint(run.path).groups["weights"]["strided"], np.arange(20)[::3])


def test_every_damage_of_a_snapshot_is_laid_to_it(run):
    path = run.save_snapshot(3, make_groups()["weights"], {"text": VALUES["text"]})
    for what, damaged in damaged_copies(path.read_bytes(), seed=4):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match="snapshots/000003.safetensors cannot be used"):
            find_checkpoint(path)
            pytest.fail(what)
