"""What happens around every Kedro run: validation, lineage, tracking, progress, errors.

They are hooks, not part of the driver, so that `kedro run --pipelines …`, a notebook's
``session.run()`` and the driver all leave the same records behind.
"""

from agent_r1.hooks.errors import ErrorHooks
from agent_r1.hooks.lineage import LineageHooks
from agent_r1.hooks.progress import ProgressHooks
from agent_r1.hooks.tracking import TrackingHooks
from agent_r1.hooks.validation import ValidationHooks

__all__ = ["ErrorHooks", "LineageHooks", "ProgressHooks", "TrackingHooks", "ValidationHooks"]
