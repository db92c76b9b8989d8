"""A job for the tests of the pools: quick, and able to fail in every way. Other processes can
import it.
"""

import os
import signal
import time

import numpy as np

from chessnn_colab.errors import DeviceError
from chessnn_colab.workers.protocol import worker_seed

SHARES = {worker_seed(call, share): (call, share) for call in range(40) for share in (0, 1)}


class ToyJob:
    """A game is its number, its seed and the weights' version.

    seconds: how long a game takes. trouble: what goes wrong, by (seed of the call, share), by
    device, or at "start".
    mark: a file for what is to happen once.
    """

    def __init__(
        self, device: str, seconds: float = 0.0, trouble: dict | None = None, mark: str = ""
    ):
        self.device, self.seconds, self.trouble, self.mark = device, seconds, trouble or {}, mark
        self.version, self.messages = -1, []
        self._misbehave(self.trouble.get("start", ""))
        if self.trouble.get(device) == "broken":
            raise DeviceError(f"{device} does not work: no kernel image")

    def describe(self) -> str:
        return f"toy on {self.device}"

    def set_weights(self, version: int, arrays: dict) -> None:
        self.version = version + int(arrays["add"][0])

    def play(self, num_games: int, seed: int, on_progress) -> dict:
        trouble = self.trouble.get(self.device, self.trouble.get(SHARES.get(seed), ""))
        for game in range(num_games):
            time.sleep(self.seconds)
            if game == 1:
                self._misbehave(trouble)
            arrays = {
                "game": np.array([game, seed % 1000, self.version]),
                "pid": np.array([os.getpid()]),
            }
            if trouble == "large":
                arrays["large"] = np.zeros(300_000, np.uint8)
            if trouble == "not numpy":
                arrays = {"game": [game]}
            if not on_progress(game + 1, 10 * (game + 1), arrays):
                break
        return {"in flight": np.array([seed % 1000])}

    def _misbehave(self, trouble: str) -> None:
        if trouble == "cannot start":
            raise RuntimeError("no such chip")
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
