"""What a run has come to, what to expect of one, and the runs on the disk."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from chessnn_colab.config import TrainConfig
from chessnn_colab.errors import RunError
from chessnn_colab.games.registry import make_game
from chessnn_colab.runs.folder import RunFolder
from chessnn_colab.runs.lock import LOCK_FILE
from chessnn_colab.runs.networks import load_network, run_game
from chessnn_colab.runs.run_list import chosen_run, delete_run, list_runs
from chessnn_colab.spikes import estimate_energy
from chessnn_colab.training import train
from chessnn_colab.views import reference
from chessnn_colab.views.card import best_moment, energy_positions, result_card
from chessnn_colab.views.expect import what_to_expect
from chessnn_colab.views.story import network_words, run_story
from tests.sample_reports import MATE, make_report, make_strength
from tests.small_run import tiny, write_reports

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))
import reference_curve

CONFIG = {"game": "chess", "preset": "cpu", "search": "two-rung", "minutes": 20.0}
REPORTS = [
    make_report(1, strength=(make_strength(0), make_strength(1, 0.15)), total_updates=40),
    make_report(2, seconds=400.0, strength=(make_strength(2, 0.31),), total_updates=80, draws=380),
]


@pytest.fixture
def run(tmp_path) -> Path:
    return write_reports(tmp_path / "first", REPORTS, CONFIG)


def test_a_story_says_what_was_trained_how_long_and_what_came_of_it(run):
    told = run_story(run)
    assert str(told).splitlines() == [
        "It taught itself chess in 6m 40s: 2,400 games against itself, no teacher",
        "300 puzzles, by policy: 9 % before training, 31 % after 2m 00s (95 % interval 29 to 33 %)",
    ]
    page = told._repr_html_()
    assert (
        "A spiking network of 3 blocks with 32 channels" in page
        and "games that ended by checkmate" in page
    )
    assert (
        page.count("data:image/png") == 4
        and "data:image/svg+xml" in page
        and "A game of iteration 2" in page
    )
    assert "<script" not in page and "<style" not in page


def test_a_story_without_an_iteration_says_so_and_a_card_raises(tmp_path):
    RunFolder.create_or_open(tmp_path / "new", CONFIG).close()
    told = run_story(tmp_path / "new")
    assert "no iteration has finished yet" in str(told)
    assert "no iteration has finished yet" in told._repr_html_()
    with pytest.raises(RunError, match="one finished iteration"):
        result_card(tmp_path / "new")
    with pytest.raises(RunError, match="no run"):
        run_story(tmp_path / "nowhere")


def test_the_curve_of_a_normal_run_is_made_by_a_command_and_shown_to_runs_like_it(
    run, tmp_path, monkeypatch
):
    target = tmp_path / "data" / "reference.json"
    for machine in ("a test", "another test"):
        assert reference_curve.main(str(run), machine, str(target)) == 0
    (entry,) = json.loads(target.read_text())["runs"]
    assert entry["machine"] == "another test" and entry["bytes"] > 1000
    assert entry["command"] == "python -m chessnn_colab train --minutes 20"
    assert entry["curves"] == {"puzzles, by policy": [[0.0, 0.09], [1.0, 0.15], [2.0, 0.31]]}
    other = {**CONFIG, "preset": "t4", "minutes": None}
    usual = reference_curve.curve_of(str(write_reports(tmp_path / "t4", REPORTS, other)), "a test")
    assert usual["command"] == "python -m chessnn_colab train --preset t4 --minutes 20"
    monkeypatch.setattr(reference, "REFERENCE", target)
    assert reference.reference_for(CONFIG) == entry
    assert reference.reference_for({**CONFIG, "preset": "t4"}) is None
    config = TrainConfig(run=str(tmp_path / "new"), preset="cpu", device="cpu", minutes=2.0)
    expected = what_to_expect(config)
    assert "A normal run from its beginning, on another test" in expected
    assert "puzzles, by policy: 9 % untrained, 15 % after 1 min, 31 % after 2 min" in expected
    assert "There is no curve" not in expected
    assert "There is no curve" in what_to_expect(replace(config, preset="t4"))
    entry["curves"] = {"games": [[1.5, 0.5], [9.0, 0.625]], "late": [[6.0, 0.5]]}
    target.write_text(json.dumps({"runs": [entry]}))
    words = "games: 50 % after 1.5 min, 51 % after 2 min\n  late: first played after 6 min"
    assert words in what_to_expect(config)


def test_a_run_without_measurements_has_no_curve(tmp_path):
    plain = write_reports(tmp_path / "plain", [make_report(1)], CONFIG)
    with pytest.raises(RunError, match="has no curve"):
        reference_curve.curve_of(str(plain), "a test")


def test_runs_are_listed_with_their_sizes_the_newest_first(run):
    (run.parent / "broken").mkdir()
    (run.parent / "broken" / "config.json").write_text("{")
    shelf = list_runs(run.parent)
    assert {entry.path.name: (entry.game, entry.iterations) for entry in shelf} == {
        "first": ("chess", 2),
        "broken": ("?", 0),
    }
    assert "2 iterations in 6m 40s" in str(shelf) and str(shelf).endswith("in all")
    assert list_runs(run.parent / "nowhere") == [] and "no run here" in str(
        list_runs(run.parent / "nowhere")
    )


def test_a_form_names_a_run_by_its_folder_or_by_its_game(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    root = Path("/content")
    assert (
        chosen_run(root, "auto", "gomoku:9")
        == chosen_run(root, " ", "gomoku:9")
        == root / "runs" / "gomoku-9"
    )
    assert chosen_run(root, " runs/mine ", "chess") == root / "runs" / "mine"
    assert chosen_run(root, "~/mine", "chess") == Path("/home/me/mine")


def test_deleting_a_run_frees_its_bytes_and_leaves_what_is_not_its_own(run):
    (run / "notes.txt").write_text("mine")
    (run / "play.html").write_text("a page for friends")
    size = sum(path.stat().st_size for path in run.rglob("*") if path.is_file())
    assert delete_run(run) == size - 4
    assert [path.name for path in run.iterdir()] == ["notes.txt"]
    with pytest.raises(RunError, match="no config.json, and nothing was deleted"):
        delete_run(run)
    (run / "config.json").touch()
    (run / LOCK_FILE).mkdir()
    with pytest.raises(RunError, match=f"cannot delete all of {run}"):
        delete_run(run)
    other = run.parent / "other"
    RunFolder.create_or_open(other, CONFIG).close()
    delete_run(other)
    assert not other.exists(), "an empty folder goes with its run"


def joules_of(run: Path) -> dict[str, float]:
    """Design -> microjoules of arithmetic in one evaluation of the run's last network."""
    network, _ = load_network(run, device="cpu")
    game = make_game(run_game(run))
    energy = estimate_energy(network, game.observe(energy_positions(game)))
    return {design.name: design.arithmetic_nanojoules / 1000 for design in energy.designs}


@pytest.mark.parametrize(
    "settings, words",
    [
        ({}, "A spiking network of 3 blocks with 32 channels, 1 time step of at most 8 spikes; "),
        (
            {"preset": "t4", "blocks": 2, "steps": 4, "levels": 1, "reset": "hard"},
            "A spiking network of 2 blocks with 64 channels, 4 time steps of at most 1 spike, "
            "with a hard reset; ",
        ),
        ({"activation": "relu"}, "A twin without spikes (relu) of 3 blocks with 32 channels; "),
    ],
)
def test_the_shape_of_a_network_in_words(settings, words):
    assert network_words({**settings, "search": "tree"}) == words + "search: tree. "


@pytest.mark.parametrize("game, activation", [("chess", "spikes"), ("gomoku:6", "relu")])
def test_a_card_is_one_picture_of_a_run(game, activation, tmp_path):
    settings = {"game": game, "activation": activation, "iterations": 1}
    measured = game == "chess"  # the other's opponent takes long over its moves
    list(train(tiny(tmp_path / "run", measure_strength=measured, **settings)))
    figure = result_card(tmp_path / "run", tmp_path / "card.png")
    assert (tmp_path / "card.png").read_bytes().startswith(b"\x89PNG")
    strength, firing, energy, board = figure.axes
    assert strength.get_title("left") == "Is it getting stronger?"
    assert len(firing.lines) == (2 if activation == "spikes" else 0), "a twin has no spikes"
    joules = joules_of(tmp_path / "run")
    designs = list(joules)[0 if activation == "spikes" else 2 : 4]
    assert [label.get_text() for label in energy.get_yticklabels()] == designs
    widths = [bar.get_width() for bar in energy.patches]
    assert widths == pytest.approx([joules[name] for name in designs])
    title = board.get_title("left").replace("\n", " ")
    assert len(board.images) == 1 and "of training" in title
    with pytest.raises(RunError, match="cannot write the card"):
        result_card(tmp_path / "run", tmp_path / "nowhere" / "card.png")


def test_the_card_has_the_first_game_that_somebody_won():
    drawn = MATE.replace("1-0", "1/2-1/2").replace(" 4. Qxf7#", "")
    reports = [
        make_report(1, sample_game=drawn),
        make_report(2),
        make_report(3),
        make_report(4, sample_game=drawn),
        make_report(5, sample_game=""),
    ]
    assert best_moment(reports) == ("Its first checkmate", reports[1])
    assert best_moment(reports[3:]) == ("A game", reports[3])
    assert best_moment(reports[4:]) == ("A game", reports[4])
