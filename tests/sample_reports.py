"""What the tests of the views show: a report of an iteration and a short game."""

from chessnn_colab.report import Report, Strength

MATE = '[White "a"]\n[Black "b"]\n[Result "1-0"]\n\n1. e4 e5 2. Qh5 Nc6 3. Bc4 Nf6 4. Qxf7# 1-0'


def make_strength(
    iteration: int, share: float = 0.09, measure: str = "puzzles, by policy"
) -> Strength:
    """A measurement after `iteration`."""
    return Strength(
        measure, iteration, 60.0 * iteration, share, share - 0.02, share + 0.02, 300, 0.2
    )


def make_report(iteration: int = 3, **changes) -> Report:
    """A plausible report of an iteration, with `changes`."""
    values = dict(
        iteration=iteration, seconds=200.4, games=800, plies=64_960, wins={"white": 210, "black": 200}, draws=380,
        endings={"checkmate": 410, "fifty_moves": 380, "truncated": 10},
        average_plies=81.2, buffer_size=64_000, positions_per_second=2_707.0, updates=250,
        loss=3.29, policy_loss=2.31, policy_kl=0.52, value_loss=0.98, entropy=1.2, brier=0.42, correlation=0.61,
        learning_rate=1e-3,
        firing_rates={"stem": 0.12, "block0": 0.08}, seconds_selfplay=24.1, seconds_learning=8.0,
        total_games=2_400, total_positions=190_000, sample_game=MATE,
    )  # fmt: skip
    return Report(**(values | changes))
