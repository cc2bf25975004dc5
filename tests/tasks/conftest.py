"""A world of four countries, small enough to check by hand."""

from __future__ import annotations

import pandas as pd
import pytest


def _country(name: str, capital: str, **values) -> dict:
    return {
        "iso_code": name[:2].upper(),
        "name": name,
        "capital": capital,
        "region": "Nowhere",
        "subregion": "Far Nowhere",
        "currency": "Crown",
        "currency_code": f"{name[:2].upper()}C",
        "demonyms": [f"{name}ian"],
        "languages": ["English"],
        "neighbours": [],
        "calling_codes": ["+1"],
        "internet_domain": f".{name[:2].lower()}",
        "population": 1234567,
        "area_km2": 10,
    } | values


def _city(name: str, of: str, population: int = 50000, **values) -> dict:
    return {
        "geonames_id": sum(map(ord, name)),
        "name": name,
        "source_name": name,
        "country": of,
        "iso_code": of[:2].upper(),
        "is_capital": False,
        "population": population,
        "time_zone": f"Nowhere/{name.replace(' ', '_')}",
        "latitude": 1.5,
        "longitude": -2.0,
    } | values


@pytest.fixture
def country():
    """A function that makes the record of a country."""
    return _country


@pytest.fixture
def city():
    """A function that makes the record of a city."""
    return _city


@pytest.fixture
def countries() -> pd.DataFrame:
    return pd.DataFrame(
        [
            _country(
                "Arland",
                "Aburg",
                languages=["English", "French", "Dutch", "Greek"],
                neighbours=["Borland", "Corland"],
            ),
            _country("Borland", "Bburg"),
            _country("Corland", "Cburg"),
            _country("Dorland", "Dburg", demonyms=[], languages=None, population=None),
        ]
    ).convert_dtypes()


@pytest.fixture
def cities() -> pd.DataFrame:
    rows = [
        _city(f"{name[0]}{suffix}", of=name)
        for name in ("Arland", "Borland", "Corland", "Dorland")
        for suffix in ("burg", "ton", " ville", "ford")
    ]
    return pd.DataFrame(rows).convert_dtypes()


@pytest.fixture
def elements() -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "atomic_number": 1,
                "name": "Unobtainium",
                "symbol": "Un",
                "period": 1,
                "block": "s",
                "group_name": None,
                "discoverers": ["A. Body", "B. Body"],
                "discovery_year": 1899,
                "discovery_places": ["Arland"],
            },
            {
                "atomic_number": 2,
                "name": "Antiquium",
                "symbol": "Aq",
                "period": 1,
                "block": "s",
                "group_name": None,
                "discoverers": [],
                "discovery_year": None,
                "discovery_places": [],
            },
        ]
    ).convert_dtypes()
