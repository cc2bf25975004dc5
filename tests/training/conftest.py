from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.tiny_models import write_policy


@pytest.fixture(scope="session")
def policy_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_policy(tmp_path_factory.mktemp("tiny_policy"))


@pytest.fixture(scope="session")
def other_policy_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_policy(tmp_path_factory.mktemp("other_policy"), seed=1)
