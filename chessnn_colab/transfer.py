"""Many arrays between the host and a device in one copy: each copy of its own costs a wait."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor


def to_host(tensors: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
    """Tensors of one device as arrays of the same names, types and shapes. The host waits once."""
    names = largest_first({name: tensor.element_size() for name, tensor in tensors.items()})
    parts = [tensors[name].flatten().view(torch.uint8) for name in names]
    data = torch.cat(parts).cpu().split([len(part) for part in parts])
    return {
        name: part.view(tensors[name].dtype).view(tensors[name].shape).numpy()
        for name, part in zip(names, data)
    }


def to_device(arrays: Mapping[str, np.ndarray], device: torch.device) -> dict[str, Tensor]:
    """Arrays as tensors on `device`, of the same names, types and shapes.

    To a CUDA device they go from pinned memory, so that nobody waits. To any other the copy blocks:
    MPS would read memory that is freed by then (pytorch#189690).
    """
    names = largest_first({name: array.itemsize for name, array in arrays.items()})
    parts = [np.ascontiguousarray(arrays[name]).reshape(-1).view(np.uint8) for name in names]
    data = torch.from_numpy(np.concatenate(parts))
    on_cuda = device.type == "cuda"
    if on_cuda:
        data = data.pin_memory()
    data = data.to(device, non_blocking=on_cuda).split([len(part) for part in parts])
    return {
        name: part.view(getattr(torch, arrays[name].dtype.name)).view(arrays[name].shape)
        for name, part in zip(names, data)
    }


def largest_first(item_sizes: Mapping[str, int]) -> list[str]:
    """The names in an order in which arrays that lie one after the other are all aligned."""
    return sorted(item_sizes, key=lambda name: -item_sizes[name])
