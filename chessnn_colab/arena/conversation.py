"""What the network's UCI engine and its Gomocup engine share: lines in, lines out, and the actor that thinks."""

from __future__ import annotations

import io
import queue
import threading
from dataclasses import replace
from typing import ClassVar, TextIO

from ..actor import Actor
from ..devices import choose_dtype, playing_device
from ..games.registry import make_game
from ..network import actor_copy
from .evaluate import load_network, run_game
from .players import PLAY_SEARCH

CONSIDERED = 32  # root moves that sequential halving begins with


class Conversation:
    """One thread reads `commands`; whoever calls `loop` obeys them and writes `answers`."""

    last_word: ClassVar[str]  # the command that ends the conversation, in small letters

    def __init__(self, commands: TextIO, answers: TextIO):
        self.commands, self.answers = commands, answers
        self.inbox: queue.Queue[str | None] = queue.Queue()  # None: the end of the input

    def loop(self) -> None:
        """Obey until the last word or the end of the input."""
        for stream in (self.commands, self.answers):
            if isinstance(stream, io.TextIOWrapper):  # a character that the system cannot write must not end a game
                stream.reconfigure(errors="backslashreplace")
        threading.Thread(target=self._read, daemon=True, name="commands").start()
        while (line := self.next_command()) is not None and not self.ends(line):
            self.obey(line)

    def ends(self, line: str | None) -> bool:
        """Whether this command, or the end of the input, ends the conversation."""
        return line is None or line.lower() == self.last_word

    def obey(self, line: str) -> None:
        """Carry out one command."""
        raise NotImplementedError

    def next_command(self) -> str | None:
        """The next line, or None at the end of the input."""
        return self.inbox.get()

    def say(self, text: str) -> None:
        """Write one line to the other program."""
        print(text, file=self.answers, flush=True)

    def _read(self) -> None:
        for line in self.commands:
            self.inbox.put(line.strip())
        self.inbox.put(None)


def playing_actor(run: str, snapshot: int | None, device: str) -> tuple[Actor, int]:
    """A run's network, ready to search games of any length, and the iteration that it comes from.

    Raises RunError, CheckpointError or DeviceError when the network cannot be loaded.
    """
    network, iteration = load_network(run, snapshot, device)
    place = playing_device(next(network.parameters()).device)
    game = make_game(run_game(run), 10**6, place)
    config = replace(PLAY_SEARCH, max_num_considered_actions=CONSIDERED, solve="all")
    return Actor(game, actor_copy(network, choose_dtype("auto", place)).to(place), config, game.discount), iteration
