"""Jobs for the pool's tests: quick, and able to fail in every way. Importable in spawned processes."""

import os
import signal
import time

import numpy as np


class ToyJob:
    """A game is its number, its seed and the weights' version. `trouble` is what goes wrong, on `device`'s worker."""

    def __init__(self, device: str, seconds: float = 0.0, trouble: dict | None = None, mark: str = ""):
        self.device, self.seconds, self.mark = device, seconds, mark
        self.trouble = (trouble or {}).get(device, "")
        self.version = -1
        if self.trouble == "cannot start":
            raise RuntimeError("no such chip")

    def describe(self) -> str:
        return f"toy on {self.device}"

    def set_weights(self, version: int, arrays: dict) -> None:
        self.version = version + int(arrays["add"][0])

    def play(self, num_games: int, seed: int, on_progress) -> None:
        for game in range(num_games):
            time.sleep(self.seconds)
            if game == 1:
                self._misbehave()
            arrays = {"game": np.array([game, seed % 1000, self.version]), "pid": np.array([os.getpid()])}
            if self.trouble == "not numpy":
                arrays = {"game": [game]}
            if not on_progress(game + 1, 10 * (game + 1), arrays):
                return

    def _misbehave(self) -> None:
        if self.trouble == "raises":
            raise ValueError("a bad move")
        if self.trouble == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.trouble == "dies once" and not os.path.exists(self.mark):
            with open(self.mark, "w", encoding="utf-8"):
                os.kill(os.getpid(), signal.SIGKILL)
        if self.trouble == "exits":
            os._exit(7)
