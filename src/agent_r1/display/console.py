"""Silence unhelpful console output of other packages.

The progress display (`agent_r1.display.progress`) shows what runs. Progress bars for each
checkpoint that is read or written would hide it.
"""

from __future__ import annotations

import logging
import os
import sys

_MLFLOW_LEVEL = "MLFLOW_LOGGING_LEVEL"


def quieten() -> None:
    """Silence them. May be called repeatedly; the user's environment variables win.

    No package is imported for this, because that takes seconds. On import, packages read their
    environment variables and set the levels of their loggers, overriding ``conf/logging.yml``;
    filters on loggers are kept.
    """
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    if os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] == "1":
        transformers = sys.modules.get("transformers.utils.logging")
        if transformers is not None:  # a notebook may have imported it
            transformers.disable_progress_bar()
    if _MLFLOW_LEVEL not in os.environ:  # INFO reports every new database
        os.environ[_MLFLOW_LEVEL] = "WARNING"
        logging.getLogger("mlflow").setLevel(logging.WARNING)
    logging.getLogger("bm25s").addFilter(_at_least_a_warning)
    logging.getLogger("mlflow.store.db.utils").addFilter(_no_traceback)
    logging.getLogger("DeepSpeed").addFilter(_not_about_the_cpu)
    logging.getLogger("kedro_viz.integrations.kedro.run_hooks").addFilter(_not_about_partial_runs)


def _no_traceback(record: logging.LogRecord) -> bool:
    """Drop tracebacks of hundreds of lines: the same exception is also raised."""
    return record.exc_info is None


def _at_least_a_warning(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING


def _not_about_partial_runs(record: logging.LogRecord) -> bool:
    """Every stage of an experiment is a partial run; Kedro-Viz warns about each one."""
    return not record.getMessage().startswith("Workflow tracking is disabled during partial")


def _not_about_the_cpu(record: logging.LogRecord) -> bool:
    """If DeepSpeed is installed, saving a model imports it, and it warns about a missing GPU."""
    return not record.getMessage().startswith("Setting accelerator to CPU")
