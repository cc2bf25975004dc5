"""A whole experiment by DeepSpeed in one process: what is left in it changes no later stage."""

from __future__ import annotations

import pytest

from tests.support.small_experiment import SmallExperiments

pytestmark = pytest.mark.slow

NAME = "by_deepspeed"


def test_p37_each_stage_after_an_update_is_as_in_a_fresh_process(
    experiments: SmallExperiments,
) -> None:
    """Engine, log-probs and update of iteration 2 ran after DeepSpeed had been there."""
    parameters = f"experiment={NAME},update.strategy=deepspeed,update.deepspeed.zero_stage=2"
    ended = experiments.command("run", "--params", parameters)
    assert ended.returncode == 0, ended.output
    for stage in ("generate_rollouts", "compute_logprobs", "update_policy"):
        again = experiments.command("rerun", stage, "--iteration", "2", "--experiment", NAME)
        assert again.output.strip().endswith("The same bytes as before."), again.output
    for change in ("strategy: deepspeed -> torch", "deepspeed.zero_stage: 2 -> 1"):
        key, _, value = change.partition(": ")
        again = experiments.command(
            "rerun", "update_policy", "--iteration", "2", "--experiment", NAME,
            "--params", f"update.{key}={value.rpartition(' ')[2]}",
        )  # fmt: skip
        assert again.returncode == 0, again.output
        assert f"update.{change}" in again.output


def test_what_cannot_be_done_is_said_before_any_work(experiments: SmallExperiments) -> None:
    parameters = "experiment=refused,update.strategy=deepspeed,model.dtype=bfloat16"
    ended = experiments.command("run", "--params", parameters)
    assert ended.returncode == 1
    assert "set model.dtype to float32, or update.strategy to torch" in ended.output
    assert "Traceback" not in ended.output
    assert not experiments.store("refused").iterations()
