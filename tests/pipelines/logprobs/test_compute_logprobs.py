"""Log-probs through the node."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from agent_r1 import tables
from agent_r1.training.optimizer import write_empty
from tests.support.nodes import compute_logprobs
from tests.support.step_tables import rollouts, step
from tests.support.tiny_models import write_policy

TABLE = rollouts(
    step("p/0", 0, [1, 2], [3, 4, 5]),
    step("p/0", 1, [6], [7]),
    step("p/1", 0, [1, 2], [8, 9], temperature=0.5),
    step("p/2", 0, [], [], action_type="none"),
)


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path, Path]:
    """Policy, another policy as the reference, empty critic."""
    for name in ("policy", "reference", "critic"):
        (tmp_path / name).mkdir()
    return (
        write_policy(tmp_path / "policy"),
        write_policy(tmp_path / "reference", seed=1),
        write_empty(tmp_path / "critic", "no critic"),
    )


def test_a_row_per_step_and_a_number_per_token(folders: tuple[Path, Path, Path]) -> None:
    table = compute_logprobs(TABLE, *folders, {}, {})
    assert table.equals(tables.conform(table, "logprobs"))
    for column in ("policy_logprobs", "reference_logprobs"):
        assert [len(values) for values in table[column]] == [3, 1, 2, 0]
        assert max(value for values in table[column] for value in values) < 0
    assert table["policy_logprobs"].tolist() != table["reference_logprobs"].tolist()
    assert table["values"].isna().all()
    assert table["bootstrap_value"].isna().all()


def test_p23_against_itself_every_log_ratio_is_exactly_zero(
    folders: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    policy, _, critic = folders
    (tmp_path / "copy").mkdir()
    table = compute_logprobs(TABLE, policy, write_policy(tmp_path / "copy"), critic, {}, {})
    assert table["policy_logprobs"].tolist() == table["reference_logprobs"].tolist()


def test_the_reference_can_be_left_out(folders: tuple[Path, Path, Path]) -> None:
    table = compute_logprobs(TABLE, *folders, {"reference": False}, {})
    assert table["reference_logprobs"].isna().all()


def test_rows_may_stand_in_any_order(folders: tuple[Path, Path, Path]) -> None:
    expected = compute_logprobs(TABLE, *folders, {}, {})
    order = np.array([2, 1, 3, 0])
    result = compute_logprobs(TABLE.take(order).reset_index(drop=True), *folders, {}, {})
    assert result.equals(expected.take(order).reset_index(drop=True))
