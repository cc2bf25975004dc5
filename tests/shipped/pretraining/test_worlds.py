"""Fictional worlds: chains are valid, pages contain the answers, the seed decides everything."""

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_r1.shipped.pretraining.formats import (
    FORMS,
    dialogue_marked,
    drill,
    question_answer,
    restated,
)
from agent_r1.shipped.pretraining.worlds import WorldMaker, WorldPage, WorldQuestion

NAMES = [f"Place{chr(65 + i)}{chr(97 + i)}" for i in range(26)] + ["San Roque", "Baden-Baden"]
MAKER = WorldMaker(NAMES)


@given(st.integers(), st.integers(1, 3), st.integers(2, 9))
def test_each_page_of_a_chain_names_the_next(seed, hops, facts):
    pages = MAKER.chain(Random(seed), hops, (facts, facts))
    for page, following in pairwise(pages):
        assert following.title in dict(page.facts).values()
    assert all(len(page.facts) == facts for page in pages)
    assert all(len(dict(page.facts)) == facts for page in pages), "a label stands twice"


@given(st.integers(), st.integers(1, 2))
def test_a_question_can_be_answered_by_its_own_lookups(seed, hops):
    random = Random(seed)
    question = MAKER.question(random, MAKER.chain(random, hops, (3, 6)))
    assert len(question.pages) == len(question.labels) == hops
    title = question.pages[0].title
    assert title in question.text
    for page, label in zip(question.pages, question.labels, strict=True):
        assert page.title == title
        title = page.value(label)
    assert question.answer == title


def test_equal_seeds_give_equal_worlds_and_other_seeds_others():
    def drawn(seed):
        return MAKER.chain(Random(seed), 2, (4, 4))

    assert drawn(1) == drawn(1) != drawn(2)


PAGE = WorldPage("Avan", (("river", "Belo"), ("country", "Corland")))
CORLAND = WorldPage("Corland", (("capital", "Dun"),))
QUESTION = WorldQuestion(
    "What is the capital of the country of Avan?", (PAGE, CORLAND), ("country", "capital")
)


CHAINED = [form for form in dict.fromkeys(FORMS) if form is not drill]
LOOKUPS = [form for form in CHAINED if form not in (restated, question_answer)]


@pytest.mark.parametrize("form", CHAINED)
def test_only_what_follows_from_the_text_is_learned(form):
    pieces = form(Random(0), [QUESTION])
    learned = "".join(piece.text for piece in pieces if piece.learn)
    given_text = "".join(piece.text for piece in pieces if not piece.learn)
    assert "Dun" in learned
    assert "Belo" in given_text
    assert "Belo" not in learned, "a random fact that no question asks for cannot be predicted"


@pytest.mark.parametrize("form", LOOKUPS)
def test_the_agent_writes_what_it_read_before_it_acts(form):
    pieces = form(Random(0), [QUESTION])
    reads = [i for i, piece in enumerate(pieces) if piece.read]
    said = [(pieces[i - 2].text, pieces[i].text) for i in reads]
    assert said == [("country", "Corland"), ("capital", "Dun")]
    for i in reads:
        assert pieces[i + 2].text.startswith(pieces[i].text), "the action is on what was read"


def test_made_up_markup_is_learned_only_when_it_repeats():
    for seed in range(30):
        pieces = dialogue_marked(Random(seed), [QUESTION, QUESTION])
        told = [
            i
            for i, piece in enumerate(pieces)
            if "Dun" in piece.text and piece.learn and not piece.read
        ]
        first, second = (pieces[i - 1] for i in told)
        assert (first.learn, second.learn) == (False, True)
        assert first.text == second.text


def test_a_drill_asks_for_every_fact_of_a_page_once():
    for seed in range(30):
        pieces = drill(Random(seed), [QUESTION])
        told = [piece.text.split("<")[0].strip(" .\n") for piece in pieces if piece.learn]
        assert sorted(told) == ["Belo", "Corland"]
        for label, value in PAGE.facts:
            answer = next(
                i for i, piece in enumerate(pieces) if piece.learn and value in piece.text
            )
            assert label in pieces[answer - 1].text


@pytest.mark.parametrize("form", dict.fromkeys(FORMS))
def test_no_form_is_the_agents_own_format(form):
    text = "".join(piece.text for piece in form(Random(0), [QUESTION]))
    for markup in ("<tool_call>", "<answer>", '"arguments"', '"query"'):
        assert markup not in text


@pytest.mark.parametrize("form", LOOKUPS)
def test_a_lookup_is_learned_before_its_page_is_read(form):
    text = "".join(piece.text for piece in form(Random(0), [QUESTION]))
    learned = "".join(piece.text for piece in form(Random(0), [QUESTION]) if piece.learn)
    assert "Corland" in learned
    assert text.index("Belo") < text.rindex("Corland") < text.index("Dun")
