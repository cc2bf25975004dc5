from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agent_r1.engines.local import LocalEngine
from tests.support.tiny_models import engine_policy


@pytest.fixture(scope="session")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return engine_policy(tmp_path_factory.mktemp("policy"))


@pytest.fixture(scope="session")
def other_policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return engine_policy(tmp_path_factory.mktemp("other"), seed=1)


@pytest.fixture
def start_engine(policy: Path) -> Callable[..., LocalEngine]:
    """A function that makes an engine with the policy loaded."""

    def make(**options) -> LocalEngine:
        engine = LocalEngine(threads=1, **options)
        engine.load(policy, "v0")
        return engine

    return make


@pytest.fixture
def engine(start_engine: Callable[..., LocalEngine]) -> LocalEngine:
    return start_engine()
