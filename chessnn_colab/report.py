"""Report: what one iteration did. Progress, plots, metrics.jsonl, TensorBoard and `watch` all read it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Mapping


@dataclass(frozen=True)
class Report:
    """One iteration of training. Counts are of this iteration unless they say total; times are seconds."""

    iteration: int
    seconds: float  # of training so far, earlier sessions of the run included
    games: int  # played to an end
    plies: int  # new positions, those of games cut short by the clock included
    wins: dict[str, int]  # name of the player in lower case, first player first -> games won
    draws: int  # by the rules; games stopped at the ply cap are in `endings` alone
    endings: dict[str, int]  # kind of ending -> games
    average_plies: float
    buffer_size: int  # positions in replay
    positions_per_second: float  # of self-play
    games_per_second: float
    updates: int  # gradient steps
    loss: float
    policy_loss: float  # nats
    value_loss: float  # nats
    entropy: float  # of the policy over legal moves, nats
    value_accuracy: float  # share of positions whose result was called right
    learning_rate: float
    firing_rates: dict[str, float] = field(default_factory=dict)  # layer -> spikes a neuron a step, 0 to 1
    seconds_selfplay: float = 0.0
    seconds_learning: float = 0.0
    seconds_other: float = 0.0
    total_games: int = 0
    total_positions: int = 0
    total_updates: int = 0
    sample_game: str = ""  # PGN of one of the games

    @property
    def white_win_rate(self) -> float:
        return self.wins.get("white", 0) / max(self.games, 1)

    @property
    def draw_rate(self) -> float:
        return self.draws / max(self.games, 1)

    @property
    def black_win_rate(self) -> float:
        return self.wins.get("black", 0) / max(self.games, 1)

    def to_dict(self) -> dict[str, Any]:
        values = asdict(self)
        return values | {f"{name}_wins": count for name, count in values.pop("wins").items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Report":
        """A report read back from metrics.jsonl; keys of another version are left out."""
        wins = {name.removesuffix("_wins"): count for name, count in values.items() if name.endswith("_wins")}
        values, known = {**values, "wins": wins}, {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in values.items() if name in known})
