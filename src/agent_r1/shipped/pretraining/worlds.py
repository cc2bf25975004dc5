"""Fictional worlds: random facts about real place names, which cannot be memorised.

1. A **world** has a few entities, each with a page of ``label: value`` facts. Titles and most
   values are drawn from a large pool of real place names, labels from a list and from random words.
   The facts are random, so the only way to know one is to read it.
2. Some facts name another entity of the world, so questions can be chained.
3. A **question** asks for a fact over one or two hops, in one of several wordings, and contains the
   look-ups that answer it.

A model that gets a new world in every example cannot memorise. It must learn to read, to copy and
to look things up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random

LABELS = (
    "anthem", "archive", "area", "author", "ballad", "bank", "bridge", "builder", "calling code",
    "canal", "capital", "carrier", "castle", "category", "choir", "coast", "coat of arms", "code",
    "colour", "continent", "council", "country", "county", "crop", "currency", "dance", "date",
    "delta", "demonym", "depth", "dialect", "dish", "district", "domain", "elevation", "emblem",
    "export", "father", "ferry", "festival", "flag", "flower", "founded", "founder", "garden",
    "governor", "guild", "harbour", "height", "highest point", "holiday", "home", "industry",
    "internet domain", "island", "lake", "language", "languages", "largest city", "latitude",
    "leader", "length", "longitude", "main road", "market", "mayor", "mineral", "monument",
    "mother", "motto", "mountain", "museum", "name", "national day", "neighbour", "neighbours",
    "newspaper", "number", "opened", "origin", "owner", "parish", "patron", "place", "port",
    "postal code", "population", "prefix", "province", "railway", "rank", "region", "river",
    "school", "sea", "seat", "sister town", "song", "source", "star", "state", "station", "stone",
    "subregion", "symbol", "teacher", "territory", "time zone", "title", "tower", "tree",
    "twin town", "type", "university", "valley", "village", "weight", "width", "wind", "year",
    "zone",
)  # fmt: skip
"""Names of facts. Their values are random in every world."""

_SYLLABLES = (
    "ba", "bel", "cor", "da", "den", "el", "fa", "gor", "ha", "il", "jo", "ka", "lem", "lo", "ma",
    "mir", "na", "nor", "o", "pa", "per", "qui", "ra", "ros", "sa", "sil", "ta", "tor", "u", "va",
    "ven", "wo", "xe", "ya", "zan",
)  # fmt: skip
_CURRENCIES = ("dollar", "franc", "pound", "crown", "dinar", "peso", "shilling", "mark", "lira")
_DEMONYM_ENDINGS = ("an", "ese", "ian", "i", "ish", "er")


@dataclass(frozen=True, slots=True)
class WorldPage:
    """An entity and its facts, in the order of the page's lines."""

    title: str
    facts: tuple[tuple[str, str], ...]

    def value(self, label: str) -> str:
        """The value of a label on the page."""
        return dict(self.facts)[label]


@dataclass(frozen=True, slots=True)
class WorldQuestion:
    """A question and its chain: read ``labels[i]`` on ``pages[i]``, one after the other."""

    text: str
    pages: tuple[WorldPage, ...]
    labels: tuple[str, ...]

    @property
    def answer(self) -> str:
        """The value at the end of the chain."""
        return self.pages[-1].value(self.labels[-1])


_ONE_HOP = (
    "What is the {0} of {x}?",
    "Which {0} does {x} have?",
    "Name the {0} of {x}.",
    "Find the {0} of {x}.",
    "Tell me the {0} of {x}.",
    "Look up the {0} of {x}.",
    "{x}: what is its {0}?",
    "Tell me the {0} listed for {x}.",
)
_TWO_HOP = (
    "What is the {1} of the {0} of {x}?",
    "What is the {1} of the {0} that {x} is in?",
    "What is the {1} of the {0} that {x} belongs to?",
    "Which {1} does the {0} of {x} have?",
    "Which {1} does the {0} that {x} is in have?",
    "Name the {1} of the {0} of {x}.",
    "Find the {1} of the {0} that {x} is in.",
    "Tell me the {1} of the {0} of {x}.",
    "Look up the {1} of the {0} of {x}.",
    "{x} has a {0}; what is the {1} of it?",
)


class WorldMaker:
    """Draws worlds and questions. All draws use the generator in the arguments."""

    def __init__(self, place_names: Sequence[str]) -> None:
        self.place_names = place_names

    def page(self, random: Random, title: str, links: Sequence[str], facts: int) -> WorldPage:
        """A page with ``facts`` facts. The values of some of them are the entities ``links``."""
        labels = self._labels(random, max(facts, len(links)))
        values = [*links, *(self._value(random) for _ in labels[len(links) :])]
        lines = list(zip(labels, values, strict=True))
        random.shuffle(lines)
        return WorldPage(title, tuple(lines))

    def chain(self, random: Random, hops: int, facts: tuple[int, int]) -> list[WorldPage]:
        """Pages that each name the next one's title. ``facts`` are the limits of lines per page."""
        titles = random.sample(self.place_names, hops)
        return [
            self.page(random, title, titles[i + 1 : i + 2], random.randint(*facts))
            for i, title in enumerate(titles)
        ]

    def question(self, random: Random, pages: Sequence[WorldPage]) -> WorldQuestion:
        """A question along ``pages``. The last label is a random fact of the last page."""
        labels = [
            next(label for label, value in page.facts if value == following.title)
            for page, following in pairwise(pages)
        ]
        labels.append(random.choice(pages[-1].facts)[0])
        wording = random.choice(_ONE_HOP if len(pages) == 1 else _TWO_HOP)
        text = wording.format(*labels, x=pages[0].title)
        return WorldQuestion(text, tuple(pages), tuple(labels))

    def _labels(self, random: Random, count: int) -> list[str]:
        labels = random.sample(LABELS, count)
        for i in range(count):
            if random.random() < 0.15:  # an unseen label can only be matched, not known
                prefixed = random.random() < 0.5
                labels[i] = (
                    f"{made_up_word(random)} {labels[i]}" if prefixed else made_up_word(random)
                )
        return labels if len(set(labels)) == count else self._labels(random, count)

    def _value(self, random: Random) -> str:
        kind = random.random()
        name = random.choice(self.place_names)
        if kind < 0.45:
            return name
        if kind < 0.53:
            return f"{random.randint(1, 10 ** random.randint(2, 8)):,}"
        if kind < 0.61:
            return str(random.randint(1, 10 ** random.randint(1, 8)))
        if kind < 0.64:
            return f"{random.uniform(-180, 180):.2f}"
        if kind < 0.68:
            return random.choice((".", "")) + made_up_word(random)[:2]
        if kind < 0.71:
            return f"+{random.randint(1, 999)}"
        if kind < 0.75:
            return made_up_word(random)[:3].upper()
        if kind < 0.81:
            return name.split(" ")[0] + random.choice(_DEMONYM_ENDINGS)
        if kind < 0.86:
            return f"{name} {random.choice(_CURRENCIES)}"
        if kind < 0.90:
            return f"{random.choice(self.place_names)}/{name}"
        if kind < 0.94:
            return made_up_word(random).capitalize()
        return ", ".join(random.sample(self.place_names, random.randint(2, 4)))


def made_up_word(random: Random) -> str:
    """A meaningless word of two to four syllables."""
    return "".join(random.choice(_SYLLABLES) for _ in range(random.randint(2, 4)))
