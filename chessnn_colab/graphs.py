"""A pure function of tensors, recorded once for each size and replayed as one launch.

On a GPU a ply is thousands of launches, some microseconds of the host's time each, and the GPU
waits for them. A CUDA graph holds them all. It reads and writes always the same memory, so inputs
are copied in and results copied out.
"""

import dataclasses
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from .errors import first_line

PROOFS = 2  # calls, with other inputs than were recorded, that must agree with the function itself
Function = Callable[..., Any]


def map_tensors(function: Function, *trees: Any) -> Any:
    """A tree like `trees` with what `function` makes of their tensors.

    A tree is a tensor, or a tuple, NamedTuple, dict or dataclass of trees. Anything else stays as
    it is.
    """
    first = trees[0]
    if isinstance(first, Tensor):
        return function(*trees)
    if isinstance(first, dict):
        return {name: map_tensors(function, *(tree[name] for tree in trees)) for name in first}
    if isinstance(first, tuple):
        parts = [map_tensors(function, *some) for some in zip(*trees)]
        return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
    if dataclasses.is_dataclass(first):
        mapped = map_tensors(function, *map(vars, trees))
        return dataclasses.replace(first, **mapped)  # pyright: ignore[reportArgumentType]
    return first


@dataclass
class Recording:
    """A function's launches, and the memory that they read and write."""

    inputs: Any
    outputs: Any
    replay: Callable[[], object]

    def run(self, inputs: Any) -> Any:
        """What the function returns for `inputs`, in memory of its own."""
        map_tensors(lambda kept, given: kept.copy_(given), self.inputs, inputs)
        self.replay()
        return map_tensors(torch.clone, self.outputs)


def record(function: Function, inputs: Any) -> Recording:
    """Record `function` as a CUDA graph, for inputs of these sizes. Raises RuntimeError."""
    kept = map_tensors(torch.clone, inputs)
    devices = []
    map_tensors(lambda tensor: devices.append(tensor.device), kept)
    graph = torch.cuda.CUDAGraph()
    with (
        torch.cuda.device(devices[0]),
        torch.cuda.stream(torch.cuda.current_stream()),  # sets the stream back after a failure
        torch.cuda.graph(graph, stream=torch.cuda.Stream(), capture_error_mode="thread_local"),
    ):
        outputs = function(*kept)
    return Recording(kept, outputs, graph.replay)


@dataclass
class Graphs:
    """Whether functions are replayed on a device, and why not.

    A size is replayed after it has agreed with the function itself PROOFS times. same: whether two
    results agree. fewer_may_fit: whether a recording for which memory is short raises, so that the
    caller tries a smaller size.
    """

    on: bool
    what: str = "plies"
    same: Callable[[Tensor, Tensor], bool] = torch.equal
    fewer_may_fit: bool = True
    trouble: str = ""
    proofs: dict[int, int] = field(default_factory=dict)  # by size
    record: Callable[[Function, Any], Recording] = record


class Replays:
    """The recordings of one function, replayed where `graphs` allows it.

    The function must be pure, but for what is counted anew later, as the statistics of batch norm
    are. No size in it may follow from data. It is given anew with each call: kept here, it would
    keep its owner, and with it the memory of a game's tensors.
    """

    def __init__(self, graphs: Graphs):
        self.graphs = graphs
        self._recordings: dict[int, Recording] = {}

    def __call__(self, function: Function, size: int, *inputs: Any) -> Any:
        """function(*inputs). The same `size` means the same shapes."""
        recording = self._recordings.get(size)
        if recording is not None and self.graphs.on:
            found = recording.run(inputs)
            if self.graphs.proofs.get(size, 0) >= PROOFS:
                return found
            return self._prove(size, found, function(*inputs))
        # The first call also warms up: libraries choose their kernels, tables are made.
        outputs = function(*inputs)
        if self.graphs.on:
            try:
                self._recordings[size] = self.graphs.record(function, inputs)
            except RuntimeError as error:
                if self.graphs.fewer_may_fit and isinstance(error, torch.OutOfMemoryError):
                    raise
                self.fail(f"could not be recorded ({first_line(error)})")
        return outputs

    def fail(self, reason: str) -> None:
        """Replay nothing from now on, and warn. A worker's warning is in its log alone."""
        self.forget()
        graphs = self.graphs
        graphs.on = False
        graphs.trouble = f"{graphs.what} run launch by launch, because a CUDA graph {reason}"
        warnings.warn(graphs.trouble, stacklevel=2)

    def forget(self) -> None:
        """Drop all recordings, and with them the memory that they hold."""
        self._recordings.clear()

    def _prove(self, size: int, found: Any, expected: Any) -> Any:
        equal = []
        map_tensors(lambda *pair: equal.append(self.graphs.same(*pair)), expected, found)
        if not all(equal):
            self.fail("computed something else")
        self.graphs.proofs[size] = self.graphs.proofs.get(size, 0) + 1
        return expected
