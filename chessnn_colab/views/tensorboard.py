"""TensorBoard in a cell, for all runs of a folder."""

import os
import shlex
import shutil
import sys

from ..runs.files import AnyPath


def show_tensorboard(folder: AnyPath) -> None:
    """Show TensorBoard's curves of all runs in `folder`, as `%tensorboard --logdir` does."""
    from tensorboard.notebook import start  # who does not look waits for nothing

    beside = shutil.which("tensorboard", path=os.path.dirname(sys.executable))
    if beside:  # a kernel whose environment is not activated does not have it on its PATH
        os.environ.setdefault("TENSORBOARD_BINARY", beside)
    start(f"--logdir {shlex.quote(str(folder))}")
