"""The nodes of the warm start."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from agent_r1 import tables
from agent_r1.parameters import ParameterError
from agent_r1.storage.hashing import folder_sha256
from agent_r1.training.optimizer import is_empty
from agent_r1.training.policy import ModelFolderError
from tests.support.nodes import import_policy, train_sft
from tests.support.step_tables import rollouts, step
from tests.support.tiny_models import VOCABULARY, write_policy

RANDOM = np.random.default_rng(0)
DEMONSTRATIONS = rollouts(
    *(step(f"q/{i}", 0, [1, 2], RANDOM.integers(0, VOCABULARY, 4).tolist()) for i in range(6))
)
SFT = {"steps": 3, "batch_size": 2, "learning_rate": 0.01, "warmup_steps": 0}


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A policy, in a working directory of its own (nodes stage below it)."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "base").mkdir()
    return write_policy(tmp_path / "base")


def test_the_base_policy_is_imported_into_the_staging_area(base: Path) -> None:
    imported = import_policy({"path": str(base)})
    assert imported.parents[1] == Path("data/.staging")
    assert folder_sha256(imported) == folder_sha256(base)


def test_a_missing_model_folder_is_named(base: Path) -> None:
    with pytest.raises(ModelFolderError, match="'nowhere' does not exist"):
        import_policy({"path": "nowhere"})


def test_what_rl_starts_from(base: Path) -> None:
    policy, critic, state, controllers, metrics = train_sft(base, DEMONSTRATIONS, SFT, {}, 0)
    assert folder_sha256(policy) != folder_sha256(base)
    assert is_empty(critic)
    assert is_empty(state)
    assert controllers == {}
    assert metrics["step"].unique().tolist() == [0, 1, 2]
    assert metrics.equals(tables.conform(metrics, "metrics"))


def test_the_same_seed_gives_the_same_bytes(base: Path) -> None:
    first, second, other = (train_sft(base, DEMONSTRATIONS, SFT, {}, seed)[0] for seed in (0, 0, 1))
    assert folder_sha256(first) == folder_sha256(second)
    assert folder_sha256(first) != folder_sha256(other)


def test_disabled_it_passes_the_base_on_unchanged(base: Path) -> None:
    policy, *_, metrics = train_sft(base, DEMONSTRATIONS, {"enabled": False}, {}, 0)
    assert folder_sha256(policy) == folder_sha256(base)
    assert len(metrics) == 0


def test_an_unknown_parameter_is_named(base: Path) -> None:
    with pytest.raises(ParameterError, match=r"'sft.step'. Did you mean 'steps'"):
        train_sft(base, DEMONSTRATIONS, {"step": 3}, {}, 0)
