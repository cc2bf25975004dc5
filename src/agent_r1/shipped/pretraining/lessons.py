"""What the tiny base model reads, and in which order: fictional worlds without end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from agent_r1.shipped.pretraining.formats import (
    FORMS,
    Form,
    Piece,
    drill,
    question_answer,
    restated,
)
from agent_r1.shipped.pretraining.worlds import WorldMaker, WorldQuestion


class Lesson(NamedTuple):
    """What is told for a while; in each lesson pages start short and grow."""

    forms: Sequence[Form]
    hops: Sequence[int]
    """Lengths of chains, drawn evenly."""


LESSONS = (Lesson((drill,), (1,)), Lesson(FORMS, (1, 2, 2)))
"""First, which line of a page a question means; then everything."""

_TOGETHER = (restated, question_answer)
"""Forms in which several questions are asked about pages that are all shown first."""


def examples(
    maker: WorldMaker,
    random: Random,
    longest: int,
    lesson: Lesson = LESSONS[-1],
) -> Iterator[list[Piece]]:
    """Worlds told in random surface forms; pages have 2 … ``longest`` facts."""
    while True:
        form = random.choice(lesson.forms)
        questions = _questions(maker, random, (2, longest), lesson.hops, form)
        yield form(random, questions)


def _questions(
    maker: WorldMaker,
    random: Random,
    facts: tuple[int, int],
    hops: Sequence[int],
    form: Form,
) -> list[WorldQuestion]:
    if form in _TOGETHER:
        pages = maker.chain(random, 2, facts)
        return [maker.question(random, [random.choice(pages)]) for _ in range(random.randint(4, 7))]
    chains = [maker.chain(random, random.choice(hops), facts) for _ in range(random.randint(1, 2))]
    return [maker.question(random, chain) for chain in chains]
