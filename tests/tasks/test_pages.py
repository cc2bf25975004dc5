import pytest

from agent_r1.tasks.knowledge_base import KnowledgeBaseError, read_records
from agent_r1.tasks.pages import build_pages, slug


def pages_of(countries, cities, elements, max_list_items=3):
    records = (
        read_records(table, name)
        for table, name in ((countries, "countries"), (cities, "cities"), (elements, "elements"))
    )
    return build_pages(*records, max_list_items)


def test_a_page_has_one_line_per_known_fact(countries, cities, elements):
    pages = pages_of(countries, cities, elements)
    assert pages["Arland"].text == (
        "capital: Aburg\nregion: Nowhere\nsubregion: Far Nowhere\ncurrency: Crown\n"
        "demonym: Arlandian\nlanguage: English, French, Dutch\ncalling code: +1\n"
        "internet domain: .ar\npopulation: 1234567\nneighbours: Borland, Corland"
    )
    assert pages["A ville"].text == (
        "country: Arland\npopulation: 50000\ntime zone: Nowhere/A_ville\n"
        "latitude: 1.5\nlongitude: -2.0"
    )
    assert "language" not in pages["Dorland"].facts
    assert "discovery year" not in pages["Antiquium"].facts


def test_accepted_answers_are_the_value_first_and_then_its_variants(countries, cities, elements):
    pages = pages_of(countries, cities, elements)
    arland = pages["Arland"].facts
    assert arland["population"].answers == ("1234567", "1,234,567")
    assert arland["language"].answers == (
        "English, French, Dutch",
        "English",
        "French",
        "Dutch",
        "Greek",  # accepted, although the line leaves it out
        "English, French, Dutch, Greek",
    )
    assert arland["currency"].answers == ("Crown", "Arlandian Crown", "ARC")
    assert pages["A ville"].facts["time zone"].answers == ("Nowhere/A_ville", "Nowhere/A ville")


def test_ambiguous_titles_are_refused(countries, cities, elements):
    cities.loc[0, "name"] = "Arland"
    with pytest.raises(KnowledgeBaseError, match=r"'Arland' \(city\) and 'Arland'"):
        pages_of(countries, cities, elements)


def test_a_city_without_a_known_country_is_named_by_its_row(countries, cities, elements):
    cities.loc[5, "country"] = "Atlantis"
    message = "cities.parquet: row 5, key 'country': 'Atlantis'"
    with pytest.raises(KnowledgeBaseError, match=message):
        pages_of(countries, cities, elements)


def test_slug_keeps_letters_and_digits():
    assert slug("St. John's") == "st_john_s"
    assert slug("Cox's  Bazar-2") == "cox_s_bazar_2"
