"""The four networks that come with the package: small, from untrained to last, and the tool that
makes them.
"""

import json
import os
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from chessnn_colab.arena.evaluate import evaluate_run
from chessnn_colab.arena.players import NetworkPlayer, play_search
from chessnn_colab.arena.registry import match_game
from chessnn_colab.config import TrainConfig
from chessnn_colab.network import build_network
from chessnn_colab.network_config import NetworkConfig
from chessnn_colab.runs.checkpoint import load_checkpoint
from chessnn_colab.runs.folder import RunFolder
from chessnn_colab.runs.networks import shipped_cards, shipped_files, shipped_networks
from chessnn_colab.spikes import estimate_energy, firing_rates
from chessnn_colab.views.inside.sample import sample_positions

from .sample_reports import make_report
from .small_run import make_run, write_reports

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))
import make_snapshots
import spike_price
import strength

ROOT = Path(__file__).parent.parent


def test_four_files_in_order_and_two_more_that_are_small_together():
    files = shipped_files()
    all_six = [*files, *make_snapshots.OTHERS.values()]
    assert len(files) == 4
    assert sum(file.stat().st_size for file in all_six) < make_snapshots.MOST_BYTES
    iterations = list(shipped_cards())
    assert iterations[0] == 0 and iterations == sorted(set(iterations)) == list(shipped_networks())
    for file in files:
        weights = load_checkpoint(file, "chess").groups["weights"]
        assert {array.dtype for name, array in weights.items() if array.ndim > 1} == {
            np.dtype(np.float16)
        }
        assert weights["stem.norm.running_var"].dtype == np.float32


def test_the_cards_tell_the_command_the_machine_and_how_far_it_came():
    cards = list(shipped_cards().values())
    for card in cards:
        assert card["command"].startswith("python -m chessnn_colab train --") and card["machine"]
        assert 0 <= card["puzzles solved by the policy alone"]["hanging-piece"] <= 1
    positions = [card["figures"]["total_positions"] for card in cards[1:]]
    assert positions == sorted(positions) and cards[-1]["figures"]["firing_rates"]
    solved = [card["puzzles solved by the policy alone"]["hanging-piece"] for card in cards]
    assert solved[-1] > solved[0] + 0.2


def test_they_are_networks_of_todays_shape_in_float32_that_play():
    networks = shipped_networks()
    game = match_game("chess")
    for network in networks.values():
        assert (
            network.config == TrainConfig(preset="cpu").network_config(game)
            and not network.training
        )
        assert {parameter.dtype for parameter in network.parameters()} == {torch.float32}
        action = NetworkPlayer(game, network, play_search("policy")).choose(
            game.init(1), torch.Generator()
        )
        assert game.legal_action_mask(game.init(1))[0, int(action)]


def test_the_untrained_one_has_silent_layers_and_the_last_one_has_none():
    game = match_game("chess")
    planes = game.observe(game.starts(64, "random-plies", torch.Generator().manual_seed(0)))
    first, *_, last = (firing_rates(network, planes) for network in shipped_networks().values())
    assert sum(rate == 0 for rate in first.values()) == 3 and max(first.values()) < 0.02
    assert min(last.values()) > 0.02


def test_the_first_is_what_an_untrained_network_is():
    ours, new = shipped_networks()[0], build_network(NetworkConfig(), "cpu", seed=0)
    torch.testing.assert_close(ours.stem.conv.weight, new.stem.conv.weight, atol=2e-3, rtol=2e-3)


def test_the_docs_say_the_verdict_that_the_notebook_shows():
    """After new snapshots: tools/make_snapshots.py prints the verdict, and docs/spiking.md has to
    repeat it.
    """
    verdict = estimate_energy(list(shipped_networks().values())[-1], sample_positions(500)).verdict
    docs = (ROOT / "docs/spiking.md").read_text(encoding="utf-8")
    assert verdict in " ".join(docs.split())


def test_the_page_quotes_what_a_price_for_spikes_costs():
    rows = json.loads((ROOT / "docs/spike_price.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs/spiking.md").read_text(encoding="utf-8")
    lines = [line for line in spike_price.table(rows).splitlines() if line.startswith("| ")]
    assert len(lines) == 7 and not [line for line in lines if line not in page]


def test_the_pages_quote_the_files_of_what_was_measured():
    files = ("strength.json", "strongest.json")
    both = [json.loads((ROOT / "docs" / file).read_text(encoding="utf-8")) for file in files]
    page = (ROOT / "docs/strength.md").read_text(encoding="utf-8")
    for found in both:
        assert not [line for line in strength.table(found) if line not in page]
    cards = list(shipped_cards().values())
    assert both[0]["total_positions"] == cards[-1]["figures"]["total_positions"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = [
        line.strip("| ").split(" | ")
        for line in readme.splitlines()
        if re.search(r"\| \d+ / \d+ / \d+ \|", line)
    ]
    assert len(rows) >= 4 and rows[0][0].startswith("Maia 1100"), "the first a person understands"
    solved = both[0]["puzzles"]["with 48 evaluations and proofs"]
    assert list(solved) == ["mate-in-one", "mate-in-two", "hanging-piece"]
    one, two, hanging = (f"{100 * share:.0f} %" for share in solved.values())
    said = f"finds {hanging} of the hanging pieces, {one} of the mates in one and {two} of the"
    assert said in " ".join(readme.split())
    for who, *cells in rows:
        for found, counts, score in zip(both, cells[::2], cells[1::2], strict=True):
            (match, *_) = [
                match
                for match in found["matches"]
                if match["opponent"] in (who, who.partition(",")[0])
            ]
            assert counts == f"{match['wins']} / {match['draws']} / {match['losses']}"
            assert score == f"{match['score']:.2f}"


def test_everything_that_the_page_quotes_is_planned_the_programs_first(tmp_path):
    run = make_run(tmp_path / "run", (0, 1))
    options = strength.parse([run, "--full", "--maia", "maia", "--stockfish", sys.executable])
    plan = list(strength.planned(options))
    assert [match.rating for match in plan[:3]] == [1100, 1500, 1900]
    assert ["Level=0" in match.opponent for match in plan[3:7]] == [True, False, False, False]
    assert [match.opponent for match in plan[7:]] == ["random", "greedy", "minimax", "minimax"]
    assert [match.search.solve for match in plan[-2:]] == ["all", "off"]
    found = json.loads((ROOT / "docs/strength.json").read_text(encoding="utf-8"))
    assert [match["games"] for match in found["matches"]] == [match.games for match in plan]


def test_a_maia_engine_is_told_its_rating_and_named_by_it(tmp_path, monkeypatch):
    """The engine made for tests plays, where `MAIA` says so."""
    engine = tmp_path / "engine"
    fake = Path(__file__).parent / "engines" / "fake_uci.py"
    engine.write_text(f'#!/bin/sh\n[ "$MAIA" = 1100 ] && exec "{sys.executable}" "{fake}"\n')
    engine.chmod(0o755)
    run = Path(write_reports(make_run(tmp_path / "run", (0, 1)), [make_report(1)]))
    monkeypatch.setattr(strength, "RATINGS", (1100,))
    monkeypatch.setattr(strength, "ALL_GAMES", {})
    monkeypatch.setattr(strength, "yardstick", lambda name: "")
    monkeypatch.setattr(strength, "play_search", lambda: play_search("policy"))
    monkeypatch.setattr(strength, "puzzles", lambda run: {})
    options = strength.parse([str(run), "--full", "--share", "0.02", "--maia", str(engine)])
    options.stockfish = ""
    (match,) = next(strength.measured(options))["matches"]  # after each match, not at the end
    assert match["opponent"] == "Maia 1100" and match["games"] == 2


@pytest.mark.skipif("CHESSNN_MAIA" not in os.environ, reason="CHESSNN_MAIA names no engine of Maia")
def test_a_match_against_maia(tmp_path):
    run = make_run(tmp_path / "run", (0,))
    with strength.maia_rating(1100):
        opponent = f"engine:{os.environ['CHESSNN_MAIA']}?nodes=1"
        (result,) = evaluate_run(run, [opponent], 4, play_search("policy"), device="cpu")
    assert result.losses >= 3, "an untrained network loses to it"


def run_with(tmp_path, positions):
    folder = make_run(tmp_path / "run", tuple(range(len(positions) + 1)))
    with RunFolder.create_or_open(folder, {}) as run:
        for iteration, total in enumerate(positions, 1):
            run.append_report({"iteration": iteration, "total_positions": total})
    return folder


def test_moments_are_by_positions_played(tmp_path):
    run = run_with(tmp_path, [100, 800, 2000, 3500, 7000, 10_000])
    assert make_snapshots.moments(run) == [0, 2, 4, 6]


def test_too_few_snapshots_are_a_sentence_and_leave_the_files(tmp_path, monkeypatch, capsys):
    run = run_with(tmp_path, [100, 800])
    kept = shutil.copytree(make_snapshots.SHIPPED, tmp_path / "data")
    monkeypatch.setattr(make_snapshots, "SHIPPED", kept)
    monkeypatch.setattr(sys, "argv", ["make_snapshots", run])
    assert (
        make_snapshots.main() == 2
        and "has 3 snapshots with a report: expected 4 or more" in capsys.readouterr().err
    )
    assert len(list(kept.glob("*.safetensors"))) == 6


def test_one_command_remakes_them(tmp_path):
    run = run_with(tmp_path, [100, 800, 2000, 3500])
    make_snapshots.make(run, tmp_path / "data", "this one")
    files = sorted((tmp_path / "data").iterdir())
    assert [file.name for file in files] == [f"{number:06d}.safetensors" for number in (0, 1, 2, 4)]
    assert load_checkpoint(files[1]).metadata["card"]["machine"] == "this one"
