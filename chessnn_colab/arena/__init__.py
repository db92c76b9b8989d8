"""Players, matches, ladders and puzzles."""

from .. import public_names

__getattr__, __dir__ = public_names("arena")
