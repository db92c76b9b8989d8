"""Jobs for the pool's tests: quick, and able to fail in every way. Importable in other processes."""

import os
import signal
import time

import numpy as np

from chessnn_colab.errors import DeviceError
from chessnn_colab.workers.protocol import worker_seed


class ToyJob:
    """A game is its number, its seed and the weights' version.

    trouble: what goes wrong, by the number of the share that is played, or on a device, or at "start". mark: a file for
    what is to happen once. big: bytes that each game has besides.
    """

    def __init__(self, device: str, seconds: float = 0.0, trouble: dict | None = None, mark: str = "", big: int = 0):
        self.device, self.seconds, self.trouble, self.mark, self.big = device, seconds, trouble or {}, mark, big
        self.version, self.messages = -1, []
        if self.trouble.get("start") == "cannot start":
            raise RuntimeError("no such chip")
        if "start" in self.trouble:
            self._misbehave(self.trouble["start"])
        if self.trouble.get(device) == "broken":
            raise DeviceError(f"{device} does not work: no kernel image")

    def describe(self) -> str:
        return f"toy on {self.device}"

    def set_weights(self, version: int, arrays: dict) -> None:
        self.version = version + int(arrays["add"][0])

    def play(self, num_games: int, seed: int, on_progress) -> None:
        known = {worker_seed(call, share): share for share in (0, 1) for call in range(10)}
        trouble = self.trouble.get(self.device, self.trouble.get(known.get(seed), ""))
        for game in range(num_games):
            time.sleep(self.seconds)
            if game == 1:
                self._misbehave(trouble)
            arrays = {
                "game": np.array([game, seed % 1000, self.version]),
                "pid": np.array([os.getpid()]),
                "big": np.zeros(self.big, np.uint8),
            }
            if trouble == "not numpy":
                arrays = {"game": [game]}
            if not on_progress(game + 1, 10 * (game + 1), arrays):
                return

    def _misbehave(self, trouble: str) -> None:
        if trouble == "raises":
            raise ValueError("a bad move")
        if trouble == "says":
            self.messages.append("half the boards")
        if trouble == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        if trouble == "exits":
            os._exit(7)
        if trouble in ("dies once", "device once") and not os.path.exists(self.mark):
            with open(self.mark, "w", encoding="utf-8"):
                if trouble == "device once":
                    raise RuntimeError("CUDA error: unspecified launch failure")
                os.kill(os.getpid(), signal.SIGKILL)
