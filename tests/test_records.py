"""GameRecords: nothing is lost on the way, and no damage or malice gets in."""

import errno
import io
import os
import pickle
import zipfile

import numpy as np
import pytest

from chessnn_colab.durable import BLANK_SEAL, SEAL_LENGTH, seal
from chessnn_colab.errors import RecordsError
from chessnn_colab.records import SEAL_MARK, GameRecords

from .damage import Payload, damaged_copies


def make_records(lengths=(3, 1, 4), policy_width=16, seed=0) -> GameRecords:
    random = np.random.default_rng(seed)
    total, games = sum(lengths), len(lengths)
    weights = random.random((total, policy_width))
    targets = random.uniform(-1, 1, total).astype(np.float16)
    targets[::3] = np.nan
    return GameRecords(
        positions=random.integers(-(2**63), 2**63, (total, 5), dtype=np.int64),
        actions=random.integers(0, 4672, total).astype(np.uint16),
        policy_actions=random.integers(0, 4672, (total, policy_width)).astype(np.uint16),
        policy_weights=(weights / weights.sum(1, keepdims=True)).astype(np.float16),
        root_values=random.uniform(-1, 1, total).astype(np.float16),
        value_targets=targets,
        game_lengths=np.array(lengths, np.int32),
        endings=random.integers(0, 7, games).astype(np.uint8),
        results=random.integers(-1, 2, games).astype(np.int8),
    )


def assert_same(one: GameRecords, other: GameRecords) -> None:
    for name, array in one.to_arrays().items():
        loaded = other.to_arrays()[name]
        assert loaded.dtype == array.dtype, name
        np.testing.assert_array_equal(loaded, array, err_msg=name)


def sealed_npz(**entries: bytes) -> bytes:
    """An .npz of raw entries with a seal that holds: what an attacker would make."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in entries.items():
            archive.writestr(f"{name}.npy", content)
        archive.comment = SEAL_MARK + BLANK_SEAL
    data = buffer.getvalue()
    return seal(data, len(data) - SEAL_LENGTH)


def npy(array: np.ndarray, allow_pickle: bool = False) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=allow_pickle)
    return buffer.getvalue()


@pytest.mark.parametrize("lengths", [(), (0,), (1,), (3, 1, 4), (160, 90, 0, 12)])
def test_a_file_gives_back_the_same_games(tmp_path, lengths):
    records = make_records(lengths)
    records.save(tmp_path / "games.npz")
    assert_same(records, GameRecords.load(tmp_path / "games.npz"))
    assert os.listdir(tmp_path) == ["games.npz"]


def test_numpy_alone_reads_the_file(tmp_path):
    records = make_records()
    records.save(tmp_path / "games.npz")
    with np.load(tmp_path / "games.npz", allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["positions"], records.positions)
        assert sorted(archive.files) == sorted(records.to_arrays())


def test_loaded_arrays_can_be_written(tmp_path):
    make_records().save(tmp_path / "games.npz")
    GameRecords.load(tmp_path / "games.npz").root_values[0] = 0


def test_a_position_takes_at_most_128_bytes():
    assert make_records((20,) * 50).bytes_per_position <= 128
    assert GameRecords.empty(5).bytes_per_position == 0


def test_concatenate_and_select_undo_each_other():
    one, other = make_records((3, 1), seed=1), make_records((2, 5, 1), seed=2)
    both = GameRecords.concatenate([one, other])
    assert (both.num_games, both.num_positions) == (5, 12)
    assert_same(one, both.select_games([0, 1]))
    assert_same(other, both.select_games(np.array([2, 3, 4])))
    assert both.select_games([]).num_games == 0
    with pytest.raises(RecordsError, match="expected one or more"):
        GameRecords.concatenate([])


def test_select_keeps_the_order_asked_for():
    records = make_records((3, 1, 4))
    chosen = records.select_games([2, 0, 2])
    assert chosen.game_lengths.tolist() == [4, 3, 4]
    expected = np.concatenate([records.actions[4:8], records.actions[0:3], records.actions[4:8]])
    np.testing.assert_array_equal(chosen.actions, expected)
    assert chosen.offsets.tolist() == [0, 4, 7, 11]


@pytest.mark.parametrize("indices", [[-1], [3], [0, 99]])
def test_a_game_that_is_not_there_is_an_error(indices):
    with pytest.raises(RecordsError, match="of 3 games"):
        make_records().select_games(indices)


def test_widths_that_differ_are_not_joined():
    with pytest.raises(RecordsError, match="widths"):
        GameRecords.concatenate([make_records(policy_width=16), make_records(policy_width=8)])


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("positions", np.zeros((8, 5), np.int32)),
        ("positions", np.zeros((7, 5), np.int64)),
        ("positions", np.zeros((8, 5), ">i8")),
        ("actions", np.zeros((8, 1), np.uint16)),
        ("actions", [0] * 8),
        ("policy_weights", np.zeros((8, 15), np.float16)),
        ("policy_weights", np.full((8, 16), np.nan, np.float16)),
        ("policy_weights", np.full((8, 16), 1.5, np.float16)),
        ("root_values", np.full(8, np.nan, np.float16)),
        ("value_targets", np.full(8, np.inf, np.float16)),
        ("game_lengths", np.array([3, 1, 5], np.int32)),
        ("game_lengths", np.array([-1, 5, 4], np.int32)),
        ("endings", np.zeros(2, np.uint8)),
        ("results", np.array([0, 2, 0], np.int8)),
        ("results", np.array([None, None, None], object)),
    ],
)
def test_arrays_that_do_not_fit_are_named(name, array):
    with pytest.raises(RecordsError, match=name):
        GameRecords.from_arrays({**make_records().to_arrays(), name: array})


def test_missing_and_unknown_arrays_are_named():
    arrays = make_records().to_arrays()
    del arrays["endings"]
    with pytest.raises(RecordsError, match=r"missing arrays \['endings'\], unknown arrays \['rewards'\]"):
        GameRecords.from_arrays({**arrays, "rewards": np.zeros(3)})


def test_every_damage_is_found(tmp_path):
    path = tmp_path / "games.npz"
    make_records().save(path)
    for what, damaged in damaged_copies(path.read_bytes()):
        path.write_bytes(damaged)
        with pytest.raises(RecordsError, match="games.npz"):
            GameRecords.load(path)
            pytest.fail(what)


@pytest.mark.parametrize("content", [b"", b"PK", b"{}", pickle.dumps([1]), b"\0" * 4096, SEAL_MARK + BLANK_SEAL])
def test_another_kind_of_file_is_refused(tmp_path, content):
    (tmp_path / "games.npz").write_bytes(content)
    with pytest.raises(RecordsError, match="games.npz"):
        GameRecords.load(tmp_path / "games.npz")


def test_a_missing_file_a_folder_and_a_pipe_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "none.npz", tmp_path, tmp_path / "pipe", "bad\0name"):
        with pytest.raises(RecordsError, match="cannot read games from"):
            GameRecords.load(path)


def hostile_entries(marker: str) -> dict[str, dict[str, bytes]]:
    good = {name: npy(array) for name, array in make_records().to_arrays().items()}
    header = npy(np.zeros(0, np.int64)).replace(b"(0,)", b"(2**60,)".replace(b"2**60", b"9" * 15))
    return {
        "object array": {**good, "actions": npy(np.array([Payload(marker)], object), allow_pickle=True)},
        "raw pickle": {**good, "actions": pickle.dumps(Payload(marker))},
        "absurd shape": {**good, "actions": header},
        "one array more": {**good, "__reduce__": npy(np.zeros(1))},
        "a path for a name": {**good, "../../actions": npy(np.zeros(1))},
        "one array less": {name: content for name, content in good.items() if name != "results"},
        "no arrays": {},
    }


@pytest.mark.parametrize("kind", sorted(hostile_entries("")))
def test_a_hostile_file_with_a_seal_that_holds_does_nothing(tmp_path, kind):
    marker = tmp_path / "executed"
    (tmp_path / "games.npz").write_bytes(sealed_npz(**hostile_entries(str(marker))[kind]))
    with pytest.raises(RecordsError, match="games.npz"):
        GameRecords.load(tmp_path / "games.npz")
    assert not marker.exists()


def test_the_payload_would_work_on_a_careless_loader(tmp_path):
    pickle.loads(pickle.dumps(Payload(str(tmp_path / "executed"))))
    assert (tmp_path / "executed").exists()


def test_a_full_disk_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "games.npz"
    make_records(seed=1).save(path)

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(RecordsError, match="games.npz: No space left on device"):
            make_records(seed=2).save(path)
    assert os.listdir(tmp_path) == ["games.npz"]
    assert_same(make_records(seed=1), GameRecords.load(path))
