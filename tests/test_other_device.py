"""The package on a second device, made in Python (see other_device): a ply, an update, a match, a
whole run. On a GPU each wait for the device costs what some hundred launches cost.
"""

import inspect

import pytest
import torch

from . import other_device

if not other_device.available():
    pytest.skip("this torch lets Python make no device", allow_module_level=True)

from chessnn_colab import config as settings
from chessnn_colab import devices
from chessnn_colab.actor import Actor
from chessnn_colab.arena import players
from chessnn_colab.arena.chess.greedy import GreedyPlayer
from chessnn_colab.arena.match import Match
from chessnn_colab.arena.players import GamesChance, NetworkPlayer, Player, RandomPlayer
from chessnn_colab.arena.progress import unwatched
from chessnn_colab.arena.puzzles import solved_puzzles
from chessnn_colab.arena.registry import arena_game
from chessnn_colab.arena.runner import MatchRunner
from chessnn_colab.device_probe import batch_of, probe, probe_network
from chessnn_colab.devices import WorkerPlan
from chessnn_colab.games.registry import make_game
from chessnn_colab.learner import Learner, LearnerConfig
from chessnn_colab.lockstep import Lockstep
from chessnn_colab.network import actor_copy
from chessnn_colab.search import SearchConfig
from chessnn_colab.training import train

from .small_run import tiny
from .test_device_operators import NOT_KERNELS, has_kernel, table

DEVICE = other_device.NAME
GAMES = ("chess", "gomoku:7", "2048", "tictactoe")
SEARCHES = ("two-rung", "tree", "policy")


@pytest.fixture(scope="module", autouse=True)
def device():
    with other_device.Factories():
        yield


@pytest.mark.parametrize(
    "read",
    [
        lambda numbers: numbers[numbers > 1],
        lambda numbers: numbers.nonzero(),
        lambda numbers: bool(numbers.any()),
        lambda numbers: numbers.tolist(),
        lambda numbers: numbers.cpu(),
    ],
)
def test_a_wait_is_seen(read):
    numbers = torch.arange(3, device=DEVICE)
    with other_device.recorded() as waits:
        read(numbers)
    assert waits.total() == 1


@pytest.mark.parametrize(
    "misuse",
    [
        lambda numbers: numbers + torch.ones(3),
        lambda numbers: numbers.double(),
        lambda numbers: numbers.numpy(),
    ],
)
def test_what_a_gpu_refuses_is_refused(misuse):
    with pytest.raises((RuntimeError, TypeError), match="device|CPU"):
        misuse(torch.arange(3, device=DEVICE))


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("name", GAMES)
def test_nothing_waits_in_a_ply_and_a_block_waits_once(name, search):
    game = make_game(name, device=DEVICE)
    network = actor_copy(probe_network(game), torch.float32)
    lockstep = Lockstep(Actor(game, network, SearchConfig(search=search, num_simulations=3)), 4, 0)
    with other_device.recorded() as waits:
        lockstep.play_ply()
    assert waits == {}
    with other_device.recorded() as waits:
        lockstep.play_block()
    assert waits.total() <= 2


@pytest.mark.parametrize(
    "precision, reads", [("float32", []), ("bfloat16", []), ("float16", ["a number"])]
)
def test_an_update_copies_its_batch_once_and_waits_for_nothing(precision, reads):
    """In float16 the host must know whether the gradients are finite. Norms wait for nothing."""
    here = make_game("chess", device="cpu")
    game = make_game("chess", device=DEVICE)
    batch = batch_of(here, here.init(8))
    learner = Learner(probe_network(game), game, LearnerConfig(precision=precision))
    learner.update(batch)
    with other_device.recorded() as waits:
        learner.update(batch)
    assert sorted(what for what, _ in waits.elements()) == [*reads, "copy from the host"]
    with other_device.recorded() as waits:
        learner.reestimate_norms([batch, batch])
    assert [what for what, _ in waits.elements()] == ["copy from the host"] * 2


@pytest.mark.parametrize("name", GAMES)
def test_rules_gradients_and_searches_are_the_cpus(name):
    probe(DEVICE, name)
    game = make_game(name, device=DEVICE)
    chance = torch.linspace(0, 0.9, 8, device=DEVICE)
    assert game.augment(game.pack(game.init(8)), chance)[0].device.type == DEVICE


@pytest.mark.parametrize("player", [RandomPlayer, GreedyPlayer])
def test_players_choose_there(player):
    game = make_game("chess", device=DEVICE)
    chosen = player(game).choose(game.init(3), torch.Generator())
    assert chosen.device.type == DEVICE and chosen.shape == (3,)


def test_a_network_there_plays_here():
    game = make_game("chess")
    player = NetworkPlayer(game, probe_network(game).to(DEVICE), SearchConfig(search="policy"))
    assert player.choose(game.init(2), torch.Generator()).device.type == "cpu"


@pytest.mark.parametrize("search", ["tree", "two-rung"])
@pytest.mark.parametrize("name", ["chess", "gomoku:7"])
def test_a_search_with_proofs_waits_for_nothing(name, search):
    game = make_game(name, device=DEVICE)
    config = SearchConfig(search=search, num_simulations=3, solve="all")
    actor = Actor(game, actor_copy(probe_network(game), torch.float32), config)
    state = game.init(4)
    noise = actor.draw(4, torch.Generator())
    with other_device.recorded() as waits, torch.no_grad():
        actor.search(state, noise)
    assert waits == {}


@pytest.mark.parametrize("name", ["chess", "gomoku:9", "2048"])
def test_matches_and_puzzles_are_the_cpus(name, monkeypatch):
    """Inference mode, which matches use, refuses the tensors of a device made in Python, and no
    generator can be on it.
    """
    choose = inspect.unwrap(NetworkPlayer.choose)
    monkeypatch.setattr(NetworkPlayer, "choose", torch.no_grad()(choose))
    made = other_device.GENERATOR.__new__
    monkeypatch.setattr(GamesChance, "__new__", lambda cls, device: made(cls))
    monkeypatch.setattr(players, "playing_dtype", lambda *_: torch.float32)
    search = SearchConfig(search="tree", num_simulations=3, solve="all")
    arena = arena_game(name)
    alone = name == "2048"
    puzzles = [] if alone else arena.require("puzzles")(make_game(name))[:4]
    seen = []
    for device in ("cpu", DEVICE):
        game = make_game(name, max_plies=6, device=device)
        player = NetworkPlayer(game, probe_network(game), search)
        player.actor.static = True
        opponent = None if alone else RandomPlayer(game)
        runner = MatchRunner(game, [Match(player, opponent, 4)], seed=0)
        runner.play(unwatched)
        games = runner.results.result(0).played
        seen.append(([each.actions for each in games], solved_puzzles(game, puzzles, player)))
    assert seen[0] == seen[1]
    assert len(seen[0][0]) == 4 and len(seen[0][1]) == len(puzzles)


def test_a_match_has_few_sizes_there(monkeypatch):
    """Each is recorded once as a CUDA graph: powers of two, where a CPU has multiples of eight."""
    made = other_device.GENERATOR.__new__
    monkeypatch.setattr(GamesChance, "__new__", lambda cls, device: made(cls))
    game = make_game("tictactoe", device=DEVICE)
    sizes = set()

    class First(Player):
        name, evaluations = "the first legal move", 1

        def choose(self, state, generator, boards=()):
            sizes.add(len(state.current_player))
            return game.legal_action_mask(state).to(torch.uint8).argmax(1)

    MatchRunner(game, [Match(First(), First(), 42)], seed=0).play(unwatched)
    assert sizes <= {8, 16, 32, 64} and max(sizes) == 64


def test_a_run_trains_and_resumes_there(tmp_path, monkeypatch):
    monkeypatch.setattr(devices, "present", lambda machine: [DEVICE, "cpu"])
    monkeypatch.setattr(settings, "plan_workers", lambda *_, **__: WorkerPlan((DEVICE,), 1))
    run = tmp_path / "run"
    for iteration in (1, 2):
        config = tiny(
            run, game="tictactoe", device=DEVICE, precision="auto", workers=1, iterations=1
        )
        assert [report.iteration for report in train(config)] == [iteration]


def test_every_operator_that_ran_is_there_on_cuda_and_mps():
    """After the tests above: what they called, looked up in torch's own table."""
    names = {name for name, _ in other_device.operators} - NOT_KERNELS
    assert len(names) > 100
    missing = [
        f"{name} on {device}"
        for name in sorted(names & set(table()))
        for device in ("CUDA", "MPS")
        if not has_kernel(name, device)
    ]
    assert missing == []
