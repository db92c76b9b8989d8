"""Runs: their folders, their files, and the networks in them."""

from .. import public_names

__getattr__, __dir__ = public_names("runs")
