"""The commands."""

import argparse
from collections.abc import Callable

# (name, function, help) -> the parser of a new command; see `__main__.build_parser`.
AddCommand = Callable[..., argparse.ArgumentParser]
