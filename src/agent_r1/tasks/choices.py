"""How tasks are chosen and split, whatever source they come from."""

from __future__ import annotations

from pydantic import Field

from agent_r1.parameters import Parameters


class SplitSizes(Parameters):
    """Questions per split; a split takes fewer only where there are no more."""

    train: int = Field(default=3000, ge=0)
    validation: int = Field(default=240, ge=0)
    in_domain: int = Field(default=240, ge=0)
    held_out: int = Field(default=240, ge=0)
    ood: int = Field(default=240, ge=0)


class TaskChoices(Parameters):
    """The group ``tasks`` of ``conf/`` without its ``sources``: what a source is given of it."""

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
