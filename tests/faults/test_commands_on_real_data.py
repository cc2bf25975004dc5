"""``kedro verify``, ``replay``, ``rerun`` and ``lineage`` on a short but real experiment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from agent_r1 import tables
from tests.support.forked_runs import Ended
from tests.support.small_experiment import SmallExperiments

pytestmark = pytest.mark.slow

EXPERIMENT = "undisturbed"


@pytest.fixture
def kedro(experiments: SmallExperiments, undisturbed: Ended):
    """Runs a command on the undisturbed experiment."""

    def run(*arguments: str) -> Ended:
        return experiments.command(*arguments, "--experiment", EXPERIMENT)

    return run


@contextmanager
def replaced(path: Path, content: bytes) -> Iterator[None]:
    """The file has another content while the block runs."""
    before = path.read_bytes()
    path.write_bytes(content)
    try:
        yield
    finally:
        path.write_bytes(before)


def table_path(experiments: SmallExperiments, name: str) -> Path:
    return experiments.project / experiments.store(EXPERIMENT).committed(name).record.path


def with_value(path: Path, row: int, column: str, value: object) -> bytes:
    """The table's bytes with one value exchanged."""
    table = pq.read_table(path, partitioning=None)
    values = table[column].to_pylist()
    assert values[row] != value
    values[row] = value
    frame = tables.to_frame(table).assign(**{column: pd.Series(values, dtype=object)})
    schema = "rewards" if "rewards" in path.name else "rollouts"
    buffer = path.with_name("tampered")
    pq.write_table(tables.to_arrow(frame, schema), buffer)
    content = buffer.read_bytes()
    buffer.unlink()
    return content


def test_an_untouched_experiment_verifies(kedro):
    done = kedro("verify")
    assert done.returncode == 0, done.output
    assert "everything is as it was committed" in done.output


@pytest.mark.parametrize(
    ("iteration", "stage"),
    [("1", "generate_rollouts"), ("2", "generate_rollouts"), ("0", "validate_policy"),
     ("2", "evaluate_policy"), ("base", "evaluate_policy")],
)  # fmt: skip
def test_every_step_of_a_replay_matches(kedro, iteration, stage):
    done = kedro("replay", "--iteration", iteration, "--stage", stage)
    assert done.returncode == 0, done.output
    found = re.search(r"and \S+: (\d+) of (\d+) steps match \(100\.0%\)", done.output)
    assert found, done.output
    assert int(found[1]) == int(found[2]) >= 3


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [("rollouts", "observation", "Lyon\ncountry: Peru"), ("rollouts", "env_reward", 1.0),
     ("rollouts", "action_text", "Lima"), ("rollouts", "end_reason", "answered"),
     ("rewards", "reward", 0.75), ("rewards", "components", "{}")],
)  # fmt: skip
def test_what_was_tampered_with_is_named(experiments, kedro, table, column, value):
    path = table_path(experiments, f"iter_00001.{table}")
    row = 1
    step = pq.read_table(path, partitioning=None).slice(row, 1).to_pylist()[0]
    with replaced(path, with_value(path, row, column, value)):
        done = kedro("replay", "--iteration", "1")
        assert done.returncode == 1, done.output
        where = f"{step['trajectory_id']}, step {step['step_index']}, {column}: recorded "
        assert where in done.output
        assert kedro("verify").returncode == 1
    assert kedro("verify").returncode == 0


@pytest.mark.parametrize(
    ("stage", "iteration"),
    [("prepare_tasks", None), ("build_demonstrations", None), ("import_policy", "base"),
     ("train_sft", "0"), ("generate_rollouts", "1"), ("score_rewards", "1"),
     ("compute_logprobs", "1"), ("compute_advantages", "1"), ("build_preferences", "1"),
     ("update_policy", "1"), ("validate_policy", "2"), ("evaluate_policy", "2")],
)  # fmt: skip
def test_a_stage_again_gives_the_same_bytes(kedro, stage, iteration):
    where = ["--iteration", iteration] if iteration else []
    done = kedro("rerun", stage, *where)
    assert done.returncode == 0, done.output
    assert done.output.strip().endswith("The same bytes as before.")


def test_rewards_and_advantages_need_no_model(experiments, kedro):
    """All weights are away; the controllers beside them are a few numbers."""
    models = experiments.project / "data/06_models"
    weights = [path for path in models.glob("*/*/*") if path.name != "controllers.json"]
    away = {path: path.with_name(f"{path.name}.away") for path in weights}
    assert {path.name for path in weights} == {"policy", "critic", "trainer_state"}
    for path in weights:
        path.rename(away[path])
    try:
        for stage in ("score_rewards", "compute_advantages", "build_preferences"):
            done = kedro("rerun", stage, "--iteration", "2")
            assert "The same bytes as before." in done.output, done.output
    finally:
        for path in weights:
            away[path].rename(path)


def test_another_update_in_three_ways(experiments, kedro):
    before = experiments.hashes(EXPERIMENT)
    changed = ["update_policy", "--iteration", "1", "--params", "update.entropy_coef=0.2"]
    kept = kedro("rerun", *changed)
    assert "update.entropy_coef: 0.1 -> 0.2" in kept.output, kept.output
    assert "iter_00001.policy: changed (" in kept.output
    assert "Kept as they are: " in kept.output
    forked = kedro("rerun", *changed, "--downstream", "fork", "--as", "forked")
    assert forked.returncode == 0, forked.output
    assert experiments.run("cascaded").returncode == 0
    cascaded = experiments.command(
        "rerun", *changed, "--downstream", "cascade", "--experiment", "cascaded"
    )
    assert cascaded.returncode == 0, cascaded.output
    forked_hashes = experiments.hashes("forked")
    assert forked_hashes == experiments.hashes("cascaded")
    assert experiments.hashes(EXPERIMENT) == before
    differing = {name for name in before if before[name] != forked_hashes[name]}
    assert {"iter_00001.policy", "iter_00002.logprobs", "iter_00002.policy"} <= differing
    assert not any(name.startswith(("base.", "iter_00000.")) for name in differing)
    assert "iter_00001.rollouts" not in differing
    for name in ("forked", "cascaded", EXPERIMENT):
        verified = experiments.command("verify", "--experiment", name)
        assert verified.returncode == 0, verified.output


def test_lineage_leads_from_a_number_to_the_raw_data(kedro):
    shown = kedro("lineage", "evaluation", "--iteration", "2")
    assert shown.returncode == 0, shown.output
    for name in ("iter_00002.evaluation", "iter_00001.rollouts", "base.policy", "countries"):
        assert name in shown.output
