"""Words of languages without spaces between words."""

from __future__ import annotations

import pytest

from agent_r1.environments.search import SearchIndex, words
from agent_r1.tasks.segmentation import has_cjk, pairs, segments


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2008年北京 Olympics", ["2008", "年", "北", "京", "Olympics"]),
        ("the Eiffel-Tower", ["the", "Eiffel-Tower"]),
        ("東京タワー", ["東", "京", "タ", "ワ", "ー"]),
        ("", []),
    ],
)
def test_segments(text, expected):
    assert segments(text) == expected


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("北京大学", ["北京", "京大", "大学"]),
        ("年", ["年"]),
        ("iphone15手机壳x", ["iphone15", "手机", "机壳", "x"]),
        ("paris", ["paris"]),
    ],
)
def test_pairs(word, expected):
    assert pairs(word) == expected


def test_cjk_is_recognised():
    assert has_cjk("a 京")
    assert has_cjk("か")
    assert has_cjk("서울")
    assert not has_cjk("São Tomé, Größe, Ελλάδα, Москва")


def test_words_of_a_search():
    assert words("《呐喊》的作者是鲁迅。") == ["呐喊", "的作", "作者", "者是", "是鲁", "鲁迅"]
    assert words("が") == ["が"] != words("か")
    assert words("서울 도시") == ["서울", "도시"]
    assert words("\uff12\uff10\uff10\uff18年\uff2e\uff22\uff21") == [
        "2008",
        "年",
        "nba",
    ]  # full width
    assert words("ﾄｳｷｮｳ") == words("トウキョウ") == ["トウ", "ウキ", "キョ", "ョウ"]
    assert words("São-Tomé's 2nd") == ["sao", "tome", "s", "2nd"]


def test_a_page_is_found_by_a_part_of_its_text():
    index = SearchIndex(["鲁迅", "北京"], ["出生于浙江省绍兴市。", "中国的首都。"])
    assert index.rank("哪里的首都", 2) == (1,)
    assert index.rank("绍兴市", 2) == (0,)
    assert index.rank("鲁迅", 2)[0] == 0
