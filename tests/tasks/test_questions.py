import pytest

from agent_r1.tasks.pages import build_pages
from agent_r1.tasks.questions import FAMILIES, Family, questions


@pytest.fixture
def world(country, city):
    countries = [
        country("Arland", "Aburg"),
        country("Borland", "Aburg"),  # its capital has the name of a city in another country
        country("Dorland", "Nothere"),
    ]
    cities = [city("Aburg", of="Arland"), city("Aton", of="Arland"), city("Bton", of="Borland")]
    return build_pages(countries, cities, [], max_list_items=3)


@pytest.fixture
def ask(world):
    def ask(start, *path):
        return {q.pages[0].title: q for q in questions(Family(start, path), world, seed=0)}

    return ask


def test_a_chain_holds_the_pages_to_read_and_the_facts_on_them(ask):
    question = ask("city", "country", "capital")["Aton"]
    assert [page.title for page in question.pages] == ["Aton", "Arland"]
    assert [fact.line for fact in question.facts] == ["country: Arland", "capital: Aburg"]
    assert question.question_id == "city.country.capital:aton"


def test_a_question_that_returns_to_its_start_is_skipped(ask):
    assert set(ask("city", "country", "capital")) == {"Aton"}  # not Aburg


def test_a_chain_never_leads_to_another_entity_of_the_same_name(ask):
    # The page Aburg is the one in Arland, so the population of Borland's capital is not known.
    assert set(ask("country", "capital", "population")) == {"Arland"}
    assert set(ask("country", "capital")) == {"Arland", "Dorland"}


def test_the_question_names_the_first_entity_and_the_label_and_no_entity_on_the_path(world):
    for family in FAMILIES:
        for question in questions(family, world, seed=0):
            assert question.pages[0].title in question.text
            assert family.path[-1] in question.text
            assert len(question.text.split()) <= 20
            for page in question.pages[1:]:
                assert page.title not in question.text


def test_phrasings_differ_between_questions_but_not_between_runs(country):
    countries = [country(f"Land{n}", f"Town{n}") for n in range(40)]
    pages = build_pages(countries, [], [], max_list_items=3)
    family = Family("country", ("capital",))
    texts = {q.pages[0].title: q.text for q in questions(family, pages, seed=0)}
    again = {q.pages[0].title: q.text for q in questions(family, pages, seed=0)}
    frames = {text.replace(title, "X") for title, text in texts.items()}
    assert texts == again
    assert len(frames) == 4
