"""What can be configured about the tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, SerializeAsAny, field_validator

from agent_r1.parameters import ParameterError, Parameters
from agent_r1.tasks.registry import find_source
from agent_r1.tasks.source import SourceParameters


class SplitSizes(Parameters):
    """Questions per split; a split takes fewer only where there are no more."""

    train: int = Field(default=3000, ge=0)
    validation: int = Field(default=240, ge=0)
    in_domain: int = Field(default=240, ge=0)
    held_out: int = Field(default=240, ge=0)
    ood: int = Field(default=240, ge=0)


class TasksParameters(Parameters):
    """The group ``tasks`` of ``conf/``."""

    sources: dict[str, SerializeAsAny[SourceParameters]] = Field(default_factory=dict)
    """Parameters of each source by its name; several are a mixture. Empty: the source that is made
    for the environment (`agent_r1.tasks.registry`). A source that is null is off."""
    split_seed: int = 1
    """Decides the splits and the phrasing; not the experiment's seed, so that runs with different
    seeds are compared on the same questions."""
    held_out_countries: int = Field(default=60, ge=0)
    """Countries of the split ``held_out``; none of their pages is ever asked for in training."""
    validation_countries: int = Field(default=26, ge=0)
    """Countries of the split ``validation``."""
    in_domain_fraction: float = Field(default=0.15, ge=0, le=1)
    """Share of the questions on training entities that is kept from training."""
    one_hop_share: float = Field(default=0.45, ge=0, le=1)
    """Share of one-hop questions in every split."""
    sizes: SplitSizes = SplitSizes()
    max_list_items: int = Field(default=3, ge=1)
    """Values that a line of a page shows."""
    max_answer_chars: int = Field(default=40, ge=1)
    """Facts with a longer value are not asked for: they cost tokens and teach nothing new."""

    @field_validator("sources", mode="before")
    @classmethod
    def _read_sources(cls, sources: Any) -> Any:
        if not isinstance(sources, Mapping):
            raise ParameterError("tasks.sources must map names of sources to their parameters")
        return {
            name: find_source(name).parameters.read(values, f"tasks.sources.{name}")
            for name, values in sources.items()
            if values is not None
        }
