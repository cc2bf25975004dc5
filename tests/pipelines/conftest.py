"""A policy folder that has a tokenizer and no weights: enough for whoever acts by a script."""

from __future__ import annotations

import pandas as pd
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from agent_r1 import tables
from tests.support.toy_tokenizer import SPECIALS, TAGS, wrap


@pytest.fixture(scope="session")
def policy_folder(tmp_path_factory):
    """A byte-level tokenizer with the control tokens of the agent's format, saved."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: index for index, token in enumerate([*SPECIALS, *TAGS, *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([*SPECIALS, *TAGS])
    folder = tmp_path_factory.mktemp("policy")
    wrap(tokenizer).save_pretrained(folder)
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
