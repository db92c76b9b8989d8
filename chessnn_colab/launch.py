"""Where a run's games are played: the workers that its config asks for, on this machine or in a cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .config import TrainConfig
from .devices import Inventory, WorkerPlan
from .errors import ConfigError
from .network_config import NetworkConfig
from .selfplay import SelfPlay
from .workers.local import InlinePool, LocalPool
from .workers.pool import Pool


def planned_workers(config: TrainConfig, device: str, machine: Inventory) -> WorkerPlan:
    """Who plays where, when `device` of this `machine` trains. Raises ConfigError, DeviceError or WorkerError."""
    if config.pool != "ray":
        return config.worker_plan(device, machine)
    if config.gpus is not None:
        raise ConfigError(
            f"gpus={config.gpus} on a Ray cluster, where Ray gives out the GPUs: leave it out. CUDA_VISIBLE_DEVICES in "
            "the environment of `ray start` limits those of a machine"
        )
    from .workers.ray import join_cluster, plan_cluster  # Ray is an extra

    return plan_cluster(
        join_cluster(config.address),
        config.workers,
        config.workers_per_gpu,
        config.selfplay_device or ("cpu" if config.device == "cpu" else None),
        config.device_failure,
        config.learner_gpu,
    )


def open_pool(
    config: TrainConfig, network: NetworkConfig, plan: WorkerPlan, logs: Path, say: Callable[[str], None]
) -> Pool | InlinePool:
    """The workers of `plan`, started. logs: folder for what each prints; say: hears sentences for the user.

    Raises WorkerError when a worker cannot start.
    """
    settings = config.job_settings(network)
    if config.pool == "inline":
        return InlinePool(SelfPlay, settings, plan, say)
    if config.pool == "ray":
        from .workers.ray import RayPool  # Ray is an extra

        return RayPool(SelfPlay, settings, plan, address=config.address, timeout=config.worker_timeout, on_message=say)
    return LocalPool(SelfPlay, settings, plan, logs=logs, timeout=config.worker_timeout, on_message=say)
