"""One file of a network: it opens wherever a run does, and one made to harm is refused in a
sentence.
"""

import json
import math
import os
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

from chessnn_colab.__main__ import main
from chessnn_colab.arena.chess.uci import Engine
from chessnn_colab.arena.evaluate import evaluate_run, find_player
from chessnn_colab.arena.players import play_search
from chessnn_colab.arena.puzzles import solved_over_run
from chessnn_colab.arena.registry import match_game
from chessnn_colab.errors import CheckpointError, ChessnnError
from chessnn_colab.network import build_network, to_arrays
from chessnn_colab.runs.checkpoint import load_checkpoint, save_checkpoint
from chessnn_colab.runs.files import encode_object
from chessnn_colab.runs.folder import RATINGS_FILE, RunFolder
from chessnn_colab.runs.networks import card_of, find_snapshot, load_network, run_game
from chessnn_colab.runs.shared import card_lines, share
from chessnn_colab.views.page import share_page

from .sample_reports import make_report, make_strength
from .small_run import CONFIG, TICTACTOE, make_run
from .test_hostile import file_loaders

SETTINGS = {
    "game": "chess",
    "seed": 3,
    "boards": None,
    "run": "/home/me/runs/x",
    "copy_to": "/drive",
    "address": "10.0.0.1",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("share") / "run"
    with RunFolder.create_or_open(folder, SETTINGS) as opened:
        for iteration in (0, 5):
            weights = to_arrays(build_network(CONFIG, "cpu", seed=iteration))
            opened.save_snapshot(
                iteration,
                weights,
                {"game": "chess", "network": CONFIG.to_dict(), "config": SETTINGS},
            )
        opened.append_report(
            {
                "iteration": 5,
                "total_positions": 1234,
                "seconds": 60.0289,
                "policy_loss": math.nan,  # nothing was learned
                "sample_game": "1. e4",
            }
        )
    return str(folder)


def test_a_page_made_inside_the_run_has_its_name(run, tmp_path, monkeypatch):
    monkeypatch.chdir(run)
    share_page(".", tmp_path / "page.html")
    assert '"card": {"run": "run", ' in (tmp_path / "page.html").read_text()


@pytest.fixture
def file(run, tmp_path):
    share(run, tmp_path / "mine.net")
    return str(tmp_path / "mine.net")


def test_the_last_network_opens_wherever_a_run_does(run, file, short_games):
    network, iteration = load_network(file, device="cpu")
    original, _ = load_network(run, device="cpu")
    assert iteration == 5 and run_game(file) == "chess"
    for name, tensor in original.state_dict().items():
        assert torch.equal(tensor, network.state_dict()[name]), name
    policy = play_search("policy")
    assert evaluate_run(file, games=2, search=policy, device="cpu")[0].games == 2
    game = match_game("chess")
    assert find_player(file, game, policy).name == "mine.net iteration 5"
    assert find_player(f"{file}@5", game, policy).name == "mine.net iteration 5"
    assert list(solved_over_run(file, policy, device="cpu")) == [5]
    assert Engine(file).player.name == "iteration 5"


def test_the_card_says_what_made_it_and_nothing_of_the_machine(file):
    card = card_of(file)
    assert card["iteration"] == 5 and card["version"] and card["game"] == "chess"
    assert card["figures"] == {"seconds": 60.0289, "total_positions": 1234}
    assert card["settings"] == {"game": "chess", "seed": 3}
    text = Path(file).read_bytes()
    assert b"/home/me" not in text and b"/drive" not in text and b"10.0.0.1" not in text


def test_the_best_network_is_shared_once_the_ladder_has_rated_the_last_one(run, tmp_path):
    players = [{"name": "iteration 0", "snapshot": 0}, {"name": "random", "snapshot": None}]
    ratings = Path(run) / RATINGS_FILE
    try:
        both = [*players, {"name": "iteration 5", "snapshot": 5}]
        for rated, interrupted, best in ((players, False, 5), (both, True, 5), (both, False, 0)):
            kept = {"best": 0, "interrupted": interrupted, "players": rated}
            ratings.write_bytes(encode_object(kept))
            assert share(run, tmp_path / f"{best}{interrupted}.net")["iteration"] == best
        ratings.write_bytes(b"torn")
        assert share(run, tmp_path / "torn.net")["iteration"] == 5
    finally:
        ratings.unlink()


def test_the_card_says_how_strong_the_network_is(tmp_path):
    with RunFolder.create_or_open(tmp_path / "run", SETTINGS) as folder:
        weights = to_arrays(build_network(CONFIG, "cpu"))
        metadata = {"game": "chess", "network": CONFIG.to_dict(), "config": SETTINGS}
        for iteration in (1, 2):
            folder.save_snapshot(iteration, weights, metadata)
            point = make_strength(iteration, 0.1 * iteration)
            folder.append_report(asdict(make_report(iteration, strength=(point,))))
    for iteration, share_solved in ((1, "10 %"), (2, "20 %")):
        card = share(tmp_path / "run", tmp_path / f"{iteration}.net", iteration)
        assert card["figures"]["strength"] == {"puzzles, by policy": f"{share_solved} of 300"}


def test_the_command_line_shares_an_older_network(run, tmp_path, capsys):
    target = tmp_path / "old.net"
    assert main(["share", run, str(target), "--snapshot", "0"]) == 0
    assert (
        "iteration: 0" in capsys.readouterr().out
        and load_network(str(target), device="cpu")[1] == 0
    )


def test_a_folder_for_a_hub_has_weights_settings_and_a_page_that_says_how_to_load_them(
    run, file, tmp_path, capsys
):
    for source, name in ((run, "mine"), (file, "again")):
        assert main(["share", source, str(tmp_path / name), "--card"]) == 0
        folder = tmp_path / name
        assert sorted(os.listdir(folder)) == ["README.md", "config.json", "model.safetensors"]
        assert load_network(str(folder / "model.safetensors"), device="cpu")[1] == 5
        assert json.loads((folder / "config.json").read_text()) == {"game": "chess", "seed": 3}
        page = (folder / "README.md").read_text()
        assert page.startswith("---\n") and f"# {name}\n" in page
        assert "- iteration: 5" in page and "- total_positions: 1234" in page
        assert "- seconds: 60.03\n" in page
        assert 'load_network("model.safetensors")' in page and "{" not in page
        assert str(tmp_path) not in page and "/home/me" not in page
    assert main(["share", run, str(tmp_path / "mine"), "--card"]) == 2
    assert "exists: nothing was written" in capsys.readouterr().err


def test_the_best_network_has_a_page_where_the_last_one_is_damaged(run, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    rated = [{"snapshot": 0}, {"snapshot": 5}]
    ratings = {"best": 0, "interrupted": False, "players": rated}
    (copy / RATINGS_FILE).write_bytes(encode_object(ratings))
    find_snapshot(str(copy), 5)[1].write_bytes(b"torn")
    assert main(["share", str(copy), str(tmp_path / "best"), "--card"]) == 0
    assert "- iteration: 0" in (tmp_path / "best" / "README.md").read_text()


def test_a_strangers_card_does_not_name_the_game_of_a_page(file, tmp_path):
    rewritten(file, card={"game": "tictactoe\n# mine"})
    assert main(["share", str(file), str(tmp_path / "hub"), "--card"]) == 0
    page = (tmp_path / "hub" / "README.md").read_text()
    assert "chess" in page and "# mine" not in page


@pytest.mark.parametrize(
    "activation, kind", [("spikes", "spiking"), ("relu", "relu"), ("clipped", "clipped")]
)
def test_the_page_of_a_hub_says_what_kind_of_network_it_is(tmp_path, activation, kind):
    network = build_network(replace(CONFIG, activation=activation), "cpu")
    with RunFolder.create_or_open(tmp_path / "run", {**SETTINGS, "activation": activation}) as run:
        described = {"network": network.config.to_dict(), "config": {"activation": {}}}
        run.save_snapshot(0, to_arrays(network), {"game": "chess", **described})
    assert main(["share", str(tmp_path / "run"), str(tmp_path / "hub"), "--card"]) == 0
    page = (tmp_path / "hub" / "README.md").read_text()
    assert f"\n- {kind}-neural-network\n" in page and f"\nA {kind} neural network that" in page


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["RUN", "FILE", "--snapshot", "4"], "has no snapshot 4: expected one of 0, 5"),
        (["NOTHING", "FILE"], "there is no run"),
        (["RUN", "RUN"], "exists: nothing was written"),
        (["EMPTY", "FILE"], "has no snapshot of its weights yet"),
        (["RUN", "TAKEN"], "exists: nothing was written"),
        (["RUN", "NOTHING/deep/file"], "cannot save checkpoint"),
        (["RUN", "NOTHING/deep/page.html"], "cannot write the page"),
        (["RUN", "TAKEN/folder", "--card"], "cannot write "),
        (["TILES", "PAGE"], "game='2048': expected one of chess, gomoku, tictactoe"),
    ],
)
def test_what_cannot_be_shared_is_a_sentence(run, tmp_path, capsys, arguments, words):
    (tmp_path / "taken").write_text("precious")
    RunFolder.create_or_open(tmp_path / "empty", {}).close()
    places = {
        "RUN": run,
        "FILE": str(tmp_path / "new"),
        "TAKEN": str(tmp_path / "taken"),
        "EMPTY": str(tmp_path / "empty"),
        "NOTHING": str(tmp_path / "no"),
        "TILES": make_run(tmp_path / "tiles", (1,), "2048"),
        "PAGE": str(tmp_path / "new.html"),
    }
    arguments = [
        places.get(
            word, word.replace("NOTHING", places["NOTHING"]).replace("TAKEN", places["TAKEN"])
        )
        for word in arguments
    ]
    assert main(["share", *arguments]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1
    assert (tmp_path / "taken").read_text() == "precious" and not (tmp_path / "new").exists()


def rewritten(file, **metadata):
    """The same file with other metadata, sealed again."""
    saved = load_checkpoint(file)
    save_checkpoint(file, saved.groups, {**saved.metadata, **metadata})


@pytest.mark.parametrize("entry", ["iteration", "game"])
@pytest.mark.parametrize("value", [None, -1, "go", "tictactoe", "x" * 5000, 1.5, True, ["chess"]])
def test_another_game_or_iteration_is_refused(file, entry, value):
    rewritten(file, **{entry: value})
    for name in ("load", "player", "evaluate", "uci"):
        with pytest.raises(ChessnnError) as caught:
            file_loaders(file)[name]()
            pytest.fail(name)
        assert len(str(caught.value)) < 1500


def test_a_network_for_another_board_is_refused(file):
    weights = to_arrays(build_network(TICTACTOE, "cpu"))
    save_checkpoint(
        file,
        {"weights": weights},
        {"game": "chess", "iteration": 1, "network": TICTACTOE.to_dict()},
    )
    with pytest.raises(CheckpointError, match="does not fit the board and the actions of chess"):
        load_network(file, device="cpu")
    save_checkpoint(
        file,
        {"weights": weights},
        {"game": "tictactoe", "iteration": 1, "network": TICTACTOE.to_dict()},
    )
    assert load_network(file, device="cpu")[0].config == TICTACTOE


@pytest.mark.parametrize(
    "card", [None, [], "text", 5, {"a": "\x1b[2J\n" * 999, "b\n": {"deep": [1] * 999}}]
)
def test_a_strange_card_is_only_short_printable_text(file, card):
    rewritten(file, card=card)
    for line in card_lines(card_of(file)):
        assert line.isprintable() and len(line) <= 160
    assert load_network(file, device="cpu")[1] == 5
