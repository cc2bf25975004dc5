"""The project's settings for Kedro."""

from __future__ import annotations

import warnings

from agent_r1.configuration.loader import ProjectConfigLoader
from agent_r1.hooks import ErrorHooks, LineageHooks, ProgressHooks, TrackingHooks, ValidationHooks

# Kedro only warns when a run does not load what it saved. Here that is a lost result.
warnings.filterwarnings("error", message="Save version")
# omegaconf 2.4 warns Kedro about this in every session.
warnings.filterwarnings("ignore", message="register_new_resolver")
# Nodes outside the iterations read datasets of iterations. Kedro's advice is about new names.
warnings.filterwarnings("ignore", message="One or more dataset names contain '.'")

HOOKS = (ValidationHooks(), LineageHooks(), TrackingHooks(), ProgressHooks(), ErrorHooks())

# kedro-mlflow cannot do a child run per iteration; `agent_r1.tracking.mlflow` does it.
DISABLE_HOOKS_FOR_PLUGINS = ("kedro_mlflow", "kedro-telemetry")

CONFIG_LOADER_CLASS = ProjectConfigLoader
CONFIG_LOADER_ARGS = {
    "base_env": "base",
    "default_run_env": "local",
    # The destructive default drops the other keys of a group when one is overridden.
    "merge_strategy": {"parameters": "soft", "globals": "soft"},
}
