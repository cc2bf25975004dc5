"""Which tokens of a turn are reasoning."""

from __future__ import annotations

import pytest

from agent_r1.chat import ChatParameters, make_format
from agent_r1.chat.reasoning import think_spans, token_spans
from tests.support.model_templates import model_tokenizer


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("<think>\nR\n</think>\n\nSo: x", "So: x"),
        ("R</think>x", "x"),
        ("<think>a</think>b<think>c</think>\nd", "d"),
        ("no reasoning", "no reasoning"),
        ("<think>never closed", "<think>never closed"),
        ("<think>R</think>", ""),
    ],
)
def test_reasoning_ends_after_the_last_closing_tag(text, kept):
    spans = think_spans(text)
    assert text[spans[0][1] if spans else 0 :] == kept


def pieces(*texts):
    return (lambda ids: "".join(texts[i] for i in ids)), list(range(len(texts)))


def test_spans_of_characters_become_tokens():
    decode, ids = pieces("<think>", "R", "</think>", "\n\n", "x", "y")
    assert token_spans(decode, ids, [(0, 18)]) == [(0, 4)]
    assert token_spans(decode, ids, [(7, 8), (18, 19)]) == [(1, 2), (4, 5)]


def test_a_token_that_holds_more_than_reasoning_stays():
    decode, ids = pieces("a<", "think>R</think", "><answer>", "x")
    assert token_spans(decode, ids, [(1, 17)]) == [(1, 2)]
    assert token_spans(decode, ids, [(0, 1)]) == []


@pytest.mark.parametrize("model", ["qwen2.5", "qwen3"])
def test_the_reasoning_of_an_action(model):
    """In Qwen3 the tags are single tokens, in Qwen2.5 they are ordinary text."""
    tokenizer = model_tokenizer(model)
    chat = make_format(ChatParameters(), tokenizer)
    said = "<answer>Paris</answer>"
    ids = tokenizer.encode(f"<think>\nFrance, café.\n</think>\n\n{said}<|im_end|>")
    [(begin, end)] = chat.reasoning_spans(ids)
    assert begin == 0
    assert tokenizer.decode(ids[end:]) == said + "<|im_end|>"
    assert chat.reasoning_spans(tokenizer.encode(said)) == []
    assert chat.reasoning_spans([]) == []
