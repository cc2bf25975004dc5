"""Search results are correct, and equal in every run and thread."""

from __future__ import annotations

import concurrent.futures
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_r1.environments.search import NOTHING, SearchIndex, index_pages, words

PAGES = {
    "France": "A country in Europe. Its capital is Paris.",
    "Paris": "A city.",
    "Paris, Texas": "Paris Paris Paris: a city called Paris.",
    "São Tomé": "An island.",
    "Spain": "A country in Europe. Its capital is Madrid.",
}


@pytest.fixture(scope="module")
def index():
    return SearchIndex(list(PAGES), list(PAGES.values()))


def titles(index, query, top_k):
    return [index.titles[page] for page in index.rank(query, top_k)]


def test_a_page_is_title_and_text(index):
    assert index.search("Madrid") == "Spain\nA country in Europe. Its capital is Madrid."


def test_several_pages_are_numbered(index):
    assert index.search("Madrid capital", top_k=2) == (
        "[1] Spain\nA country in Europe. Its capital is Madrid.\n\n"
        "[2] France\nA country in Europe. Its capital is Paris."
    )
    assert index.search("Madrid", top_k=2).startswith("[1] Spain\n")


def test_a_search_without_results_says_so(index):
    for query in ("Zzyzx", "", "?!", "the zebra"):
        assert index.search(query) == NOTHING == "no page matches"
        assert index.rank(query, 3) == ()


@pytest.mark.parametrize("query", ["Paris", "  pARIS ", "paris!", "Paris."])
def test_the_page_whose_title_is_the_query_is_first(index, query):
    assert titles(index, query, 2) == ["Paris", "Paris, Texas"]


def test_titles_are_compared_without_accents_and_punctuation(index):
    assert titles(index, "sao tome", 1) == ["São Tomé"]
    assert titles(index, "PARIS TEXAS", 1) == ["Paris, Texas"]
    assert words("São-Tomé's 2nd") == ["sao", "tome", "s", "2nd"]


def test_pages_with_equal_scores_are_in_corpus_order(index):
    assert titles(index, "Europe", 5) == ["France", "Spain"]
    same = SearchIndex([f"p{i}" for i in range(50)], ["the same words"] * 50)
    assert same.rank("same", 3) == (0, 1, 2)
    assert same.rank("p7 same", 3) == (7, 0, 1)


def test_pages_with_one_title_are_in_corpus_order():
    index = SearchIndex(["b", "a", "A"], ["x", "a a a a", "y"])
    assert index.rank("a", 5) == (1, 2)


def test_empty_corpora_and_pages_find_nothing():
    assert SearchIndex([], []).search("x") == NOTHING
    assert SearchIndex(["", "?"], ["", "!"]).search("x") == NOTHING
    assert SearchIndex(["", "a"], ["", "b"]).search("b") == "a\nb"


def test_an_index_is_built_once_per_content():
    one = index_pages(["a", "b"], ["x", "y"])
    assert index_pages(("a", "b"), ("x", "y")) is one
    assert index_pages(["a", "b"], ["x", "z"]) is not one
    assert index_pages(["a", "bx"], ["x", "y"]) is not index_pages(["a", "b"], ["xx", "y"])


def test_threads_get_the_same_results(index):
    queries = ["Paris", "capital", "Europe city", "island", "Texas"] * 40
    alone = [index.rank(query, 3) for query in queries]
    fresh = SearchIndex(index.titles, index.texts)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda query: fresh.rank(query, 3), queries)) == alone


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.text("ab ", max_size=6), min_size=1, max_size=12),
    st.text("ab ", max_size=4),
    st.integers(1, 5),
)
def test_fewer_results_are_a_prefix_of_more(texts, query, top_k):
    index = SearchIndex([f"t{i}" for i in range(len(texts))], texts)
    assert index.rank(query, 20)[:top_k] == index.rank(query, top_k)
    matching = [page for page, text in enumerate(texts) if set(words(query)) & set(words(text))]
    assert sorted(index.rank(query, 20)) == matching


def test_ranks_do_not_depend_on_the_interpreters_hash_seed():
    script = (
        "from agent_r1.environments.search import SearchIndex\n"
        "pages = [f'{a} {b} {c}' for a in 'uvw' for b in 'xyz' for c in 'uvwxyz']\n"
        "index = SearchIndex(pages, pages)\n"
        "print([index.rank(q, 9) for q in ('u x', 'w z y', 'v')])\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
