"""The parameters of the experiment as a whole: its name and length, its end, its tracking."""

from __future__ import annotations

import re
from typing import Any

from pydantic import Field, field_validator

from agent_r1.parameters import Parameters

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


class ExperimentParameters(Parameters):
    """The parameters at the top level of ``conf/``, outside any group."""

    experiment: str = "default"
    """Name; part of every path, so at most 100 letters, digits, ``_`` and ``-``."""
    algorithm: str = "grpo"
    """Name of a preset in ``conf/algorithms``; see `agent_r1.configuration.presets`."""
    seed: int = Field(default=0, ge=0)
    """Every random draw is derived from it."""
    iterations: int = Field(default=18, ge=0)
    """Iterations of RL. 0 ends after SFT."""

    @field_validator("experiment", mode="before")
    @classmethod
    def _name(cls, value: Any) -> Any:
        """``--params experiment=7`` arrives as a number."""
        name = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(
                "a name has at most 100 letters, digits, '_' and '-', and begins with a letter or "
                "a digit"
            )
        return name


class StopParameters(Parameters):
    """``stop`` in ``conf/``: when the driver ends an experiment before its last iteration."""

    exact_match: float | None = Field(default=None, gt=0, le=1)
    """End when the validation split reaches this; null never does."""


class MlflowParameters(Parameters):
    """``mlflow`` in ``conf/``: where runs are tracked."""

    enabled: bool = True
    """False tracks nothing."""
    tracking_uri: str = "sqlite:///mlflow.db"
    """Where runs are stored; a relative sqlite path is below the project."""
    experiment_name: str = "agent-r1"
    """The MLflow experiment, which holds one parent run per experiment of this project."""
