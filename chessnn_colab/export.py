"""A run's network as an ONNX file, for programs in other languages and for browsers."""

import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from .errors import CheckpointError, ConfigError
from .network import SpikingNetwork, actor_copy
from .runs.files import absolute, refused, write_atomically
from .runs.networks import load_network, run_game

NEEDED = ("onnx", "onnxscript")


def export_onnx(run: str, path: str, snapshot: int | None = None) -> Path:
    """Write the network of `run` to `path`, an ONNX file, with batch norm folded.

    Its input is `observation` float32 [B, planes, height, width]; its outputs are those of
    SpikingNetwork, for any B. The spikes are Clip and Round nodes, so any ONNX runtime computes
    them exactly. snapshot: the iteration of the weights; None is the last. Raises ConfigError where
    onnx and onnxscript are missing and for a path that does not end in .onnx; RunError and
    CheckpointError as load_network does.
    """
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise ConfigError(
            f"{' and '.join(missing)} not found: expected both, run `pip install "
            f"{' '.join(NEEDED)}`"
        )
    if Path(path).suffix != ".onnx":
        raise ConfigError(f"{path}: expected a file name that ends in .onnx")
    network, iteration = load_network(run, snapshot, "cpu")
    model = onnx_program(network).model_proto
    model.metadata_props.add(key="game", value=run_game(run))
    model.metadata_props.add(key="iteration", value=str(iteration))
    target = absolute(path)
    with refused(f"cannot save the ONNX file {target}", kind=CheckpointError):
        write_atomically(target, model.SerializeToString())
    return target


def onnx_program(network: SpikingNetwork) -> Any:
    """The folded network as a torch.onnx.ONNXProgram."""
    config = network.config
    observation = torch.zeros(2, config.planes, config.height, config.width)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # torch's exporter warns of its own parts
        program = torch.onnx.export(
            actor_copy(network),
            (observation,),
            dynamo=True,
            input_names=["observation"],
            output_names=["prior_logits", "value_logits"],
            dynamic_shapes=({0: torch.export.Dim("batch")},),
            verbose=False,
        )
    assert program is not None
    return program
