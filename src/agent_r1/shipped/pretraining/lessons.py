"""The curriculum of the tiny base model: an endless stream of fictional worlds."""

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
    """A phase of the curriculum. In each lesson pages start short and grow."""

    forms: Sequence[Form]
    hops: Sequence[int]
    """Lengths of chains, drawn uniformly."""


LESSONS = (Lesson((drill,), (1,)), Lesson(FORMS, (1, 2, 2)))
"""First the model learns which line of a page a question means, then everything."""

_TOGETHER = (restated, question_answer)
"""Forms that show all pages first and then ask several questions about them."""


def examples(
    maker: WorldMaker,
    random: Random,
    longest: int,
    lesson: Lesson = LESSONS[-1],
) -> Iterator[list[Piece]]:
    """Worlds in random surface forms. Pages have 2 … ``longest`` facts."""
    while True:
        form = random.choice(lesson.forms)
        questions = _questions(maker, random, (2, longest), lesson.hops, form)
        yield form(random, questions)


def next_lesson(lesson: int, longest: int, short_page: int, long_page: int) -> tuple[int, int]:
    """What follows when the model reads well: pages grow by one fact, up to ``long_page``; then the
    next lesson begins with ``short_page``.

    Returns:
        Index of the lesson and the longest page, in facts.
    """
    if longest < long_page:
        return lesson, longest + 1
    if lesson + 1 < len(LESSONS):
        return lesson + 1, short_page
    return lesson, longest


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
