"""The page for friends in a real browser, from a file, with the network off: its rules and its network are Python's."""

import random
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from chessnn_colab.__main__ import main
from chessnn_colab.actor import Actor
from chessnn_colab.games.registry import make_game
from chessnn_colab.network import actor_copy
from chessnn_colab.runs.networks import load_network, shipped_files
from chessnn_colab.runs.shared import share
from chessnn_colab.search import SearchConfig
from chessnn_colab.views.drawings import make_drawing

from .browser import needs_browser
from .sample_reports import make_report
from .small_run import CONFIG, TICTACTOE, make_run, write_reports

pytestmark = [needs_browser, pytest.mark.timeout(600)]

ROOT = Path(__file__).parent.parent
SHIPPED = str(shipped_files()[-1])
GOMOKU = replace(CONFIG, planes=5, height=6, width=6, actions=36, channels=16, steps=2, levels=3)
HARD_RESET = replace(TICTACTOE, steps=3, levels=1, reset="hard")
# What random games seldom have. Chess: en passant, an underpromotion and castling; a stalemate; a
# check with a square behind the king, and a third repetition. Gomoku: six in a row, then five.
GAMES = {
    "chess": (
        "1. e4 a6 2. e5 d5 3. exd6 Nf6 4. dxc7 g6 5. cxb8=N Bg7 6. Nf3 O-O 7. Be2 Rxb8 8. O-O",
        "1. e3 a5 2. Qh5 Ra6 3. Qxa5 h5 4. h4 Rah6 5. Qxc7 f6 6. Qxd7+ Kf7 7. Qxb7 Qd3 8. Qxb8 Qh7 9. Qxc8 Kg6 10. Qe6",
        "1. e4 e5 2. f4 exf4 3. Ke2 Qe7 4. Kd3 Qe6 5. Kd4 Qxe4+ 6. Kxe4 Nf6+ 7. Kd3 Nd5 8. Kc4 Nf6 9. Kd3 Nd5 "
        "10. Kc4 Nf6 11. Kd3",
    ),
    "gomoku:6:exact": ("a1 a2 b1 b2 c1 c2 e1 e2 f1 f3 d1 d2",),
}

# What the page finds in each position of a game; every fourth one is searched too.
PLAY_THROUGH = """actions => {
  const data = JSON.parse(find('#data').textContent), game = makeGame(data);
  const network = new Network(data.network, readWeights(data, find('#weights').textContent));
  return [null, ...actions].map((action, ply) => {
    if (action !== null) game.push(action);
    const rules = [game.over ? game.ending() : '', game.squares(), game.moves.map(move => [move.path, move.action]),
      [...new Set(game.alarms())], [...game.observe()]];
    if (game.over) return [...rules, null];
    const opinion = opinionOf(game, network), noise = game.moves.map(() => 0);
    const searched = ply % 4 ? null : choose(game, network, opinion, noise, true, data.game.discount);
    return [...rules, [game.moves.map(move => move.action), opinion.logits, opinion.wdl, searched]];
  });
}"""
# After these actions, a game against somebody who always plays the first legal move.
PLAIN_OPPONENT = """actions => {
  find('.squares').replaceChildren();
  const data = JSON.parse(find('#data').textContent);
  const match = new Match(data, async ({play}) => play ? {action: match.game.moves[0].action} : {});
  for (const action of actions) {
    match.texts.push(match.game.textOf(action));
    match.game.push(action);
  }
  match.go();
}"""


@torch.no_grad()
def compare(tab, run: str, drawing, actions: list[int]) -> list[tuple[bool, bool, bool]]:
    """Hold the page's rules equal to Python's in every position of a game. Returns for each of them
    whether the network's numbers, its likeliest move and the searched move are the same.
    """
    game = drawing.game
    search = SearchConfig(search="two-rung", candidates=8, survivors=4, solve="all")
    actor = Actor(game, actor_copy(load_network(run, device="cpu")[0]), search)
    drawing.reset()
    same = []
    for found, played in zip(tab.evaluate(PLAY_THROUGH, actions), [None, *actions]):
        if played is not None:
            drawing.push(played)
        ending, squares, clicks, alarms, planes, opinion = found
        state = drawing.state()
        assert (ending, squares) == (drawing.ending(), drawing.squares())
        clicks = [(tuple(path), action) for path, action in clicks]
        assert sorted(clicks) == sorted(drawing.clicks()), drawing.text()
        assert sorted(alarms) == sorted(drawing.alarms())
        assert planes == game.observe(state).flatten().tolist(), drawing.text()
        if opinion is None:
            continue
        numbers, theirs, wdl, searched = opinion
        output = actor.network(game.observe(state))
        ours = output.prior_logits[0, numbers].numpy()
        told = output.value_logits[0].softmax(0).numpy()
        close = max(np.abs(ours - theirs).max(), np.abs(told - wdl).max()) < 0.001
        agrees = True
        if searched is not None:
            policy = actor.act(state, torch.Generator(), gumbel_scale=0.0)
            agrees = int(policy.action) == searched
        same.append((close, np.argmax(ours) == np.argmax(theirs), agrees))
    return same


@pytest.fixture
def show(browser, tmp_path):
    """A function that opens the page of a run from a file, with the network off. What the page
    complains of fails the test.
    """
    complaints = []

    def open_page(run: str, spoil=lambda page: page, **options):
        path = tmp_path / "page.html"
        assert main(["share", run, str(path)]) == 0
        path.write_text(spoil(path.read_text(encoding="utf-8")), encoding="utf-8")
        tab = browser.new_context(offline=True, **options).new_page()
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("console", lambda message: complaints.append(message.text))
        tab.goto(path.as_uri())
        return tab

    yield open_page
    assert not complaints


def says(tab) -> str:
    """What the page says once the network has answered."""
    tab.wait_for_function("() => !find('.says').textContent.includes('thinking')")
    return tab.inner_text(".says")


def random_game(drawing, seed: int) -> list[int]:
    """The actions of a whole game between two random movers."""
    chance = random.Random(seed)
    drawing.reset()
    while moves := drawing.clicks():
        drawing.push(chance.choice(moves)[1])
    return drawing.actions


@pytest.mark.parametrize(
    "name, config", [("tictactoe", HARD_RESET), ("gomoku:6:exact", GOMOKU), ("chess", None)]
)
def test_the_page_plays_and_thinks_as_python_does(show, tmp_path, name, config):
    run = make_run(tmp_path / "run", (1,), name, config) if config else SHIPPED
    tab = show(run)
    drawing = make_drawing(make_game(name))
    games = [random_game(drawing, 0)[:40]]
    for text in GAMES.get(name, ()):
        drawing.load(text)
        games.append(drawing.actions)
    same = [found for actions in games for found in compare(tab, run, drawing, actions)]
    assert np.mean(same, 0).min() > 0.98


def test_a_whole_game_by_keys(show, tmp_path):
    shared = str(tmp_path / "mine.safetensors")
    share(make_run(tmp_path / "run", (1,), "tictactoe", TICTACTOE), shared)
    tab = show(shared, viewport={"width": 340, "height": 700})
    tab.select_option("#mine", label="O")
    while "Your move" in says(tab):
        played = tab.inner_text("#moves")
        tab.keyboard.type(
            next(name for name in "b2 a1 c3 a3 c1 a2 c2 b1 b3".split() if name not in played)
        )
        tab.keyboard.press("Enter")
    ended = says(tab)
    drawing = make_drawing(make_game("tictactoe"))
    for name in re.findall("[abc][123]", tab.inner_text("#moves")):
        drawing.push(drawing.parse(name))
    won = {"X": "The network won. ", "O": "You won! "}
    whose = next(
        (words for player, words in won.items() if f"{player} won" in drawing.ending()), ""
    )
    assert whose and ended == whose + drawing.ending()
    tab.select_option("#mine", label="X")  # for the next game
    assert says(tab) == ended
    tab.select_option("#mine", label="O")
    tab.get_by_role("button", name="Take back").click()
    assert "Your move: you play O." in says(tab)
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    tab.get_by_text("About this network").click()
    assert "“mine”" in tab.inner_text("#card")


def test_weights_in_16_bits_are_read_as_numpy_does(show):
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    finite = halves[np.isfinite(halves)]
    read = show(SHIPPED).evaluate("bits => bits.map(fromHalf)", finite.view(np.uint16).tolist())
    assert read == finite.tolist()


@pytest.mark.parametrize("activation", ["spikes", "relu"])
def test_a_network_without_spikes_is_not_said_to_have_any(show, tmp_path, activation):
    config = replace(TICTACTOE, activation=activation)
    run = make_run(tmp_path / "run", (1,), "tictactoe", config)
    write_reports(run, [make_report(1, seconds=75.0, total_games=800)], {"game": "tictactoe"})
    tab = show(run)
    assert says(tab)
    tab.get_by_text("About this network").click()
    assert "800 games in 75 seconds of training" in tab.inner_text("#card")
    assert ("spik" in tab.inner_text("body").lower()) is (activation == "spikes")


def test_a_promotion_a_wrong_move_and_the_way_back(show):
    tab = show(SHIPPED)
    drawing = make_drawing(make_game("chess"))
    drawing.load("1. e4 a6 2. e5 d5 3. exd6 Nf6 4. dxc7 g6")
    # The page's own match draws the board once more, when its network has answered.
    tab.locator("#chances .bar span").first.wait_for()
    tab.evaluate(PLAIN_OPPONENT, drawing.actions)
    tab.keyboard.type("Ke3")
    tab.keyboard.press("Enter")
    assert "“Ke3” is not a legal move here" in says(tab)
    tab.get_by_role("button", name="Flip the board").click()
    tab.get_by_role("button", name="c7, white pawn").focus()
    for key in ("Enter", "ArrowDown", "ArrowRight", "Enter"):  # to b8, seen from Black's side
        tab.keyboard.press(key)
    assert says(tab) == "What does the pawn become?"
    tab.get_by_role("button", name="Knight", exact=True).click()
    assert "It played" in says(tab) and "cxb8=N" in tab.inner_text("#moves")
    tab.get_by_role("button", name="Take back").click()
    tab.get_by_role("button", name="c7, white pawn").click()
    tab.get_by_role("button", name="a8, black rook").click()
    assert says(tab) == "No move of yours starts at a8."


@pytest.mark.parametrize(
    "spoil, words",
    [
        (lambda page: page[: page.index('id="weights"') + 5000], "its network has"),
        (lambda page: page[:-1000] + page[-1000:].swapcase(), "checksum"),
        (lambda page: page[: page.index('"crc"')], "not received whole"),
    ],
)
def test_a_damaged_page_says_so(show, spoil, words):
    tab = show(SHIPPED, spoil)
    tab.get_by_text(re.compile(f"damaged.*{words}")).wait_for()


def test_a_browser_that_runs_no_worker_says_so_to_every_question(show):
    answers = show(SHIPPED).evaluate(
        """async () => {
          window.Worker = class {
            constructor() { setTimeout(() => this.onerror({message: "blocked"})); }
            postMessage() {}
          };
          const ask = startWorker({}, "");
          return [await ask({}), await ask({})];
        }"""
    )
    assert answers == [{"error": "This browser cannot run the network: blocked."}] * 2


def test_what_went_wrong_stays_when_somebody_clicks(show):
    tab = show(SHIPPED)
    tab.locator("#chances .bar span").first.wait_for()
    tab.evaluate(
        """() => {
          find('.squares').replaceChildren();
          const data = JSON.parse(find('#data').textContent);
          new Match(data, async ({play}) => play ? {error: 'It broke.'} : {});
        }"""
    )
    for name in ("^e2", "^e4"):
        tab.get_by_role("button", name=re.compile(name)).click()
    tab.get_by_text("It broke.").wait_for()
    tab.get_by_role("button", name=re.compile("^e4")).click()
    assert says(tab) == "It broke." and tab.locator(".says.fault").count() == 1


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not here")
def test_the_rules_of_chess_are_those_of_npm(tmp_path):
    done = subprocess.run([sys.executable, ROOT / "tools" / "make_page.py", tmp_path])
    if done.returncode:
        pytest.skip("npm could not fetch chess.js")
    for path in (ROOT / "chessnn_colab" / "views" / "page" / "vendor").iterdir():
        assert path.read_bytes() == (tmp_path / path.name).read_bytes()
