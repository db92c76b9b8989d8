"""play.ipynb from top to bottom: with the network that comes with the package, and with a run that
is not there.
"""

import pytest

from .counts import only_in_full
from .short_notebook import shortened
from .small_run import make_run
from .test_notebook import ROOT, like_colab, outputs, run_notebook, says

# The checkout may have a run of its own, which would be taken first.
NO_RUN = """from chessnn_colab.runs import networks
networks._newest_chess_run = lambda folder: None"""
QUICK = ("evaluations=2", "plies_to_watch=4")


@pytest.mark.timeout(600)
def test_it_plays_and_watches_with_what_is_there(tmp_path):
    executed = tmp_path / "executed.ipynb"
    notebook = shortened("play.ipynb", tmp_path, NO_RUN)
    done = run_notebook(notebook, executed, *QUICK, f"network={str(tmp_path / 'none')!r}")
    assert done.returncode == 0, done.stderr[-3000:]
    says(
        done.stdout,
        ("none", "comes with the package", "network of iteration ", " - random: Stopped. 4 plies"),
    )
    shown = [output.get("data", {}).get("text/html", "") for output in outputs(executed)]
    assert sum("data:image/svg+xml" in html for html in shown) == 3, "two boards and a replay"
    assert sum("application/json" in html for html in shown) == 1


@pytest.mark.timeout(600)
@only_in_full
def test_it_plays_a_run_of_another_game(tmp_path):
    from .small_run import TICTACTOE

    run = make_run(tmp_path / "run", (1,), "tictactoe", TICTACTOE)
    where, notebook = f"network={run!r}", ROOT / "notebooks/play.ipynb"
    done = run_notebook(
        notebook, tmp_path / "out.ipynb", *QUICK, where, python=like_colab(), PYTHONPATH=""
    )
    assert done.returncode == 0, done.stderr[-3000:]
    says(done.stdout, (f"The network of {run}.", "run iteration 1 - random"))
