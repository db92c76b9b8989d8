"""The time budget of a session, with the deadlines and the learning rate that follow."""

import time

DEFAULT_MINUTES = 20.0


class Budget:
    """How long to train in this session: minutes, iterations, or both, whichever ends first.

    total_minutes: length of the learning-rate schedule over all sessions of the run; None: each
    session has its own.
    """

    def __init__(
        self, minutes: float | None, iterations: int | None, total_minutes: float | None = None
    ):
        self.started = time.monotonic()
        if minutes is None and iterations is None:
            minutes = DEFAULT_MINUTES
        self.minutes = minutes
        self.seconds = None if minutes is None else 60 * minutes
        self.iterations = iterations
        self.done = 0
        self.total_seconds = None if total_minutes is None else 60 * total_minutes
        self.seconds_before = 0.0  # of training in earlier sessions
        self.reserved = 0.0  # seconds kept for what follows the last update

    @property
    def elapsed(self) -> float:
        """Seconds since the session began."""
        return time.monotonic() - self.started

    def play_deadline(self, learning_per_play: float) -> float | None:
        """The time.monotonic() at which self-play must stop for its learning to end in time; None
        without time budget.

        learning_per_play: seconds of learning that one second of self-play needs.
        """
        if self.deadline is None:
            return None
        now = time.monotonic()
        return now + max(self.deadline - now, 0) / (1 + learning_per_play)

    @property
    def deadline(self) -> float | None:
        """The time.monotonic() at which learning must end; None without a time budget."""
        return None if self.seconds is None else self.started + self.seconds - self.reserved

    def over(self, next_iteration: float = 0.0, unfinished: int = 0) -> bool:
        """True when the budget is spent, or less than 15 % of an iteration's time is left.

        next_iteration: its expected seconds. unfinished: iterations that have begun and not ended.
        """
        if self.iterations is not None and self.done + unfinished >= self.iterations:
            return True
        if self.deadline is None or self.done + unfinished == 0:
            return False
        return self.deadline - time.monotonic() < 0.15 * next_iteration

    def learning_rate_factor(self) -> float:
        """1 for the first half of a time budget, then falling to 0.05.

        The budget is this session's, or `total_minutes` where that is set. Without either it is
        always 1, so that two runs of N iterations equal one of 2N.
        """
        if self.total_seconds is not None:
            share = (self.seconds_before + self.elapsed) / self.total_seconds
        elif self.seconds is not None:
            share = self.elapsed / self.seconds
        else:
            return 1.0
        return min(1.0, max(0.05, 1 - 1.9 * (share - 0.5)))
