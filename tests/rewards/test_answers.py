"""Answer metrics: each one computes what its name says."""

from __future__ import annotations

import time
from typing import Any

import pytest

from agent_r1.rewards.answers import (
    coverage,
    exact_match,
    extract_answer,
    f1,
    normalize,
    numeric,
    substring,
)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The  Eiffel-Tower!", "eiffeltower"),
        ("a U.S. citizen", "us citizen"),
        ("An apple, the pear", "apple pear"),
        ("theatre", "theatre"),
        ("São Tomé", "são tomé"),
    ],
)
def test_normalize(text: str, normal: str) -> None:
    assert normalize(text) == normal


def test_p35_an_exact_match_is_not_a_substring_match() -> None:
    assert exact_match("the paris.", ["Paris"]) == 1
    assert exact_match("Paris, France", ["Paris"]) == 0
    assert substring("It is Paris, France", ["Paris"]) == 1
    assert substring("Parisian", ["Paris"]) == 0
    assert substring("anything", [""]) == 0
    assert f1("Paris, France", ["Paris"]) == pytest.approx(2 / 3)


def test_any_accepted_answer_counts_and_the_best_one_is_taken() -> None:
    assert exact_match("Holland", ["Netherlands", "Holland"]) == 1
    assert f1("New York City", ["York", "New York"]) == pytest.approx(0.8)
    assert exact_match("x", []) == f1("x", []) == 0


def test_f1_counts_repeated_words_once_per_occurrence() -> None:
    assert f1("blue blue red", ["blue"]) == pytest.approx(2 * 1 / (3 + 1))
    assert f1("the", ["an"]) == 1  # both are empty after normalisation


@pytest.mark.parametrize(
    ("said", "accepted", "value"),
    [
        ("Yes.", "yes", 1),
        ("yes, they are", "yes", 0),
        ("no", "no man's land", 0),
        ("noanswer", "no answer", 0),
        ("yes sir", "yes man", 0.5),  # neither is only yes or no
    ],
)
def test_p35_yes_or_no_gets_no_partial_credit(said: str, accepted: str, value: float) -> None:
    """As in hotpot_evaluate_v1.py and 2wikimultihop_evaluate_v1.1.py."""
    assert f1(said, [accepted]) == value
    assert f1(said, ["other", accepted]) == value


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<answer> Paris </answer>", "Paris"),
        ("so <answer>Rome</answer>, no: <answer>Paris</answer>", "Paris"),
        ("<think>maybe <answer>Rome</answer></think>\n<answer>Paris</answer>", "Paris"),
        ("Paris", "Paris"),
        ("<answer></answer>", ""),
    ],
)
def test_extract_answer(text: str, answer: str) -> None:
    assert extract_answer(text) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Thought: done.\nAction: finish[ Paris ]", "Paris"),
        ("```python\nfinal_answer('Paris')\n```", "Paris"),
        (
            "<|channel|>analysis<|message|>Rome?<|end|><|start|>assistant"
            "<|channel|>final<|message|>Paris",
            "Paris",
        ),
        ("<think>Rome</think>\nIt is Paris.", "It is Paris."),
    ],
)
def test_the_answer_is_found_in_every_call_format(text: str, answer: str) -> None:
    assert extract_answer(text) == answer


def test_chinese_is_compared_by_characters() -> None:
    assert exact_match("“绍 兴”。", ["绍兴"]) == 1
    assert exact_match("绍兴市", ["绍兴"]) == 0
    assert f1("绍兴市", ["绍兴"]) == pytest.approx(2 * 2 / (3 + 2))
    assert f1("2008年", ["２００８年"]) == 1
    assert substring("他出生于绍兴市。", ["绍兴"]) == 1
    assert substring("绍大兴", ["绍兴"]) == 0
    assert normalize("A股") == "a 股"


@pytest.mark.parametrize(
    ("said", "reference", "value"),
    [
        ("It is Oslo.", "Oslo", 1),
        ("Oslomarka", "Oslo", 0),
        ("It has 1,234 people", 1234, 1),
        ("yes", True, 1),
        ("no", True, 0),
        ("Ann and Cy", ["Ann", "Bo", "Cy"], 2 / 3),
        ("Ann: 7, Bo: 8", {"Ann": 7, "Bo": 9}, 3 / 4),  # two keys and one value of four parts
        ("Ann: 7", {"Ann": [7, 8], "Bo": 9}, 1 / 4),  # 8, Bo and 9 are missing
        ("nothing", {"Ann": [1, 2, 3, 4]}, 0),  # five of two: nested lists are flattened
        ("anything", [], 0),
        ("anything", "the", 0),
    ],
)
def test_coverage_is_fanoutqas_loose_accuracy(said: str, reference: Any, value: float) -> None:
    assert coverage(said, reference) == pytest.approx(value)


@pytest.mark.parametrize(
    ("prediction", "answer", "exact", "overlap"),
    [
        ("\uff11\uff19\uff12\uff13", "1923", 1, 1),  # full-width digits alone
        ("《Hamlet》", "Hamlet", 1, 1),  # only the punctuation is Chinese
        ("the Beatles。", "Beatles", 1, 1),  # still English: articles are dropped
        ("ＡＢＣ社", "abc社", 1, 1),
        ("ﾄｳｷｮｳ", "トウキョウ", 1, 1),  # half-width kana
        ("東京タワー", "東京", 0, 2 * 2 / (5 + 2)),
        ("か", "が", 0, 0),
        ("서울특별시", "서울", 0, 2 * 2 / (5 + 2)),  # compared by syllable, not by letter
        ("부산", "서울", 0, 0),
        ("서\u1109\u116e", "서수", 1, 1),  # one syllable is written as its letters
        ("北京 (Beijing)", "Beijing", 0, 2 * 1 / (3 + 1)),
        ("iPhone 15手机", "iphone15 手机", 0, 2 * 2 / (4 + 3)),  # spaces separate Latin words
    ],
)
def test_each_script_is_compared_in_its_own_units(prediction, answer, exact, overlap) -> None:
    assert exact_match(prediction, [answer]) == exact
    assert f1(prediction, [answer]) == pytest.approx(overlap)


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("约300公里", 1),
        ("答案是３００。", 1),
        ("共300元，不是200元", 0),
        ("三百", 0),
        ("-300度", 0),
        ("\u2212300度", 0),
    ],
)
def test_a_number_may_follow_a_chinese_word_directly(said: str, value: float) -> None:
    assert numeric(said, ["300"]) == value


def test_unclosed_tags_are_parsed_in_linear_time() -> None:
    started = time.process_time()
    assert extract_answer("<answer>Paris</answer>" + "<answer>" * 20_000) == "Paris"
    assert time.process_time() - started < 2
