"""A learner's state in numpy arrays and plain data, for a file or another process."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import torch

from .errors import ConfigError
from .in_flight import Arrays
from .learner import Learner, LearnerConfig
from .network import load_arrays, to_arrays


def learner_state(learner: Learner) -> dict[str, Any]:
    """What another process needs to go on as this learner: settings, weights, moments and progress,
    in numpy arrays and plain data.
    """
    settings = {field.name: getattr(learner.config, field.name) for field in fields(LearnerConfig)}
    # Unlike devices may choose unlike ones, and their gradients are summed.
    settings["precision"] = str(learner.precision).removeprefix("torch.")
    return {
        "settings": settings,
        "weights": to_arrays(learner.network),
        "optimizer": optimizer_arrays(learner.optimizer),
        "progress": learner.progress(),
    }


def load_learner_state(learner: Learner, state: Mapping[str, Any]) -> None:
    """Go on as the learner of `state` (learner_state), which has the same settings."""
    load_arrays(learner.network, state["weights"])
    load_optimizer_arrays(learner.optimizer, state["optimizer"])
    learner.restore_progress(state["progress"])


def optimizer_arrays(optimizer: torch.optim.Optimizer) -> Arrays:
    """AdamW's moments and step counts by parameter number, for a checkpoint."""
    state = optimizer.state_dict()["state"]
    return {
        f"{number}.{name}": tensor.detach().cpu().numpy().copy()
        for number, moments in state.items()
        for name, tensor in moments.items()
    }


def load_optimizer_arrays(optimizer: torch.optim.Optimizer, arrays: Arrays) -> None:
    """The inverse of `optimizer_arrays`. Raises ConfigError when the arrays are not this
    optimizer's, all or none.
    """
    state = {}
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    shapes = {
        f"{number}.{name}": () if name == "step" else tuple(parameter.shape)
        for number, parameter in enumerate(parameters)
        for name in ("step", "exp_avg", "exp_avg_sq")
    }
    given = {name: tuple(array.shape) for name, array in arrays.items()}
    if (given and given != shapes) or any(array.dtype != np.float32 for array in arrays.values()):
        raise ConfigError(
            f"{len(given)} arrays of an optimizer do not fit the {len(shapes)} of this network"
        )
    for key, array in arrays.items():
        number, name = key.split(".", 1)
        tensor = torch.from_numpy(np.array(array))
        like = parameters[int(number)]
        if tensor.shape == like.shape:  # a moment, laid out in memory as its weights are
            tensor = torch.empty_like(like, device="cpu").copy_(tensor)
        state.setdefault(int(number), {})[name] = tensor
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
