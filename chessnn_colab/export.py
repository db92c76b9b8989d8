"""A run's network as a file for other programs: ONNX for other languages and browsers, NIR for
neuromorphic simulators and chips.
"""

import io
import warnings
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .errors import CheckpointError, ConfigError
from .layers import TAU, ConvNorm, SpikingLayer
from .network import SpikingNetwork, actor_copy, to_arrays
from .network_config import NetworkConfig
from .runs.files import refused, write_atomically
from .runs.networks import load_network, run_game
from .runs.shared import new_file

NEEDED = {".onnx": ("onnx", "onnxscript"), ".nir": ("nir",)}


def export_network(run: str, path: str, snapshot: int | None = None) -> Path:
    """Write the network of `run` to `path`, which ends in .onnx or .nir, with batch norm folded.

    ONNX: its input is `observation` float32 [B, planes, height, width]; its outputs are those of
    SpikingNetwork, for any B. Of a network with several levels the spikes are Clip and Round nodes,
    so any ONNX runtime computes them exactly. NIR: see nir_bytes. snapshot: the iteration of the
    weights; None is the last. Raises ConfigError where the format's packages are missing, for a
    path that ends in something else, and for a network that NIR has no nodes for; CheckpointError
    where there is such a file; RunError and CheckpointError as load_network does.
    """
    suffix = Path(path).suffix
    if suffix not in NEEDED:
        raise ConfigError(f"{path}: expected a file name that ends in .onnx or .nir")
    needed = NEEDED[suffix]
    if missing := [name for name in needed if find_spec(name) is None]:
        raise ConfigError(
            f"{' and '.join(missing)} not found: run `pip install {' '.join(needed)}`"
        )
    target = new_file(path)
    network, iteration = load_network(run, snapshot, "cpu")
    write = onnx_bytes if suffix == ".onnx" else nir_bytes
    data = write(network, {"game": run_game(run), "iteration": str(iteration)})
    with refused(f"cannot save the network as {target}", kind=CheckpointError):
        write_atomically(target, data)
    return target


def onnx_bytes(network: SpikingNetwork, facts: dict[str, str]) -> bytes:
    """The folded network as the contents of an ONNX file. facts: its metadata."""
    from onnx.helper import set_model_props

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
    model = program.model_proto
    set_model_props(model, facts)
    return model.SerializeToString()


def nir_bytes(network: SpikingNetwork, facts: dict[str, str]) -> bytes:
    """The folded network as the contents of a NIR file of Conv2d and LIF nodes.

    A node adds up its inputs: a neuron of k spikes is k LIF nodes with thresholds of 1/2, 3/2, ...
    that feed one convolution, and a shortcut is more edges. The membrane of an LIF is ours over
    TAU, because Norse knows no r but 1. The input is the planes, the same in each of `steps` steps;
    the output [actions, 1, 1], in the mean over the steps, is the policy's logits. NIR has no ReLU,
    so the weights of the value head, which reads the last neurons, are in the metadata, beside
    `facts`. Raises ConfigError for a network that NIR has no nodes for.
    """
    import nir

    config = network.config
    check_nir(config)
    network = actor_copy(network)
    board = (config.height, config.width)
    ones = np.ones((config.channels, *board))
    tau = ones * TAU * 1e-4  # seconds: a step is 1e-4 in snnTorch and SpikingJelly
    thresholds = np.arange(0.5 if config.levels > 1 else 1, config.levels + 0.5) / TAU
    nodes, edges = {}, []  # NIRGraph adds the input and the output

    def add(sources: list[str], found: dict[str, Any]) -> list[str]:
        nodes.update(found)
        edges.extend(product(sources, found))
        return list(found)

    spikes = currents = shortcut = []
    for name, module in network.named_modules():  # in the order in which they run
        if isinstance(module, ConvNorm):
            conv = to_arrays(module.conv)
            node = nir.Conv2d(board, conv["weight"], 1, 1, 1, 1, conv["bias"])
            currents = add(spikes, {name: node})
            if not name.endswith("conv1"):
                currents = shortcut = shortcut + currents
        elif isinstance(module, SpikingLayer):
            neurons = {
                f"{name}.{spike}": nir.LIF(tau, ones, ones * 0, ones * threshold)
                for spike, threshold in enumerate(thresholds, 1)
            }
            spikes = add(currents, neurons)
    silent = torch.zeros(1, *ones.shape)
    weight = torch.autograd.functional.jacobian(network.policy, silent).flatten(0, 2).numpy()
    bias = network.policy(silent)[0].numpy()
    add(spikes, {"policy": nir.Conv2d(board, weight, 1, 0, 1, 1, bias)})
    file: Any = io.BytesIO()
    nir.write(
        file,
        nir.NIRGraph(
            nodes, edges, {**facts, "steps": config.steps, "value": to_arrays(network.value)}
        ),
    )
    return file.getvalue()


def check_nir(config: NetworkConfig) -> None:
    """Raise ConfigError for a network that NIR has no nodes for."""
    if config.activation != "spikes" or (config.steps > 1 and config.reset == "soft"):
        raise ConfigError(
            f"activation={config.activation!r}, steps={config.steps}, reset={config.reset!r}: NIR "
            "has no ReLU and no clipping, and no neuron that fires more than once in one of "
            "several steps or keeps what a spike leaves; expected spikes in steps=1, or "
            "reset='hard' with levels=1"
        )
