"""The findings about a model folder."""

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
        ("qwen2.5", set(), "yes; calls in the dialect 'qwen'", "kept"),
        ("qwen3", set(), "yes; calls in the dialect 'qwen'", "removed"),
        ("llama3", set(), "yes; calls in the dialect 'llama'", "kept"),
        ("smollm2", {"native"}, "no: set chat.render_tools: true", "kept"),
        # Its reasoning is the channel analysis, which is removed once an answer follows.
        ("gpt-oss", {"hermes", "react", "code"}, "yes; calls in the dialect 'harmony'", "removed"),
    ],
)
def test_known_families(inspect, model, refused, tools, reasoning):
    result, found = inspect(model_tokenizer(model))
    assert {name for name, reason in result.refusals.items() if reason is not None} == refused
    assert found["tools rendered"].answer == tools
    kept = f"kept before a tool message; {reasoning} before a user message"
    assert found["reasoning of earlier turns"].answer == kept
    own = "single tokens" if model == "qwen3" else "ordinary text"
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


def test_a_template_that_always_fails_says_why(inspect):
    result, found = inspect(build_tokenizer("{{ raise_exception('only on Sundays') }}"))
    assert all("only on Sundays" in reason for reason in result.refusals.values())
    assert not found["extended turn by turn"].good
    assert "stop token" not in found


def test_a_refusal_says_that_another_setting_of_reasoning_works(inspect):
    forgetful = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n"
        "{{ m.content.split('</think>')[-1].lstrip('\n') }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    refusals = inspect(build_tokenizer(forgetful))[0].refusals
    assert refusals["hermes"].endswith("; it works with chat.reasoning: drop")
    assert "chat.reasoning" not in refusals["native"]  # it does not render tools either way


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
