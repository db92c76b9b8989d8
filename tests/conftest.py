"""Many small tests share few cores: one torch thread each, here and in the processes they start.
They are of the CPU.

`make gpu` has the tests that need a GPU; the others would be slow there, and some count on there
being none.
"""

import dataclasses
import os

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("CHESSNN_UI", "text")
if "CHESSNN_GPU_TESTS" not in os.environ:
    os.environ["CUDA_VISIBLE_DEVICES"] = ""

from . import other_device

# On a machine with a GPU torch asks the made device for its pinned memory, which it has not.
if "CHESSNN_GPU_TESTS" not in os.environ and other_device.available():
    other_device.install()  # torch's autograd counts the devices once, at the first backward


@pytest.fixture
def short_games(monkeypatch) -> None:
    """Chess matches of few plies, for what does not depend on how a game ends."""
    from chessnn_colab.arena import registry

    monkeypatch.setattr(registry, "CHESS", dataclasses.replace(registry.CHESS, max_plies=10))


@pytest.fixture(scope="module")
def browser():
    """A browser without a window."""
    from .browser import browse

    with browse() as opened:
        yield opened


# Files of ten seconds and more, the longest first: no process is to be left with one of them at the
# end.
LONGEST = """
notebook cluster cluster_network bench_device browser bench leak training kernels workers
play_notebook solo selfplay matches tictactoe_learning wheel check browser_play chess_moves
engine_player uci games chess_endings strength
""".split()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, the others by their names."""
    place = {f"test_{name}": number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(LONGEST)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log):
    """With `pytest -n`: a file's tests stay in one process, and so does whatever starts a Ray
    cluster.

    Ray gives a cluster 30 seconds to start, which two at a time do not keep. xdist's own marker for
    such groups has no effect with pytest 9.2 (pytest-xdist issue 1386).
    """
    from xdist.scheduler import LoadScopeScheduling

    class OneClusterAtATime(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return (
                "ray" if "cluster" in nodeid or "scale_out" in nodeid else nodeid.partition("::")[0]
            )

    config.option.loadscopereorder = (
        False  # files in the order above, not by how many tests they have
    )
    return OneClusterAtATime(config, log)
