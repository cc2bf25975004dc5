"""A small iteration against numbers that were recorded once: `reference.json`.

`test_equivalent_updates` holds ways of computing an update against each other, and cannot see a
change that all of them share. Here each of them is held against the same committed numbers: the
rewards, advantages and log-probs of each trajectory, the metrics of each optimizer step, and the
log-probs after the last one. ``python -m tests.invariant.record`` records them again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from agent_r1.losses.base import LossParameters, ObjectiveInputs, TokenLosses
from agent_r1.losses.registry import OBJECTIVES
from tests.invariant.fixed_iteration import UPDATE, FixedIteration
from tests.invariant.record import REFERENCE
from tests.invariant.ways import CLASSES

TOLERANCE = {"rel": 1e-4, "abs": 1e-6}
"""Other kernels (``ATEN_CPU_CAPABILITY=default``), other numbers of threads and all ways differ by
2e-6 at most, relative, and by 2e-7 where a loss is near 0: float32 rounds at 1e-7, and six
optimizer steps add up. An error of 1 % is 100 times the tolerance."""

RECORDED = json.loads(REFERENCE.read_text(encoding="utf-8"))


def flat(numbers: Any, name: str = "") -> dict[str, float]:
    """``loss.3`` → the number there, of nested mappings and lists."""
    if isinstance(numbers, float):
        return {name: numbers}
    items = numbers.items() if isinstance(numbers, dict) else enumerate(numbers)
    parts = [flat(value, f"{name}.{key}".lstrip(".")) for key, value in items]
    return {key: value for part in parts for key, value in part.items()}


def recorded(objective: str) -> Any:
    return pytest.approx(flat(RECORDED["updates"][objective]), **TOLERANCE)


@pytest.fixture(scope="module")
def iteration(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FixedIteration]:
    folder = tmp_path_factory.mktemp("fixed")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)  # checkpoints are staged below it
        yield FixedIteration(folder)


def test_rewards_log_probs_and_advantages_are_the_recorded_ones(iteration: FixedIteration) -> None:
    before = {key: value for key, value in RECORDED.items() if key != "updates"}
    assert flat(iteration.before_the_update()) == pytest.approx(flat(before), **TOLERANCE)


@pytest.mark.parametrize(
    ("objective", "way"),
    [(objective, way) for objective, ways in CLASSES.items() for way in ("reference", *ways)],
)
def test_each_way_gives_the_recorded_update(
    iteration: FixedIteration, objective: str, way: str
) -> None:
    assert flat(iteration.update(objective, way)) == recorded(objective)


@pytest.mark.parametrize(
    "changes",
    [
        {"clip_high": 0.29},
        {"clip_low": 0.19},
        {"learning_rate": 1.01 * UPDATE["learning_rate"]},
        {"betas": [0.9, 0.99]},
        {"max_grad_norm": 1.01},
        {"kl_coef": 1e-3},
    ],
    ids=lambda changes: "".join(changes),
)
def test_another_setting_is_seen(iteration: FixedIteration, changes: dict[str, Any]) -> None:
    assert flat(iteration.update("token_mean", **changes)) != recorded("token_mean")


@pytest.mark.parametrize("objective", ["token_mean", "gspo", "dpo"])
def test_a_loss_that_is_a_hundredth_too_large_everywhere_is_seen(
    iteration: FixedIteration, monkeypatch: pytest.MonkeyPatch, objective: str
) -> None:
    name = "ppo_clip" if objective == "token_mean" else objective
    right = OBJECTIVES[name]

    def scaled(given: ObjectiveInputs, parameters: LossParameters) -> TokenLosses:
        losses = right.losses(given, parameters)
        return losses._replace(losses=1.01 * losses.losses)

    monkeypatch.setitem(OBJECTIVES, name, right._replace(losses=scaled))
    for way in ("reference", "micro_batch_1"):
        found = iteration.update(objective, way)
        first = RECORDED["updates"][objective]["grad_norm"][0]
        assert found["grad_norm"][0] == pytest.approx(1.01 * first, **TOLERANCE)
        assert flat(found) != recorded(objective)
