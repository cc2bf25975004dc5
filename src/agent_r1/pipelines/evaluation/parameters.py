"""The parameters of evaluation."""

from __future__ import annotations

from pydantic import Field, field_validator

from agent_r1.parameters import Parameters, nearest
from agent_r1.schemas import SPLITS


class EvaluationParameters(Parameters):
    """``evaluation`` in ``conf/``: how, how often and on which tasks a policy is evaluated."""

    every: int = Field(default=5, ge=0)
    """Validate every n-th iteration; 0: only the last."""
    samples: int = Field(default=4, ge=1)
    """Attempts per task at the rollout temperature."""
    greedy: bool = True
    """One more attempt per task at temperature 0."""
    splits: tuple[str, ...] = ("in_domain", "held_out", "ood")
    """Splits to evaluate."""
    max_tasks_per_split: int = Field(default=200, ge=1)
    """Largest number of tasks of each split except ``validation``."""
    validation_tasks: int = Field(default=50, ge=1)
    """Largest number of tasks of the split ``validation``."""

    @field_validator("splits")
    @classmethod
    def _known(cls, splits: tuple[str, ...]) -> tuple[str, ...]:
        for split in splits:
            if split not in SPLITS:
                raise ValueError(f"unknown split '{split}'.{nearest(split, SPLITS)}")
        if not splits or len(set(splits)) < len(splits):
            raise ValueError("must name at least one split, and no split twice")
        return splits

    def limit(self, split: str) -> int:
        """The largest number of tasks of a split."""
        return self.validation_tasks if split == "validation" else self.max_tasks_per_split
