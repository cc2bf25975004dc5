"""What is found out about a model folder."""

from __future__ import annotations

import json

import pytest

from agent_r1.chat import ChatParameters
from agent_r1.chat.inspection import inspect_template
from agent_r1.parameters import ParameterError
from tests.support.model_templates import MODELS, model_tokenizer
from tests.support.toy_tokenizer import build_tokenizer


@pytest.fixture
def inspect(tmp_path):
    def save(tokenizer, **configuration):
        tokenizer.save_pretrained(tmp_path)
        (tmp_path / "generation_config.json").write_text(json.dumps(configuration))
        result = inspect_template(tmp_path, ChatParameters())
        return result, {one.question: one for one in result.findings}

    return save


@pytest.mark.parametrize(
    ("model", "refused", "tools", "reasoning"),
    [
        ("qwen2.5", set(), "yes; calls in the dialect 'qwen'", "tool message kept; behind a user "
         "message kept"),
        ("qwen3", set(), "yes; calls in the dialect 'qwen'", "tool message kept; behind a user "
         "message taken out"),
        ("llama3", set(), "yes; calls in the dialect 'llama'", "tool message kept; behind a user "
         "message kept"),
        ("smollm2", {"native"}, "no: set chat.render_tools: true", "tool message kept; behind a "
         "user message kept"),
        # Its channel analysis, that is: gone once an answer follows.
        ("gpt-oss", {"hermes", "react", "code"}, "yes; calls in the dialect 'harmony'",
         "tool message kept; behind a user message taken out"),
    ],
)  # fmt: skip
def test_the_families_that_are_known(inspect, model, refused, tools, reasoning):
    result, found = inspect(model_tokenizer(model))
    assert {name for name, reason in result.refusals.items() if reason is not None} == refused
    assert found["tools rendered"].answer == tools
    assert found["reasoning of earlier turns"].answer == f"behind a {reasoning}"
    own = "tokens of their own" if model == "qwen3" else "ordinary text"
    assert found["<think> and </think>"].answer == own
    assert ("date" in found) == (model in ("llama3", "gpt-oss"))
    assert set(MODELS) >= {model}


def test_the_stop_token_is_looked_for_in_both_places(inspect):
    tokenizer = build_tokenizer()
    assert inspect(tokenizer)[1]["stop token"].good
    tokenizer.eos_token = "<|endoftext|>"
    stop = inspect(tokenizer, eos_token_id=0)[1]["stop token"]
    assert not stop.good
    assert stop.answer.startswith("<|im_end|> is neither the tokenizer's eos_token nor in")
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    assert inspect(tokenizer, eos_token_id=[0, end])[1]["stop token"].good


def test_a_template_that_can_do_nothing_says_why(inspect):
    result, found = inspect(build_tokenizer("{{ raise_exception('only on Sundays') }}"))
    assert all("only on Sundays" in reason for reason in result.refusals.values())
    assert not found["extended turn by turn"].good
    assert "stop token" not in found


def test_a_refusal_says_where_the_other_treatment_of_reasoning_works(inspect):
    forgetful = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n"
        "{{ m.content.split('</think>')[-1].lstrip('\n') }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    refusals = inspect(build_tokenizer(forgetful))[0].refusals
    assert refusals["hermes"].endswith("; it works with chat.reasoning: drop")
    assert "chat.reasoning" not in refusals["native"]  # no tools, one way or the other


def test_a_refusal_shows_no_marks(inspect):
    refusals = inspect(model_tokenizer("gpt-oss"))[0].refusals
    assert "the whole has '<|channel|>final<|message|>{text}<|end|>' where" in refusals["hermes"]


@pytest.mark.parametrize("content", ["{oops", "[1]", b"\xff"])
def test_a_broken_generation_config_is_named(tmp_path, content):
    build_tokenizer().save_pretrained(tmp_path)
    raw = content if isinstance(content, bytes) else content.encode()
    (tmp_path / "generation_config.json").write_bytes(raw)
    with pytest.raises(ParameterError, match=r"generation_config\.json' is not"):
        inspect_template(tmp_path, ChatParameters())


def test_a_folder_without_a_template_is_refused(inspect):
    with pytest.raises(ParameterError, match="no chat template"):
        inspect(build_tokenizer(None))
