"""The progress of a run: a live display on a terminal, plain lines elsewhere.

Nodes report through `reporter()`. It does nothing unless a display is shown, so nodes also work in
notebooks and tests. Library code takes a callback and does not import this module.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol, Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.text import Text


class Reporter(Protocol):
    """The progress callback of nodes that generate."""

    def __call__(self, done: int, total: int, tokens: int = 0, reward: float | None = None) -> None:
        """
        Args:
            done: finished trajectories.
            total: all trajectories.
            tokens: tokens sampled so far.
            reward: mean reward of the finished ones; None if it is not known yet.
        """
        ...


class Display:
    """Receives the events of a run; this base class shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def experiment(self, name: str, iterations: int, done: int) -> None:
        """An experiment starts, with ``done`` of its ``iterations`` finished."""

    def node_started(self, name: str) -> None:
        """The node with this full name starts."""

    def rollouts(self, done: int, total: int, tokens: int = 0, reward: float | None = None) -> None:
        """Progress of the running node's trajectories; see `Reporter`."""

    def step(self, done: int, total: int | None, metrics: Mapping[str, float]) -> None:
        """Progress of the running node's optimizer steps; ``total`` is None if unknown."""

    def stage_ended(self, name: str, seconds: float, metrics: Mapping[str, float]) -> None:
        """A pipeline such as ``iter_00003`` ended; ``metrics`` are its main numbers."""

    def say(self, text: str) -> None:
        """Show a text to the user."""


class LineDisplay(Display):
    """One line per stage, for logs and pipes."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(highlight=False)
        self._iterations = 0
        self._done = 0
        self._timed: list[float] = []

    def experiment(self, name: str, iterations: int, done: int) -> None:
        self._iterations, self._done = iterations, done
        self.say(f"experiment '{name}': {iterations} iterations, {done} done")

    def stage_ended(self, name: str, seconds: float, metrics: Mapping[str, float]) -> None:
        if is_iteration(name):
            self._done += 1
            self._timed.append(seconds)
        eta = self._eta()
        left = f"  ETA {_clock(eta)}" if eta else ""
        self.say(f"{name:<16} {seconds:6.1f} s  {_format(metrics)}{left}".rstrip())

    def say(self, text: str) -> None:
        self.console.print(text, markup=False, soft_wrap=True)

    def _eta(self) -> float | None:
        """Estimated seconds for the remaining iterations, from the mean of the last five."""
        if not self._timed:
            return None
        recent = self._timed[-5:]
        return max(0, self._iterations - self._done) * sum(recent) / len(recent)


class LiveDisplay(LineDisplay):
    """One line per finished stage, and the running stage below them."""

    def __init__(self, console: Console | None = None) -> None:
        super().__init__(console)
        self._stage = Text("")
        self._bars = Progress(
            TextColumn("{task.description:<12}"),
            BarColumn(bar_width=32),
            TextColumn("{task.fields[count]}"),
            TextColumn("{task.fields[note]}"),
            console=self.console,
        )
        self._iteration_bar, self._rollout_bar, self._step_bar = (
            self._bars.add_task(name, total=None, count="", note="", visible=False)
            for name in ("iterations", "rollouts", "steps")
        )
        self._live = Live(
            Group(self._stage, self._bars), console=self.console, refresh_per_second=4,
            transient=True, redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip
        self._generating_since = 0.0

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def experiment(self, name: str, iterations: int, done: int) -> None:
        super().experiment(name, iterations, done)
        self._show(self._iteration_bar, done, iterations)

    def node_started(self, name: str) -> None:
        self._stage.plain = f"▸ {name.replace('.', ' · ')}"
        self._generating_since = time.monotonic()
        self._hide_bars()

    def rollouts(self, done: int, total: int, tokens: int = 0, reward: float | None = None) -> None:
        seconds = max(time.monotonic() - self._generating_since, 1e-3)
        note = f"{tokens / seconds:,.0f} tok/s"
        if reward is not None:
            note += f"  reward {reward:.3f}"
        self._show(self._rollout_bar, done, total, note)

    def step(self, done: int, total: int | None, metrics: Mapping[str, float]) -> None:
        shown = {name: metrics[name] for name in ("loss", "grad_norm") if name in metrics}
        self._show(self._step_bar, done, total, _format(shown))

    def stage_ended(self, name: str, seconds: float, metrics: Mapping[str, float]) -> None:
        super().stage_ended(name, seconds, metrics)
        eta = self._eta()
        note = f"ETA {_clock(eta)}" if eta else ""
        self._show(self._iteration_bar, self._done, self._iterations, note)
        self._hide_bars()
        self._stage.plain = ""

    def _show(self, bar: TaskID, done: int, total: int | None, note: str = "") -> None:
        count = f"{done}" if total is None else f"{done}/{total}"
        self._bars.update(
            bar, completed=done, total=total, count=count, note=note, visible=total != 0
        )

    def _hide_bars(self) -> None:
        for bar in (self._rollout_bar, self._step_bar):
            self._bars.update(bar, visible=False)


_current: Display = Display()


def current() -> Display:
    """The shown display, or one that shows nothing."""
    return _current


def reporter() -> Reporter:
    """The progress callback that a generating node passes on."""
    return _current.rollouts


def stepper(total: int | None = None) -> Callable[[int, Mapping[str, float]], None]:
    """The callback that a training node passes on: called with a step's index and metrics."""
    return lambda step, metrics: _current.step(step + 1, total, metrics)


@contextmanager
def shown(display: Display | None = None) -> Iterator[Display]:
    """Show a display during the block: by default a live one on a terminal, else lines."""
    global _current
    before = _current
    if display is None:
        display = LiveDisplay() if sys.stdout.isatty() else LineDisplay()
    with display:
        _current = display
        try:
            yield display
        finally:
            _current = before


@contextmanager
def bar(name: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on a terminal; yields a function to call with (done, total)."""
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=32), MofNCompleteColumn())
    with Progress(*columns, transient=True, disable=not sys.stdout.isatty()) as bars:
        task = bars.add_task(name, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


def is_iteration(stage: str) -> bool:
    """Whether the stage is an RL iteration; ``iter_00000`` is SFT."""
    return stage.startswith("iter_") and stage != "iter_00000"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"


def _format(metrics: Mapping[str, float]) -> str:
    return "  ".join(f"{name} {value:.3f}" for name, value in metrics.items())
