"""A policy folder that has a tokenizer and no weights: enough for whoever acts by a script."""

from __future__ import annotations

import pandas as pd
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from agent_r1 import tables

_SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
_TAGS = ["<tool_call>", "</tool_call>", "<answer>", "</answer>"]
_CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.fixture(scope="session")
def policy_folder(tmp_path_factory):
    """A byte-level tokenizer with the control tokens of the agent's format, saved."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: index for index, token in enumerate([*_SPECIALS, *_TAGS, *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([*_SPECIALS, *_TAGS])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    fast.chat_template = _CHATML
    folder = tmp_path_factory.mktemp("policy")
    fast.save_pretrained(folder)
    return folder


@pytest.fixture
def documents() -> pd.DataFrame:
    pages = {
        "Aton": "country: Arland\npopulation: 5",
        "Arland": "capital: Aburg\ncurrency: Crown",
        "Borland": "capital: Bburg\ncurrency: Thaler",
    }
    rows = [{"document_id": t, "title": t, "text": text} for t, text in pages.items()]
    return tables.from_rows(rows, "documents")
