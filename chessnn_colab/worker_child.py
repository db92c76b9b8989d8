"""Temporary."""
from __future__ import annotations
import os, signal, threading, traceback
from typing import Any, Callable, Mapping, Protocol
import numpy as np
import torch
from .devices import keep_freed_memory
Arrays = dict[str, np.ndarray]
class Job(Protocol):
    pass
def run_worker(connection, lifeline, factory, device, threads, settings) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with_parent, args=(lifeline,), daemon=True).start()
    torch.set_num_threads(threads)
    keep_freed_memory()
    try:
        job = factory(device, **settings)
        connection.send(("ready", job.describe()))
        while (message := connection.recv())[0] != "close":
            if message[0] == "weights":
                job.set_weights(message[1], message[2])
            elif message[0] == "play":
                _play(connection, job, *message[1:])
    except (EOFError, BrokenPipeError):
        return
    except Exception:
        connection.send(("error", traceback.format_exc()))
def _play(connection, job, ticket, games, seed):
    stopping = False
    def on_progress(games_done, plies_done, arrays):
        nonlocal stopping
        if arrays is not None:
            connection.send(("games", ticket, arrays))
        connection.send(("progress", ticket, games_done, plies_done))
        while not stopping and connection.poll():
            message = connection.recv()
            if message[0] == "close":
                raise EOFError
            stopping = message == ("stop", ticket)
        return not stopping
    job.play(games, seed, on_progress)
    connection.send(("done", ticket))
def _die_with_parent(lifeline):
    try:
        lifeline.recv()
    except (EOFError, OSError):
        os._exit(1)
