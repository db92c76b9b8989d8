"""A second device without hardware: tensors of the device type `elsewhere`.

Their values lie in memory of the CPU, but only kernels may see them. What a GPU does not forgive
raises here: operators on tensors of two devices, a read by the host without a copy, float64 and
uint16 (which MPS lacks). What a GPU forgives at a price is recorded with file and line: each time
the host waits for the device, because it wants a value or a size that follows from values, and
each copy from the host.

torch.utils.backend_registration has the private function that this is built on. `available` says
whether this torch has it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import backend_registration
from torch.utils._pytree import tree_leaves, tree_map

NAME = "elsewhere"
PACKAGE = "chessnn_colab/"
aten = torch.ops.aten
COPIES = (aten._to_copy.default, aten.copy_.default, aten._copy_from.default)
# Operators whose result's size follows from values: a GPU tells the host, which waits for it.
SIZED_BY_VALUES = (
    "nonzero",
    "masked_select",
    "unique",
    "_unique2",
    "repeat_interleave",
    "bincount",
)
NOT_THERE = (torch.float64, torch.uint16)  # on MPS
FACTORIES = {torch.tensor, torch.as_tensor, torch.arange, torch.linspace, torch.randperm}
GENERATOR = torch.Generator

waits: Counter[tuple[str, str]] = Counter()  # (what, where in the package) -> how often
operators: set[tuple[str, tuple[torch.dtype, ...]]] = set()  # those that ran, with their types
_kept: list[torch.library.Library] = []  # a library's kernels live as long as it does


def available() -> bool:
    """Whether this torch lets Python make a device."""
    return hasattr(backend_registration, "_setup_privateuseone_for_python_backend")


class Elsewhere(torch.Tensor):
    """A tensor on the device. `values` is a tensor on the CPU, which kernels alone read."""

    values: torch.Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, values: torch.Tensor) -> Self:
        if values.dtype in NOT_THERE and not in_loss_scaler():
            raise TypeError(f"{values.dtype} on the device, at {caller()}")
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            values.size(),
            strides=values.stride(),
            storage_offset=values.storage_offset(),
            dtype=values.dtype,
            layout=values.layout,
            device=torch.device(NAME, 0),
        )
        made.values = values
        return made

    def tolist(self) -> Any:
        record("tolist")
        return self.values.tolist()

    def numpy(self, *_: Any, **__: Any) -> Any:
        raise TypeError(f"the host reads the device's memory, at {caller()}: copy it with cpu()")

    __array__ = numpy

    def __deepcopy__(self, memo: dict) -> torch.Tensor:
        copy = Elsewhere(self.values.clone())
        if isinstance(self, torch.nn.Parameter):
            return torch.nn.Parameter(copy, self.requires_grad)
        return copy

    @classmethod
    def __torch_dispatch__(cls, operator, types, args=(), kwargs=None):
        return run(operator, args, kwargs or {})


def caller() -> str:
    """The innermost line of the package that is running."""
    frame = sys._getframe(1)
    while frame is not None:
        _, found, name = frame.f_code.co_filename.rpartition(PACKAGE)
        if found:
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return "outside the package"


def in_loss_scaler() -> bool:
    """Whether torch's GradScaler is running: it uses float64 everywhere but on MPS."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.endswith("grad_scaler.py"):
            return True
        frame = frame.f_back
    return False


def record(what: str) -> None:
    waits[what, caller()] += 1


def values_of(argument: Any) -> Any:
    return argument.values if isinstance(argument, Elsewhere) else argument


def run(operator: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Run an operator on the values of its arguments; its result is on the device where theirs is."""
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    here = [tensor for tensor in tensors if not isinstance(tensor, Elsewhere)]
    there = [tensor for tensor in tensors if isinstance(tensor, Elsewhere)]
    if operator not in COPIES:
        check_devices(operator, here)
    note(operator, there, args)
    plain_args = tree_map(values_of, args)
    plain_kwargs = {name: tree_map(values_of, value) for name, value in kwargs.items()}
    stays = bool(there)
    if kwargs.get("device") is not None:
        stays = torch.device(kwargs["device"]).type == NAME
        plain_kwargs["device"] = torch.device("cpu")
    plain_kwargs.pop("pin_memory", None)
    if operator in COPIES and here and there and here[0].dim() and stays:
        record("copy from the host")
    if operator is aten._to_copy.default and there and not stays:
        record("copy to the host")
    if operator is aten.copy_.default and isinstance(args[1], Elsewhere) and args[0] in here:
        record("copy to the host")
    if operator is aten._copy_from.default:
        plain_args[1].copy_(plain_args[0])
        return args[1]
    result = operator(*plain_args, **plain_kwargs)
    written = arguments_written(operator, args, kwargs)
    if written is not None:
        return written
    return tree_map(moved, result) if stays else result


def check_devices(operator: Any, here: list[torch.Tensor]) -> None:
    """Raise RuntimeError for an operator of the device with a tensor of the host, as CUDA does.

    A number as a tensor [] may come from the host, but not as an index.
    """
    for tensor in here:
        as_index = "index" in str(operator) and operator is not aten.index_select.default
        if tensor.dim() or as_index:
            raise RuntimeError(
                f"{operator} on {NAME} with a tensor {tuple(tensor.shape)} of the CPU, at {caller()}"
            )


def note(operator: Any, there: list[torch.Tensor], args: tuple) -> None:
    """Record the operator, its types, and whether the host waits for it."""
    overload = operator._overloadname
    name = operator.overloadpacket.__name__ + ("" if overload == "default" else f".{overload}")
    if there:
        types = {tensor.dtype for tensor in there}
        operators.add((name, tuple(sorted(types, key=str))))
    if operator is aten._local_scalar_dense.default:
        record("a number")
    indexing = operator in (aten.index.Tensor, aten.index_put.default, aten.index_put_.default)
    indices = [index for index in args[1] if index is not None] if indexing else []
    by_mask = any(index.dtype == torch.bool for index in indices)
    if operator.overloadpacket.__name__ in SIZED_BY_VALUES or by_mask:
        record(name)


def moved(result: Any) -> Any:
    plain = isinstance(result, torch.Tensor) and not isinstance(result, Elsewhere)
    return Elsewhere(result) if plain else result


def arguments_written(operator: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The arguments that an operator in place wrote and returns, or None for any other operator."""
    returned = operator._schema.returns
    if not returned or returned[0].alias_info is None or not returned[0].alias_info.is_write:
        return None
    found = []
    for place, argument in enumerate(operator._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            found.append(args[place] if place < len(args) else kwargs[argument.name])
    return found[0] if len(returned) == 1 else tuple(found)


class DeviceModule:
    """What torch asks a device's module: torch.elsewhere."""

    def device_count(self) -> int:
        return 1

    def is_available(self) -> bool:
        return True

    def current_device(self) -> int:
        return 0

    def _is_in_bad_fork(self) -> bool:
        return False

    def manual_seed_all(self, seed: int) -> None:
        pass

    def synchronize(self, device: Any = None) -> None:
        record("synchronize")

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.float16, torch.bfloat16]


class HostGenerator(GENERATOR):
    """torch.Generator, on the CPU where the device is asked for."""

    def __new__(cls, device: Any = "cpu"):
        return GENERATOR("cpu" if torch.device(device).type == NAME else device)


class Factories(TorchFunctionMode):
    """Functions that fill a tensor on the host first: made there, then moved. Generators stay there,
    because Python cannot make one of another device.
    """

    def __enter__(self):
        torch.Generator = HostGenerator  # type: ignore[misc]
        return super().__enter__()

    def __exit__(self, *error: object):
        torch.Generator = GENERATOR  # type: ignore[misc]
        return super().__exit__(*error)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        device = kwargs.get("device")
        if function in FACTORIES and device is not None and torch.device(device).type == NAME:
            if function in (torch.tensor, torch.as_tensor):
                record("copy from the host")
            return Elsewhere(function(*args, **{**kwargs, "device": "cpu"}))
        return function(*args, **kwargs)


def install() -> None:
    """Make the device, once per process."""
    backend_registration._setup_privateuseone_for_python_backend(
        NAME, backend_module=DeviceModule()
    )
    kernels = torch.library.Library("_", "IMPL")
    kernels.fallback(lambda operator, *args, **kwargs: run(operator, args, kwargs), "PrivateUse1")
    others = torch.library.Library("_", "IMPL")
    others.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
    halves = torch.library.Library("aten", "IMPL")
    halves.impl("conv2d", half_convolution, "AutocastPrivateUse1")
    _kept.extend((kernels, others, halves))


def half_convolution(x: torch.Tensor, weight: torch.Tensor, bias: Any = None, *more: Any) -> Any:
    """A convolution under autocast: the operator whose precision matters here."""
    half = torch.get_autocast_dtype(NAME)
    below = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastPrivateUse1)
    with torch._C._ExcludeDispatchKeyGuard(below):
        shift = None if bias is None else bias.to(half)
        return aten.conv2d(x.to(half), weight.to(half), shift, *more)


@contextmanager
def recorded() -> Iterator[Counter[tuple[str, str]]]:
    """The waits inside the block."""
    waits.clear()
    yield waits
