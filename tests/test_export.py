"""A network as an ONNX file answers as the network does."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from chessnn_colab import export
from chessnn_colab.__main__ import main
from chessnn_colab.errors import ChessnnError, ConfigError
from chessnn_colab.network import actor_copy
from chessnn_colab.runs.networks import load_network

from .small_run import CONFIG, TICTACTOE, make_run

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not here to read the file")


KINDS = {
    "several spikes": TICTACTOE,
    "several steps": replace(TICTACTOE, steps=3, levels=1),
    "a hard reset": replace(TICTACTOE, steps=3, levels=1, reset="hard"),
    "a ReLU": replace(TICTACTOE, activation="relu"),
    "a ReLU with a bound": replace(TICTACTOE, activation="clipped"),
}


@pytest.mark.parametrize(
    "game, config",
    [("chess", CONFIG), *(("tictactoe", config) for config in KINDS.values())],
    ids=["chess", *KINDS],
)
def test_the_file_answers_as_the_network(tmp_path, game, config):
    run = make_run(tmp_path / "run", (0, 1), game, config)
    path = export.export_network(run, str(tmp_path / "network.onnx"))
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    assert session.get_modelmeta().custom_metadata_map == {"game": game, "iteration": "1"}
    network = actor_copy(load_network(run, device="cpu")[0])
    for batch in (1, 7):
        observation = torch.randint(
            0, 2, (batch, config.planes, config.height, config.width)
        ).float()
        answers = session.run(None, {"observation": observation.numpy()})
        with torch.no_grad():
            expected = network(observation)
        for answer, tensor in zip(answers, expected):
            np.testing.assert_allclose(answer, tensor.numpy(), atol=1e-5)
        assert np.abs(answers[0]).max() > 0.01


def test_the_network_of_a_snapshot(tmp_path, capsys):
    run, path = make_run(tmp_path / "run", (0, 1)), tmp_path / "network.onnx"
    main(["export", run, str(path), "--snapshot", "0"])
    assert capsys.readouterr().out == f"wrote {path}\n"
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    assert session.get_modelmeta().custom_metadata_map["iteration"] == "0"


def test_bad_input_is_one_sentence(tmp_path, monkeypatch):
    run = make_run(tmp_path / "run", (0,))
    with pytest.raises(ConfigError, match=r"expected a file name that ends in \.onnx or \.nir"):
        export.export_network(run, str(tmp_path / "network.pt"))
    with pytest.raises(ChessnnError, match="no snapshot 3"):
        export.export_network(run, str(tmp_path / "network.onnx"), 3)
    kept = tmp_path / "kept.nir"
    kept.write_text("precious")
    with pytest.raises(ChessnnError, match="kept.nir exists: nothing was written"):
        export.export_network(run, str(kept))
    assert kept.read_text() == "precious"
    monkeypatch.setitem(export.NEEDED, ".onnx", ("onnx", "no_such_module"))
    with pytest.raises(ConfigError, match="pip install onnx no_such_module"):
        export.export_network(run, str(tmp_path / "network.onnx"))
    assert not list(tmp_path.glob("*.onnx"))
