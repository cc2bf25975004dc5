"""The group ``evaluation`` of ``conf/``."""

from __future__ import annotations

from pydantic import Field, field_validator

from agent_r1.parameters import Parameters, nearest
from agent_r1.schemas import SPLITS


class EvaluationParameters(Parameters):
    """How a policy is evaluated, and how often."""

    every: int = Field(default=5, ge=0)
    """The driver validates every n-th iteration; 0 only the last."""
    samples: int = Field(default=4, ge=1)
    """Attempts per task at the rollout temperature."""
    greedy: bool = True
    """One more attempt per task at temperature 0."""
    splits: tuple[str, ...] = ("in_domain", "held_out", "ood")
    """Splits of the tasks."""
    max_tasks_per_split: int = Field(default=200, ge=1)
    """Tasks of each split but ``validation``."""
    validation_tasks: int = Field(default=50, ge=1)
    """Tasks of the split ``validation``."""

    @field_validator("splits")
    @classmethod
    def _known(cls, splits: tuple[str, ...]) -> tuple[str, ...]:
        for split in splits:
            if split not in SPLITS:
                raise ValueError(f"unknown split '{split}'.{nearest(split, SPLITS)}")
        if not splits or len(set(splits)) < len(splits):
            raise ValueError("must name at least one split, each of them once")
        return splits

    def limit(self, split: str) -> int:
        """Tasks of a split at most."""
        return self.validation_tasks if split == "validation" else self.max_tasks_per_split
