"""Loading a tokenizer from a folder."""

from __future__ import annotations

import json

import pytest

from agent_r1.chat import ChatParameters, load_tokenizer, make_format
from agent_r1.parameters import ParameterError


def test_a_saved_tokenizer_comes_back(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path)
    loaded = load_tokenizer(tmp_path)
    chat, again = (make_format(ChatParameters(), each) for each in (tokenizer, loaded))
    assert again.prompt_ids("France?", []) == chat.prompt_ids("France?", [])
    assert again.stop_token_ids == chat.stop_token_ids


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(ParameterError, match="nowhere' does not exist"):
        load_tokenizer(tmp_path / "nowhere")


def test_a_folder_without_a_tokenizer_is_refused(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}))
    with pytest.raises(ParameterError, match="has no tokenizer that can be loaded"):
        load_tokenizer(tmp_path)


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="has no tokenizer"):
        load_tokenizer(tmp_path)
