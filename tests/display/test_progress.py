"""The progress display."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from agent_r1.display import progress
from agent_r1.display.progress import Display, LineDisplay, LiveDisplay, reporter, shown, stepper


def console(*, terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=100, highlight=False)


def test_without_a_display_reports_go_nowhere():
    reporter()(1, 2, tokens=3, reward=0.5)
    assert type(progress.current()) is Display


def test_a_line_per_stage_with_metrics_and_eta():
    display = LineDisplay(console(terminal=False))
    with shown(display):
        display.experiment("x", iterations=4, done=0)
        display.node_started("iter_00001.generate_rollouts")
        reporter()(128, 256, tokens=1000, reward=0.5)
        display.stage_ended("iter_00001", 6.0, {"reward": 0.25})
        display.stage_ended("iter_00002", 8.0, {"reward": 0.5})
    lines = display.console.file.getvalue().splitlines()
    assert lines[0] == "experiment 'x': 4 iterations, 0 done"
    assert lines[1].split() == ["iter_00001", "6.0", "s", "reward", "0.250", "ETA", "0:18"]
    assert lines[2].split() == ["iter_00002", "8.0", "s", "reward", "0.500", "ETA", "0:14"]
    assert len(lines) == 3


def test_sft_does_not_count_as_an_iteration():
    display = LineDisplay(console(terminal=False))
    display.experiment("x", iterations=4, done=0)
    display.stage_ended("iter_00000", 30.0, {})
    assert "ETA" not in display.console.file.getvalue()


def test_the_live_display_shows_what_runs():
    display = LiveDisplay(console(terminal=True))
    with shown(display):
        display.experiment("x", iterations=4, done=1)
        display.node_started("iter_00002.generate_rollouts")
        reporter()(128, 256, tokens=1000, reward=0.5)
        display._live.refresh()
        text = display.console.file.getvalue()
    assert "iter_00002 · generate_rollouts" in text
    assert "1/4" in text
    assert "128/256" in text
    assert "tok/s" in text
    assert "reward 0.500" in text


@pytest.mark.parametrize(("total", "count"), [(100, "7/100"), (None, "7 ")])
def test_the_live_display_shows_optimizer_steps(total, count):
    display = LiveDisplay(console(terminal=True))
    with shown(display):
        display.node_started("iter_00000.train_sft")
        stepper(total)(6, {"loss": 1.25, "grad_norm": 0.5, "tokens": 9.0})
        display._live.refresh()
        text = display.console.file.getvalue()
        before = len(text)
        display.node_started("iter_00000.evaluate_policy")
        display._live.refresh()
        after = display.console.file.getvalue()[before:]
    assert count in text
    assert "loss 1.250  grad_norm 0.500" in text
    assert "tokens" not in text
    assert "loss" not in after


def test_a_display_ends_with_its_block_even_after_an_error():
    display = LineDisplay(console(terminal=False))
    with pytest.raises(RuntimeError), shown(display):
        raise RuntimeError
    assert type(progress.current()) is Display


def test_text_in_brackets_is_not_markup():
    display = LineDisplay(console(terminal=False))
    display.say("see [/data/x]")
    assert display.console.file.getvalue() == "see [/data/x]\n"
