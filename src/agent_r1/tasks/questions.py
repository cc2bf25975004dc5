"""Question families over the pages: a path of facts, and its wording in English.

A family starts at a kind of page and follows labels: ``city → country → capital`` asks for the
capital of the country that a city is in. The facts along the path are the question's *gold chain*.
The value of the last one is the answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agent_r1.seeding import derive_seed
from agent_r1.tasks.pages import Fact, Page, slug


@dataclass(frozen=True, slots=True)
class Family:
    """Questions of one kind."""

    start: str
    """Kind of page that the question names: country, city or element."""
    path: tuple[str, ...]
    """Labels to follow. The question asks for the last one."""
    trained: bool = True
    """False for families that occur only in the split ``ood``."""

    @property
    def name(self) -> str:
        return ".".join([self.start, *(label.replace(" ", "_") for label in self.path)])

    @property
    def hops(self) -> int:
        return len(self.path)


_COUNTRY_LABELS = (
    "capital",
    "subregion",
    "currency",
    "demonym",
    "language",
    "calling code",
    "internet domain",
    "population",
)
_CAPITAL_LABELS = ("population", "time zone")
_ELEMENT_LABELS = (
    "symbol",
    "atomic number",
    "period",
    "discoverer",
    "discovery year",
    "discovery place",
)

FAMILIES: tuple[Family, ...] = (
    *(Family("country", (label,)) for label in _COUNTRY_LABELS),
    *(Family("city", (label,)) for label in ("country", "population", "time zone")),
    *(Family("city", ("country", label)) for label in _COUNTRY_LABELS),
    *(Family("country", ("capital", label)) for label in _CAPITAL_LABELS),
    *(Family("city", ("country", "capital", label), trained=False) for label in _CAPITAL_LABELS),
    *(Family("element", (label,), trained=False) for label in _ELEMENT_LABELS),
    *(
        Family("element", ("discovery place", label), trained=False)
        for label in ("capital", "currency", "calling code")
    ),
)


@dataclass(frozen=True, slots=True)
class Question:
    """One question with its gold chain."""

    family: Family
    pages: tuple[Page, ...]
    """The pages to read, in order. The question names the first one."""
    facts: tuple[Fact, ...]
    """One per page. The last one is the answer."""
    text: str

    @property
    def question_id(self) -> str:
        return f"{self.family.name}:{slug(self.pages[0].title)}"


def questions(family: Family, pages: Mapping[str, Page], seed: int) -> Iterator[Question]:
    """All questions of ``family``: one for each page of its kind that has the whole chain.

    Three kinds of chains are skipped:

    * a chain that returns to an entity: "the capital of the country that Paris is in" can be
      answered without reading;
    * a chain that continues from a fact with several values;
    * a chain whose value is the title of another entity's page: the capital of Norfolk Island is
      not the Kingston that has a page.

    Args:
        family: the kind of question.
        pages: title → page, of all pages.
        seed: chooses the phrasing of each question.
    """
    for page in pages.values():
        if page.kind != family.start:
            continue
        chain = _follow(page, family.path, pages)
        if chain is None:
            continue
        chain_pages, facts = chain
        passed = {chain_page.title for chain_page in chain_pages}
        if len(passed) < len(chain_pages) or facts[-1].value in passed:
            continue
        yield Question(family, chain_pages, facts, _ask(family, page.title, seed))


def _follow(
    page: Page, path: tuple[str, ...], pages: Mapping[str, Page]
) -> tuple[tuple[Page, ...], tuple[Fact, ...]] | None:
    chain, facts = [page], []
    for position, label in enumerate(path):
        fact = chain[-1].facts.get(label)
        if fact is None:
            return None
        facts.append(fact)
        named = pages.get(fact.value)
        if named is not None and chain[-1].country not in (None, named.country):
            return None
        if position + 1 < len(path):
            if named is None:
                return None
            chain.append(named)
    return tuple(chain), tuple(facts)


_FRAMES = (
    "What is the {label} of {subject}?",
    "Tell me the {label} of {subject}.",
    "Which {label} does {subject} have?",
    "Look up the {label} of {subject}.",
)

_SUBJECTS = {
    "country": ("the country that {subject} is in", "the country of {subject}"),
    "capital": ("the capital of {subject}",),
    "discovery place": ("the discovery place of {subject}",),
}
"""Label that leads to an entity → phrases for this entity."""


def _ask(family: Family, title: str, seed: int) -> str:
    draw = derive_seed(seed, "phrasing", family.name, title)
    subject = title
    for label in family.path[:-1]:
        options = _SUBJECTS[label]
        draw, choice = divmod(draw, len(options))
        subject = options[choice].format(subject=subject)
    return _FRAMES[draw % len(_FRAMES)].format(label=family.path[-1], subject=subject)
