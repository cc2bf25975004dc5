from __future__ import annotations

import pytest

from tests.support.toy_tokenizer import build_tokenizer


@pytest.fixture(scope="session")
def tokenizer():
    """See `tests.support.toy_tokenizer`; not to be changed by a test."""
    return build_tokenizer()
