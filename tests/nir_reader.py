"""A reader of NIR files, written from the format's own equations: it knows nothing of how they are
made.
"""

from graphlib import TopologicalSorter

import nir
import torch
from torch import Tensor
from torch.nn.functional import conv2d


def play(
    graph: nir.NIRGraph, observation: Tensor, steps: int, dt: float = 1e-4
) -> dict[str, Tensor]:
    """What each node gives on, [T, B, ...] by its name, while `observation` [B, ...] comes in at
    every step. It computes in the dtype of `observation`.
    """
    sources: dict[str, list[str]] = {name: [] for name in graph.nodes}
    for source, target in graph.edges:
        sources[target].append(source)
    order = [*TopologicalSorter(sources).static_order()]
    membranes: dict[str, Tensor] = {}
    history: dict[str, list[Tensor]] = {name: [] for name in graph.nodes}
    for _ in range(steps):
        for name in order:
            node, total = graph.nodes[name], observation
            if sources[name]:
                total = sum(history[source][-1] for source in sources[name])
            if isinstance(node, nir.Conv2d):
                total = convolved(node, total)
            elif isinstance(node, nir.LIF):
                total, membranes[name] = fired(node, total, membranes.get(name), dt)
            else:
                assert isinstance(node, (nir.Input, nir.Output)), f"{name} is a {type(node)}"
            history[name].append(total)
    return {name: torch.stack(outputs) for name, outputs in history.items()}


def convolved(node: nir.Conv2d, x: Tensor) -> Tensor:
    weight, bias = (torch.from_numpy(array).to(x.dtype) for array in (node.weight, node.bias))
    stride, padding, dilation = (
        tuple(map(int, pair)) for pair in (node.stride, node.padding, node.dilation)
    )
    return conv2d(x, weight, bias, stride, padding, dilation, int(node.groups))


def fired(
    node: nir.LIF, current: Tensor, membrane: Tensor | None, dt: float
) -> tuple[Tensor, Tensor]:
    """Spikes and membrane after one Euler step of tau dv/dt = v_leak - v + r I."""
    tau, r, leak, threshold, reset = (
        torch.from_numpy(array).to(current.dtype)
        for array in (node.tau, node.r, node.v_leak, node.v_threshold, node.v_reset)
    )
    v = torch.zeros_like(current) if membrane is None else membrane
    v = v + dt / tau * (leak - v + r * current)
    spikes = v > threshold
    return spikes.to(v.dtype), torch.where(spikes, reset, v)
