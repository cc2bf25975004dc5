"""The knowledge base as pages: one page per entity, one line per fact (``capital: Paris``).

A page reads like the infobox of an encyclopedia. Questions use the labels of the pages, so the
agent must learn to look up and to read, not to guess the name of a label.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from agent_r1.tasks.knowledge_base import KnowledgeBaseError

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of a page."""

    label: str
    value: str
    """The text after the label."""
    answers: tuple[str, ...]
    """All accepted answers to a question about the fact; ``value`` is the first."""

    @property
    def line(self) -> str:
        return f"{self.label}: {self.value}"


@dataclass(frozen=True, slots=True)
class Page:
    """The facts about one entity."""

    kind: str
    """country, city or element."""
    title: str
    facts: dict[str, Fact]
    """Label → fact, in the order of the lines."""
    country: str | None = None
    """The country that the entity is, or is in; None for an element."""

    @property
    def document_id(self) -> str:
        return f"{self.kind}:{slug(self.title)}"

    @property
    def text(self) -> str:
        return "\n".join(fact.line for fact in self.facts.values())


def slug(title: str) -> str:
    """``title`` as part of an identifier.

    >>> slug("St. John's")
    'st_john_s'
    """
    signs = "".join(sign if sign.isalnum() else " " for sign in title.casefold())
    return "_".join(signs.split())


def build_pages(
    countries: Sequence[Record],
    cities: Sequence[Record],
    elements: Sequence[Record],
    max_list_items: int,
) -> dict[str, Page]:
    """A page per record, by title.

    Args:
        countries, cities, elements: records of the knowledge base.
        max_list_items: maximal number of values in a line (a country may have 14 neighbours). All
            values are accepted as answers, including those that the line leaves out.

    Raises:
        KnowledgeBaseError: two entities share a title, or a city's country does not exist.
    """
    known = {country["name"] for country in countries}
    for row, city in enumerate(cities):
        if city["country"] not in known:
            raise KnowledgeBaseError(
                f"cities.parquet: row {row}, key 'country': {city['country']!r} of "
                f"{city['name']!r} is not a name in countries.parquet"
            )
    pages: dict[str, Page] = {}
    ids: dict[str, str] = {}
    for page in (
        *(_country_page(record, max_list_items) for record in countries),
        *(_city_page(record) for record in cities),
        *(_element_page(record, max_list_items) for record in elements),
    ):
        if page.title in pages or page.document_id in ids:
            other = ids.get(page.document_id, page.title)
            raise KnowledgeBaseError(
                f"'{page.title}' ({page.kind}) and '{other}' have ambiguous titles"
            )
        pages[page.title] = page
        ids[page.document_id] = page.title
    return pages


def _country_page(record: Record, max_list_items: int) -> Page:
    currency, code = record["currency"], record["currency_code"]
    currency_names = [f"{demonym} {currency}" for demonym in record["demonyms"] or ()]
    facts = [
        _text("capital", record["capital"]),
        _text("region", record["region"]),
        _text("subregion", record["subregion"]),
        _text("currency", currency, *currency_names, *([code] if code else [])),
        _list("demonym", record["demonyms"], max_list_items),
        _list("language", record["languages"], max_list_items),
        _list("calling code", record["calling_codes"], max_list_items),
        _text("internet domain", record["internet_domain"]),
        _count("population", record["population"]),
        _list("neighbours", record["neighbours"], max_list_items),
    ]
    return _page("country", record["name"], facts, country=record["name"])


def _city_page(record: Record) -> Page:
    zone = record["time_zone"]
    facts = [
        _text("country", record["country"]),
        _count("population", record["population"]),
        _text("time zone", zone, *([zone.replace("_", " ")] if zone else [])),
        _number("latitude", record["latitude"]),
        _number("longitude", record["longitude"]),
    ]
    return _page("city", record["name"], facts, country=record["country"])


def _element_page(record: Record, max_list_items: int) -> Page:
    facts = [
        _text("symbol", record["symbol"]),
        _number("atomic number", record["atomic_number"]),
        _number("period", record["period"]),
        _text("group", record["group_name"]),
        _list("discoverer", record["discoverers"], max_list_items),
        _number("discovery year", record["discovery_year"]),
        _list("discovery place", record["discovery_places"], max_list_items),
    ]
    return _page("element", record["name"], facts)


def _page(kind: str, title: str, facts: Iterable[Fact | None], country: str | None = None) -> Page:
    known = {fact.label: fact for fact in facts if fact is not None}
    return Page(kind, title, known, country)


def _text(label: str, value: str | None, *variants: str) -> Fact | None:
    return None if value is None else Fact(label, value, _unique([value, *variants]))


def _number(label: str, value: float | None) -> Fact | None:
    return _text(label, None if value is None else str(value))


def _count(label: str, value: int | None) -> Fact | None:
    return None if value is None else _text(label, str(value), f"{value:,}")


def _list(label: str, values: Sequence[str] | None, max_items: int) -> Fact | None:
    if not values:
        return None
    return _text(label, ", ".join(values[:max_items]), *values, ", ".join(values))


def _unique(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))
