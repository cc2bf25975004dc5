"""What other packages say on the console of a run that helps nobody who reads it.

The progress display (`agent_r1.display.progress`) says what runs; a progress bar of each
checkpoint that is read or written would bury it.
"""

from __future__ import annotations

import logging
import os
import sys

_MLFLOW_LEVEL = "MLFLOW_LOGGING_LEVEL"


def quieten() -> None:
    """Silence them; can be called again. What the user's own environment variables say is kept.

    None of the packages is imported for it: that takes seconds. They read their environment
    variables when they are imported, and set the levels of their loggers then, over what
    ``conf/logging.yml`` says; filters stay.
    """
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    if os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] == "1":
        transformers = sys.modules.get("transformers.utils.logging")
        if transformers is not None:  # a notebook may have imported it
            transformers.disable_progress_bar()
    if _MLFLOW_LEVEL not in os.environ:  # INFO tells of every new database
        os.environ[_MLFLOW_LEVEL] = "WARNING"
        logging.getLogger("mlflow").setLevel(logging.WARNING)
    logging.getLogger("bm25s").addFilter(_at_least_a_warning)
    logging.getLogger("mlflow.store.db.utils").addFilter(_no_traceback)
    logging.getLogger("DeepSpeed").addFilter(_not_about_the_cpu)
    logging.getLogger("kedro_viz.integrations.kedro.run_hooks").addFilter(_not_about_partial_runs)


def _no_traceback(record: logging.LogRecord) -> bool:
    """What is logged with one, in hundreds of lines, is raised too."""
    return record.exc_info is None


def _at_least_a_warning(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING


def _not_about_partial_runs(record: logging.LogRecord) -> bool:
    """Every stage of an experiment is one, and Kedro-Viz would say so each time."""
    return not record.getMessage().startswith("Workflow tracking is disabled during partial")


def _not_about_the_cpu(record: logging.LogRecord) -> bool:
    """Saving a model imports DeepSpeed where it is installed, and it warns of the lack of a GPU."""
    return not record.getMessage().startswith("Setting accelerator to CPU")
