"""The console says what the run does, and not how other packages go about it."""

from __future__ import annotations

import logging
import os
import subprocess
import sys

import pytest

from agent_r1.display.console import quieten


@pytest.fixture
def unset(monkeypatch):
    for name in ("HF_HUB_DISABLE_PROGRESS_BARS", "MLFLOW_LOGGING_LEVEL"):
        monkeypatch.setenv(name, "")  # so that it is restored, whatever is set meanwhile
        monkeypatch.delenv(name)


VIZ = "kedro_viz.integrations.kedro.run_hooks"


@pytest.mark.parametrize(
    ("logger", "level", "text", "shown"),
    [
        ("bm25s", logging.DEBUG, "Building index from tokens", False),
        ("bm25s", logging.WARNING, "no document", True),
        ("DeepSpeed", logging.WARNING, "Setting accelerator to CPU. If you have GPU", False),
        ("DeepSpeed", logging.WARNING, "overflow", True),
        (VIZ, logging.WARNING, "Workflow tracking is disabled during partial runs", False),
        (VIZ, logging.WARNING, "no such pipeline", True),
    ],
)
def test_chatter_is_silenced_and_warnings_are_not(unset, logger, level, text, shown):
    quieten()
    quieten()
    record = logging.LogRecord(logger, level, __file__, 1, text, (), None)
    assert bool(logging.getLogger(logger).filter(record)) is shown


def test_progress_bars_are_off_for_packages_imported_later(unset):
    quieten()
    program = "from transformers.utils.logging import is_progress_bar_enabled as on; print(on())"
    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert output.stdout.strip() == "False"


def test_what_the_user_set_is_kept(unset, monkeypatch):
    monkeypatch.setenv("MLFLOW_LOGGING_LEVEL", "DEBUG")
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "0")
    quieten()
    assert os.environ["MLFLOW_LOGGING_LEVEL"] == "DEBUG"
    assert os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] == "0"
