"""Shapes are checked where tensors enter search, tree, actor, network and learner."""

from typing import Any


def check_shape(name: str, array: Any, *sizes: int | None) -> None:
    """Raise ValueError unless `array` has this shape; None allows any size."""
    shape = tuple(array.shape)
    fits = len(shape) == len(sizes)
    if not fits or any(size not in (None, own) for size, own in zip(sizes, shape)):
        expected = ", ".join("any" if size is None else str(size) for size in sizes)
        raise ValueError(f"{name} has the shape {list(shape)}: expected [{expected}]")
