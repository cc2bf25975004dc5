"""Parameters for choosing and splitting tasks of any source."""

from __future__ import annotations

from pydantic import Field

from agent_r1.parameters import Parameters


class SplitSizes(Parameters):
    """Tasks per split. A split has fewer only if its source does not have more."""

    train: int = Field(default=3000, ge=0)
    validation: int = Field(default=240, ge=0)
    in_domain: int = Field(default=240, ge=0)
    held_out: int = Field(default=240, ge=0)
    ood: int = Field(default=240, ge=0)


class TaskChoices(Parameters):
    """The group ``tasks`` of ``conf/`` without ``sources``: the part that each source gets."""

    split_seed: int = 1
    """Decides the splits and the phrasing. It is independent of the experiment's seed, so runs with
    different seeds are compared on the same questions."""
    held_out_countries: int = Field(default=60, ge=0)
    """Number of countries in the split ``held_out``. Training questions never need their pages."""
    validation_countries: int = Field(default=26, ge=0)
    """Number of countries in the split ``validation``."""
    in_domain_fraction: float = Field(default=0.15, ge=0, le=1)
    """Share of the questions about training entities that the split ``in_domain`` holds out."""
    one_hop_share: float = Field(default=0.45, ge=0, le=1)
    """Share of one-hop questions in every split."""
    sizes: SplitSizes = SplitSizes()
    max_list_items: int = Field(default=3, ge=1)
    """Maximal number of values in one line of a page."""
    max_answer_chars: int = Field(default=40, ge=1)
    """Characters. No question asks for a longer value: it costs tokens and teaches nothing new."""
