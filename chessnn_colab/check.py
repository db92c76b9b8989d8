"""check_device(): the devices of this machine, which of them work, and advice."""

import functools
from dataclasses import asdict, dataclass
from typing import Any

from .advice import Facts, advice, gather_facts, versions
from .config import TrainConfig
from .device_probe import COMPARED, probe
from .devices import DeviceChoice, WorkerPlan, detect_device, plan_workers
from .plan import plan_run


@dataclass(frozen=True)
class CheckReport:
    """Everything check_device found; str() is the table, to_dict() plain data."""

    versions: dict[str, str]
    facts: Facts
    choice: DeviceChoice
    plan: WorkerPlan
    advice: tuple[str, ...]
    outlook: str = ""  # what twenty minutes make (plan.py)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        return asdict(self)

    @property
    def line(self) -> str:
        """The device, why, and what to do, in one line."""
        ready = self.advice or ("ready to train",)
        return f"{self.choice}: {'; '.join((*self.choice.reasons, *ready))}"

    def __str__(self) -> str:
        facts = self.facts
        machine = facts.machine
        workers = f"{len(self.plan.devices)} on {', '.join(dict.fromkeys(self.plan.devices))}"
        lines = [("device", str(self.choice))]
        lines += [("", reason) for reason in self.choice.reasons]
        if self.choice.device != "cpu":
            lines.append(("compared", f"with the CPU: {COMPARED}"))
        lines.append(("place", facts.place))
        lines.append(("versions", ", ".join(f"{k} {v}" for k, v in self.versions.items())))
        for gpu in machine.gpus:
            lines.append((f"GPU {gpu.index}", f"{gpu.name}, {gpu.memory / 2**30:.1f} GiB"))
        lines.append(("CPU", f"{machine.cores} cores"))
        lines.append(("workers", f"{workers}, torch threads each: {self.plan.threads}"))
        lines += [("", note) for note in self.plan.notes]
        lines.append(("outlook", self.outlook))
        lines += [("advice", text) for text in self.advice or ("none: ready to train",)]
        return "\n".join(f"{name:10} {text}" for name, text in lines)


def check_device(device: str = "auto", game: str = "chess") -> CheckReport:
    """Look, try and recommend.

    The report names the devices that do not work. Raises DeviceError only for a `device` that is
    not there or does not work.
    """
    facts = gather_facts()
    machine = facts.machine
    choice = detect_device(device, machine, functools.partial(probe, game=game))
    return CheckReport(
        versions=versions(),
        facts=facts,
        choice=choice,
        plan=plan_workers(machine, choice.device),
        outlook=plan_run(TrainConfig(game=game), choice.device, machine).line,
        advice=advice(facts, choice.troubles),
    )
