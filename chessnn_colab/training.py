"""train(): self-play, replay, learner, checkpoint, iteration after iteration, as a generator of
reports.

`Trainer._iterate` shows one iteration from top to bottom. Weights go down to the workers as numpy
arrays, games come back as GameRecords; no tensor crosses a process.
"""

import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from .budget import Budget
from .chances import said_and_played
from .config import CHANGEABLE, TrainConfig
from .cpu import limit_threads
from .device_probe import probe_for
from .devices import detect_device, inventory
from .games.registry import make_game, text_suffix
from .iteration import sample_game, summary_of_games
from .learner import Learner
from .learning import firing_rates, learn
from .memory import keep_freed_memory
from .network import build_network, to_arrays
from .playing import Playing
from .presets import price_rise
from .ranks import Ranks
from .records import GameRecords
from .replay import ReplayBuffer, window_size
from .report import Progress, Report, Session
from .runs.backup import Backup
from .runs.folder import LatestCheckpoint
from .runs.opening import open_run
from .runs.tensorboard import TensorBoard
from .runs.training_state import load_initial_weights, restore_state, state_to_save
from .strength import StrengthProbe, opinion_of_position
from .text import duration

LEARNING_PER_PLAY = 1.0  # seconds of learning for one of self-play, until it has been timed


def train(config: TrainConfig, progress: Progress | None = None) -> Generator[Report, None, bool]:
    """Train as `config` says, yielding a Report per iteration. A run already in the folder is
    resumed.

    progress: called from this thread; None is silence. KeyboardInterrupt ends it cleanly: what is
    finished is kept, and the next call of train resumes; the generator's value is True then. Raises
    ConfigError, DeviceError, RunError, CheckpointError or WorkerError, each in plain words.
    """
    with closing(progress or Progress()) as progress, closing(Trainer(config, progress)) as trainer:
        return (yield from trainer.iterations())


class Trainer:
    """One session of a run: everything `train` holds open."""

    def __init__(self, config: TrainConfig, progress: Progress):
        """Open the run. The order matters:

        1. The device and the workers: they decide what the config leaves open.
        2. The run: it may be brought back from its copy, and its network may be the one to use.
           From here on it is locked, and `close` must release it.
        3. The clock: all that follows is part of the session's minutes.
        4. The config, resolved once: everything below reads this one.
        5. The parts of training. They fail for settings that are not possible, so they are made
           before the settings are written.
        6. The settings, written; then the checkpoint is restored, or the first one saved.
        """
        self.progress = progress
        machine = inventory()
        probe = probe_for(config.game, machine, config.precision)
        if probe is not None and config.device != "cpu":
            progress.message("Trying the GPU, and comparing it with the CPU")
        limit_threads()
        choice = detect_device(config.device, machine, probe, config.gpus)
        self.plan = config.worker_plan(choice.device, machine)
        self.folder, latest = open_run(config.run, config.copy_to, progress.message)
        self.backup: Backup | None = None
        self._open_parts = ExitStack()  # the workers, TensorBoard and an update's recordings
        try:
            self.budget = Budget(config.minutes, config.iterations, config.total_minutes)
            self._say([*choice.troubles, f"Primary training device: {choice}", *self.plan.notes])
            self.config = config.resolve(
                choice.device, machine, self.plan, self.folder.config, progress.message
            )
            self._make_parts(choice.device)
            if config.from_checkpoint:
                sentence = (
                    f"The run goes on with its own weights: {config.from_checkpoint!r} "
                    "(from_checkpoint, --from) is for a new run"
                )
                if latest is None:
                    self.positions_before, sentence = load_initial_weights(
                        config.from_checkpoint, self.network, self.game.name
                    )
                progress.message(sentence)
            self.folder.settle(self.config.to_dict(), CHANGEABLE)
            self._restore_or_begin(latest)
            self.tensorboard = TensorBoard(self.folder.tensorboard_folder, self.iteration)
            self._open_parts.callback(self.tensorboard.close)
            if config.copy_to is not None:
                self.backup = Backup(self.folder, config.copy_to)
                self._say(self.backup.update())
        except BaseException:
            self.close()
            raise

    def _make_parts(self, device: str) -> None:
        config = self.config
        if device == "cpu":
            keep_freed_memory()
        self.game = make_game(config.game, config.max_plies, device)
        self.network = build_network(config.network_config(self.game), device, config.seed)
        self.rules = make_game(config.game, config.max_plies)  # on the CPU, where records are
        self.learner = Learner(self.network, self.game, config)
        # Else its recordings keep a GPU's memory until Python collects the learner.
        self._open_parts.callback(self.learner.replays.forget)
        self.replay = ReplayBuffer(config.replay_capacity)
        self.playing = Playing(
            self.game, config.positions_per_iteration, len(self.plan.devices), self.progress
        )
        self.probe = StrengthProbe(
            config.measure_strength, config.game, device, self.budget, self.progress
        )
        self.iteration = 0
        self.total_games = 0
        self.total_positions = 0
        self.positions_before = 0  # see Counts
        self.seconds = 0.0
        self._iteration_seconds = 0.0
        self._learning_per_play = LEARNING_PER_PLAY
        self._saved = None
        self._saved_at = time.monotonic()
        self._points = ()  # measured, and in no report yet
        self._game_text = ""  # of the last report

    def iterations(self) -> Generator[Report, None, bool]:
        """Iterate until the budget is spent, or the user interrupts (then True); the last state is
        always saved.
        """
        logs = self.folder.path / "logs"
        say = self.progress.message
        try:
            self._start_run()
            self.pool = self._open_parts.enter_context(
                self.config.open_pool(
                    self.network.config, self.plan, logs, say, self.progress.starting_update
                )
            )
            learners = self.config.learners(self.learner.device.type, self.plan)
            self.ranks = Ranks(self.pool, range(learners), say)
            while not self.budget.over(self._iteration_seconds):
                yield self._iterate()
            self._keep()
            say(
                f"Run ended after iteration {self.iteration}: {self.total_games:,} games, "
                f"{self.total_positions:,} positions, {duration(self.seconds)} of training; it is "
                f"in {self.folder.path}"
            )
            return False
        except KeyboardInterrupt:
            self._keep()
            say(
                f"Interrupted: everything up to iteration {self.iteration} is kept in "
                f"{self.folder.path}; run this again to resume"
            )
            return True
        # Ray turns SIGTERM into SystemExit; a break in the caller's loop is a GeneratorExit.
        except (Exception, SystemExit, GeneratorExit):
            try:
                self._keep()
            except Exception as error:  # the first error is the one to raise
                # Not held: the same run was begun again before this generator was closed.
                if self.folder.held:
                    say(str(error))
            raise

    def close(self) -> None:
        """Stop the workers and release the folder; an interrupt in between leaves nothing out."""
        with ExitStack() as last_first:
            last_first.callback(self.folder.close)
            last_first.callback(
                lambda: self._say(self.backup.close(self.progress.message) if self.backup else ())
            )
            last_first.callback(self._open_parts.close)

    def _say(self, messages: Sequence[str]) -> None:
        for message in messages:
            self.progress.message(message)

    def _iterate(self) -> Report:
        started = time.monotonic()
        begun = self.iteration or self.learner.updates
        opinions = [] if begun else opinion_of_position(self.network, self.game, 0)
        deadline = self.budget.play_deadline(self._learning_per_play)
        records, played_positions, play_seconds = self.playing.play(
            self.pool, self._played(), to_arrays(self.network), self._seed(0), deadline
        )
        played = time.monotonic()
        self._take(records)
        learning = self._learn(records.num_positions)
        learned = time.monotonic()
        if records.num_positions:
            share = played_positions / records.num_positions
            self._learning_per_play = (learned - played) / play_seconds * share
        self._measure(learned - started)
        opinions += opinion_of_position(self.network, self.game, self.iteration + 1)
        summary = summary_of_games(records, self.rules)
        self._game_text = sample_game(
            records, self.rules, Event="Self-play", Round=str(self.iteration + 1)
        )
        elapsed = time.monotonic() - started
        report = Report(
            iteration=self.iteration + 1,
            seconds=self.seconds + elapsed,
            **summary,
            buffer_size=len(self.replay),
            positions_played=played_positions,
            positions_per_second=played_positions / play_seconds,
            **learning,
            strength=self._points,
            opinions=opinions,
            firing_rates=firing_rates(self.learner, self.replay),
            seconds_selfplay=played - started,
            seconds_learning=learned - played,
            draws_per_position=learning["updates"]
            * self.config.batch_size
            / max(records.num_positions, 1),
            window=self.replay.capacity,
            total_games=self.total_games,
            total_positions=self.total_positions,
            total_updates=self.learner.updates,
            sample_game=self._game_text,
        )
        self.folder.append_report(asdict(report))
        self.iteration, self.seconds, self._points = report.iteration, report.seconds, ()
        self.budget.done += 1
        self.tensorboard.write(report)
        due = time.monotonic() - self._saved_at >= self.config.checkpoint_every
        if due and self.folder.may_save():
            self._save()  # after its report, so that no kill leaves a checkpoint without one
        self._iteration_seconds = time.monotonic() - started
        self.progress.report(report)
        return report

    def _played(self) -> int:
        """The positions that the weights were trained with, in earlier runs too."""
        return self.positions_before + self.total_positions

    def _keep(self) -> None:
        """Save the last state, and with it the games of the shares that were finished before
        something stopped the iteration. Workers that play hand over what they have.
        """
        try:
            if self.playing.under_way:
                self._saved = None  # the games in flight have gone on
                self._take(self.playing.keep())
        finally:
            self._save()

    def _take(self, records: GameRecords) -> None:
        new = records.num_positions
        iteration = self.config.positions_per_iteration
        kept = window_size(self._played() + new, iteration, self.replay.limit, new)
        if new > kept:
            self.progress.message(
                f"{new:,} new positions, but the replay keeps the latest {kept:,}: the network "
                "never learns from those before them. Raise replay_capacity"
            )
        self.replay.resize(kept)
        self.replay.add(records)
        self.playing.under_way = False  # until here an interrupt keeps the games
        self.total_games += int((records.endings > 0).sum())
        self.total_positions += new
        if not self.game.score_limit:
            # Those that the cap ends too, with estimates: most of them would be drawn.
            compared = said_and_played(records, records.endings > 0)
            self.learner.correction = self.learner.correction.after(*compared)

    def _learn(self, new_positions: int) -> dict[str, Any]:
        """Learn until each new position was seen `sample_reuse` times, or the time is up; at least
        one update.

        Returns the fields of a Report that are about learning.
        """
        price = self.config.spike_penalty * price_rise(self._played())
        self.learner.config = replace(self.config, spike_penalty=price)
        return learn(
            self.learner,
            self.replay,
            self.config.updates(new_positions),
            self.config.batch_size,
            self.budget,
            self.progress,
            np.random.default_rng(self._seed(1)),
            self.ranks.learn,
        )

    def _start_run(self) -> None:
        history = self.folder.reports()
        session = Session(
            str(self.folder.path),
            self.folder.config,
            self.budget.minutes,
            self.budget.iterations,
            len(self.plan.devices),
            self.budget.elapsed,
            history,
        )
        self.progress.start_run(session)
        self._points = self.probe.begin(self.network, history, self.learner.updates)

    def _measure(self, iteration_seconds: float) -> None:
        """Measure the strength after this iteration of `iteration_seconds`, if that is due."""
        last = self.budget.over(iteration_seconds, unfinished=1)
        self._points += self.probe.measure(
            self.network, self.iteration + 1, self.seconds + iteration_seconds, last
        )

    def _seed(self, purpose: int) -> int:
        """A seed for one purpose at one point of the run, so that resuming needs no generator's
        state.

        The number of positions is part of it, so that an interrupted iteration plays other games
        when begun again, where games had ended in it.
        """
        entropy = [self.config.seed, self.iteration, self.total_positions, purpose]
        return int(np.random.SeedSequence(entropy).generate_state(1)[0])

    def _save(self) -> None:
        """A full checkpoint, a snapshot of the weights for rating and the game of the last report,
        unless this state has them already.
        """
        state = (self.iteration, self.total_positions, self.learner.updates)
        if state == self._saved:
            return
        metadata = {
            "game": self.game.name,
            "network": self.network.config.to_dict(),
            "config": self.config.to_dict(),
            "seconds": self.seconds,
            "total_games": self.total_games,
            "total_positions": self.total_positions,
            "positions_before": self.positions_before,
            **self.learner.progress(),
        }
        groups = state_to_save(self.learner, self.replay, self.playing.in_flight)
        if self.iteration not in self.folder.snapshots():
            # One taken already is this iteration's; an interrupt may come in the middle of the next
            # one's learning.
            weights = self.learner.correction.weights(to_arrays(self.network))
            self.folder.save_snapshot(self.iteration, weights, metadata)
            if self._game_text:
                self.folder.save_game_sample(
                    self.iteration, self._game_text, text_suffix(self.game.name)
                )
        self.folder.save_checkpoint(self.iteration, groups, metadata)
        self.folder.prune()
        self._saved = state
        self._saved_at = time.monotonic()
        if self.backup is not None:
            self._say(self.backup.update())

    def _restore_or_begin(self, latest: LatestCheckpoint | None) -> None:
        self.network.eval()
        if latest is None:
            self.folder.rewind(0)
            self._save()
            return
        counts, self.replay, in_flight = restore_state(
            self.folder.checkpoint_path(latest.iteration),
            latest.checkpoint,
            self.learner,
            self.config.replay_capacity,
        )
        (
            self.iteration,
            self.seconds,
            self.total_games,
            self.total_positions,
            _,
            self.positions_before,
        ) = counts
        self.budget.seconds_before = self.seconds
        self.folder.rewind(self.iteration)
        self.progress.message(
            f"Resuming {self.folder.path} after iteration {self.iteration} ({len(self.replay):,} "
            "positions in replay)"
        )
        self.playing.in_flight = [in_flight]
        if self.folder.changed:
            self.progress.message(f"Its settings have changed: {', '.join(self.folder.changed)}")
