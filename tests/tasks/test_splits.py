from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_r1.parameters import ParameterError
from agent_r1.tasks.pages import build_pages
from agent_r1.tasks.questions import Family, questions
from agent_r1.tasks.splits import balance, choose, partition_countries, split_of

NAMES = [f"Land{n:02d}" for n in range(40)]


def test_countries_are_divided_by_size_and_always_in_the_same_way():
    partition = partition_countries(NAMES, held_out=10, validation=5, seed=0)
    assert Counter(partition.values()) == {"train": 25, "held_out": 10, "validation": 5}
    assert partition == partition_countries(NAMES[::-1], held_out=10, validation=5, seed=0)
    assert partition != partition_countries(NAMES, held_out=10, validation=5, seed=1)


def test_partitions_that_leave_no_training_country_are_refused():
    with pytest.raises(ParameterError, match="leave no country to train on: there are 40"):
        partition_countries(NAMES, held_out=30, validation=10, seed=0)


@given(st.dictionaries(st.text(min_size=1), st.integers(0, 20)), st.integers(0, 60))
def test_balance_takes_as_many_as_possible_and_evenly(available, total):
    taken = balance(available, total)
    assert sum(taken.values()) == min(total, sum(available.values()))
    assert all(0 <= taken[name] <= available[name] for name in available)
    short = [taken[name] for name in available if taken[name] < available[name]]
    assert not short or max(taken.values()) - min(short) <= 1


@pytest.fixture
def world(country, city):
    countries = [country("Arland", "Aburg"), country("Borland", "Bburg")]
    cities = [city("Aburg", of="Arland"), city("Aton", of="Arland"), city("Bburg", of="Borland")]
    element = {
        "atomic_number": 1,
        "name": "Unobtainium",
        "symbol": "Un",
        "period": 1,
        "group_name": None,
        "discoverers": [],
        "discovery_year": None,
        "discovery_places": ["Borland"],
    }
    return build_pages(countries, cities, [element], max_list_items=3)


@pytest.fixture
def splits(world):
    def splits(family, partition, fraction=0.0):
        return {
            question.pages[0].title: split_of(question, partition, fraction, seed=0)
            for question in questions(family, world, seed=0)
        }

    return splits


def test_a_question_is_in_the_partition_of_all_its_entities(splits):
    partition = {"Arland": "train", "Borland": "held_out"}
    family = Family("city", ("country", "currency"))
    assert splits(family, partition) == {"Aburg": "train", "Aton": "train", "Bburg": "held_out"}


def test_a_chain_over_two_partitions_is_dropped(world):
    # No real chain crosses a partition, so this test divides a country between two.
    (question,) = [
        q
        for q in questions(Family("city", ("country", "currency")), world, seed=0)
        if q.pages[0].title == "Aton"
    ]
    foreign = question.pages[1].__class__("country", "Borland", {}, "Borland")
    mixed = question.__class__(
        question.family, (question.pages[0], foreign), question.facts, question.text
    )
    partition = {"Arland": "train", "Borland": "held_out"}
    assert split_of(mixed, partition, 0.0, seed=0) is None


def test_untrained_families_are_ood_and_three_hops_use_training_entities(splits):
    partition = {"Arland": "train", "Borland": "held_out"}
    three_hops = Family("city", ("country", "capital", "population"), trained=False)
    element = Family("element", ("discovery place", "capital"), trained=False)
    assert splits(three_hops, partition) == {"Aton": "ood"}
    assert splits(three_hops, {"Arland": "held_out", "Borland": "train"}) == {"Aton": None}
    assert splits(element, partition) == {"Unobtainium": "ood"}


def test_in_domain_takes_its_share_of_the_training_questions_only(splits):
    partition = dict.fromkeys(("Arland", "Borland"), "train")
    family = Family("city", ("population",))
    assert set(splits(family, partition, fraction=1.0).values()) == {"in_domain"}
    assert set(splits(family, partition, fraction=0.0).values()) == {"train"}
    held_out = dict.fromkeys(("Arland", "Borland"), "held_out")
    assert set(splits(family, held_out, fraction=1.0).values()) == {"held_out"}


def test_choose_balances_families_and_hops_and_interleaves_them(country, city):
    countries = [country(name, f"{name}burg") for name in NAMES]
    cities = [city(f"{name}burg", of=name) for name in NAMES]
    pages = build_pages(countries, cities, [], max_list_items=3)
    families = [
        Family("country", ("capital",)),
        Family("city", ("population",)),
        Family("country", ("capital", "population")),
    ]
    pool = [q for family in families for q in questions(family, pages, seed=0)]
    chosen = choose(pool, 20, one_hop_share=0.5, seed=0)
    assert Counter(q.family.name for q in chosen) == {
        "country.capital": 5,
        "city.population": 5,
        "country.capital.population": 10,
    }
    assert Counter(q.family.hops for q in chosen[:8]) == {1: 4, 2: 4}
    assert chosen == choose(pool[::-1], 20, one_hop_share=0.5, seed=0)
