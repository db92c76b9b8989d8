"""Many small tests share few cores: one torch thread each, here and in the processes they start."""

import os

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("CHESSNN_UI", "text")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One Ray cluster at a time: each takes all cores to start, and gives up after 30 seconds."""
    for item in items:
        if "cluster" in item.path.name or "scale_out" in item.name:
            item.add_marker(pytest.mark.xdist_group("ray"))
