"""The cost of a busy neighbour: the pace of each part beside one and two processes that never rest.

Idle and busy turns alternate in one run, and every ratio compares turns of one cycle, so that a
machine's slow hour touches both sides.
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..arena.parallel import play_match
from ..arena.players import NetworkPlayer
from ..clock import timed
from ..devices import inventory, plan_workers
from ..games.registry import make_game
from ..network import build_network
from .rules import positions_per_second
from .setting import Figures, Setting
from .workers import Learning, started_workers

CYCLES = 5
MATCH_GAMES = 32
MATCH_PLIES = 4
FIRST_GAMES_SECONDS = 2.0  # of play, from whose games the learner learns
SUFFIXES = {1: "", 2: "_two"}  # number of neighbours -> what its figures are called

Pace = Callable[[float], float]  # seconds to measure -> work per second


def bench_neighbour(setting: Setting) -> Figures:
    """The pace of rules, self-play on workers, learner and, in a game for two, a match: idle, and
    as ratios beside one and two neighbours.

    `NAME_ratio` is beside one, `NAME_ratio_two` beside two: medians over CYCLES cycles. A neighbour
    is a process that keeps one core busy.
    """
    plan = plan_workers(inventory(), setting.device)
    network = setting.network()
    with started_workers(setting, plan, network) as (_, play):
        learning = Learning(setting, plan, network, play(FIRST_GAMES_SECONDS).records)
        paces = {
            "rules": lambda seconds: positions_per_second(setting.game, seconds),
            "self_play": lambda seconds: play(seconds).moves_per_second,
            "learner": learning.updates_per_second,
        }
        if setting.game.num_players == 2:
            paces["match"] = lambda seconds: _match_pace(setting)
        return _alternated(paces, setting.seconds / (3 * CYCLES))


def _alternated(paces: dict[str, Pace], seconds: float) -> Figures:
    """Idle paces and the ratios, each turn of each part some `seconds` long."""
    # By number of neighbours: the paces of each cycle.
    turns = {0: [], 1: [], 2: []}
    for _ in range(CYCLES):
        for count, cycles in turns.items():
            with neighbours(count):
                cycles.append({name: pace(seconds) for name, pace in paces.items()})
    figures = {}
    for name in paces:
        figures[f"{name}_per_second"] = statistics.median(idle[name] for idle in turns[0])
        for count, suffix in SUFFIXES.items():
            ratios = [busy[name] / idle[name] for idle, busy in zip(turns[0], turns[count])]
            figures[f"{name}_ratio{suffix}"] = statistics.median(ratios)
    return figures


@contextmanager
def neighbours(count: int) -> Iterator[None]:
    """`count` processes that keep a core busy each, until the block ends."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        time.sleep(0.2)  # they have started
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _match_pace(setting: Setting) -> float:
    game = make_game(setting.config.game, MATCH_PLIES, setting.device)
    player = NetworkPlayer(game, build_network(setting.network_config, setting.device))
    result, seconds = timed(setting.device, play_match, game, player, player, MATCH_GAMES)
    return sum(len(played.actions) for played in result.played) / seconds
