"""Every shipped algorithm runs from rollouts to the next policy, on a short but real experiment."""

from __future__ import annotations

import pytest

from tests.support.small_experiment import REPOSITORY, SmallExperiments

pytestmark = pytest.mark.slow

ALGORITHMS = sorted(path.stem for path in (REPOSITORY / "conf/algorithms").glob("*.yml"))


FIRST = {"dapo": "generate_rollouts", "ppo": "generate_rollouts", "dpo": "score_rewards"}
"""The first stage that an algorithm changes, where it is not the advantages."""

SMALLER = {"ppo": ",rollout.tasks_per_iteration=4"}
"""The experiment has 40 training tasks."""


@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_algorithm_runs(experiments: SmallExperiments, undisturbed, name: str):
    """From the first iteration on, in a fork: all start from the same SFT policy."""
    ended = experiments.command(
        "rerun", FIRST.get(name, "compute_advantages"), "--iteration", "1",
        "--experiment", "undisturbed", "--params", f"algorithm={name}{SMALLER.get(name, '')}",
        "--downstream", "fork", "--as", f"by_{name}",
    )  # fmt: skip
    assert ended.returncode == 0, ended.output
    store = experiments.store(f"by_{name}")
    update = store.newest("iter_00002.update_policy")
    assert update.experiment == f"by_{name}"
    verified = experiments.command("verify", "--experiment", f"by_{name}")
    assert verified.returncode == 0, verified.output
    replayed = experiments.command("replay", "--iteration", "1", "--experiment", f"by_{name}")
    assert replayed.returncode == 0, replayed.output
    assert ("sampled_groups" in replayed.output) == (name == "dapo"), replayed.output
