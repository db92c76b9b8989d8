"""How games are played for training: the settings, and what a game decides of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from .errors import ConfigError
from .games.base import Game

BOARDS_ON_CPU, BOARDS = 64, 512  # games in lockstep, unless a run says otherwise
DECIDED = ("max_plies", "sampling_plies", "discount", "td_lambda", "bootstrap_after", "bootstrap_lambda")  # by the game
START_SETTINGS = {"few_piece_starts": "few-piece", "random_starts": "random-plies"}  # setting -> kind of start


@dataclass(frozen=True)
class SelfPlayConfig:
    """How games are played for training."""

    game: str = "chess"  # chess, gomoku (or gomoku:SIZE), 2048, tictactoe
    boards: int | None = None  # games in lockstep, per worker; None: 64 on a CPU, 512 on a GPU
    max_plies: int | None = None  # a longer game is stopped and labelled; None: the game decides, chess 160
    few_piece_starts: float | None = None  # share of games that start from a few pieces; None: the game decides
    random_starts: float | None = None  # share that start after a few random moves; None: the game decides
    sampling_plies: int | None = None  # sample moves up to a random ply below it; None: the game decides, chess 30
    discount: float | None = None  # what a win is worth one ply later; None: the game decides, chess 0.99
    td_lambda: float | None = None  # below 1, value targets mix in how the game soon stands; None: the game decides
    bootstrap_after: int | None = None  # iterations after which the search says how it stands; None: the game decides
    bootstrap_lambda: float | None = None  # td_lambda from then on; None: the game decides
    reward: str | None = None  # what a ply pays, in a game with points; None: the game decides, 2048 the score

    def __post_init__(self) -> None:
        for name in ("boards", "max_plies", "sampling_plies", "bootstrap_after"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise ConfigError(f"{name}={value!r}: expected a whole number from 1 up")
        for name in ("few_piece_starts", "random_starts"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise ConfigError(f"{name}={value}: expected a share from 0 to 1")
        for name in ("discount", "td_lambda", "bootstrap_lambda"):
            value = getattr(self, name)
            if value is not None and not 0 < value <= 1:
                raise ConfigError(f"{name}={value}: expected more than 0 and at most 1")

    def settled(self, game: Game) -> SettledSelfPlay:
        """This config with everything filled in that `game` and its device decide."""
        given = {name: value for name, value in asdict(self).items() if value is not None}
        decided = {name: getattr(game, name) for name in DECIDED}
        return SettledSelfPlay(**{"boards": BOARDS_ON_CPU if game.device.type == "cpu" else BOARDS, **decided, **given})

    def start_shares(self, game: Game) -> dict[str, float]:
        """Kind of start position -> share of games, the last kind taking what is left. Raises ConfigError."""
        shares = dict(game.start_shares)
        for setting, kind in START_SETTINGS.items():
            share = getattr(self, setting)
            if share is not None and kind in shares:
                shares[kind] = share
            elif share:
                raise ConfigError(f"{setting}={share}: {game.name} has no such starts, only {', '.join(shares)}")
        *kinds, rest = shares
        if (total := sum(shares[kind] for kind in kinds)) > 1:
            raise ConfigError(f"shares of start positions add up to {total:g}: expected at most 1")
        return {**shares, rest: 1 - total}


class SettledSelfPlay(SelfPlayConfig):
    """A config that leaves nothing to the game or its device."""

    boards: int
    max_plies: int
    sampling_plies: int
    discount: float
    td_lambda: float
    bootstrap_after: int
    bootstrap_lambda: float
