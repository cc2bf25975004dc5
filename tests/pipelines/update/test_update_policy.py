"""The update through the nodes, from rollouts to the next policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors.torch import load_file

from agent_r1 import tables
from agent_r1.losses.registry import OBJECTIVES
from agent_r1.parameters import ParameterError
from agent_r1.pipelines.advantage.nodes import compute_advantages
from agent_r1.pipelines.preferences.nodes import build_preferences
from agent_r1.schemas import SchemaError
from agent_r1.storage.hashing import folder_sha256
from agent_r1.training.optimizer import write_empty
from tests.support.nodes import compute_logprobs, update_policy
from tests.support.step_tables import rewards, rollouts, step
from tests.support.tiny_models import VOCABULARY, write_policy

RANDOM = np.random.default_rng(0)
TABLE = rollouts(
    *(
        step(f"{task}/{sample}", 0, [1, 2], RANDOM.integers(0, VOCABULARY, 5).tolist())
        for task in "pq"
        for sample in range(4)
    )
)
REWARDS = rewards(TABLE, p__0=1, p__1=0, p__2=0, p__3=1, q__0=0.5, q__1=None, q__2=0.0, q__3=0.0)
UPDATE = {"aggregation": "token_mean", "warmup_steps": 0, "eps": 1e-8, "kl_coef": 0.01}
UPDATE |= {"learning_rate": 0.01, "mini_batch_trajectories": 4}


class Experiment:
    """Runs updates one after another, as the driver does."""

    def __init__(self, folder: Path) -> None:
        for name in ("policy", "critic", "state"):
            (folder / name).mkdir()
        self.start = write_policy(folder / "policy")
        self.critic = write_empty(folder / "critic", "no critic")
        self.state = write_empty(folder / "state", "no step yet")

    def update(
        self,
        iteration: str = "iter_00001",
        *,
        policy: Path | None = None,
        state: Path | None = None,
        seed: int = 0,
        table: pd.DataFrame = TABLE,
        controllers: dict[str, Any] | None = None,
        scores: pd.DataFrame = REWARDS,
        advantage: dict[str, Any] | None = None,
        **parameters: Any,
    ) -> tuple:
        policy = policy or self.start
        logprobs = compute_logprobs(table, policy, self.start, self.critic, {}, {})
        return update_policy(
            policy,
            self.start,
            self.critic,
            state or self.state,
            controllers or {},
            table,
            logprobs,
            compute_advantages(table, scores, logprobs, advantage or {}, controllers),
            build_preferences(table, scores, (UPDATE | parameters).get("objective")),
            UPDATE | parameters,
            {},
            seed,
            advantage,
            iteration=iteration,
        )


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Experiment:
    monkeypatch.chdir(tmp_path)
    return Experiment(tmp_path)


def test_an_iteration_gives_the_next_policy_and_all_that_the_next_update_needs(
    experiment: Experiment,
) -> None:
    policy, critic, state, controllers, metrics = experiment.update()
    assert folder_sha256(policy) != folder_sha256(experiment.start)
    assert folder_sha256(critic) == folder_sha256(experiment.critic)
    assert {file.name for file in state.iterdir()} == {
        "optimizer.safetensors",
        "trainer_state.json",
    }
    assert controllers == {}
    assert metrics.equals(tables.conform(metrics, "metrics"))
    values = metrics[metrics["step"] == 0].set_index("metric")["value"]
    assert values["initial_ratio_max_deviation"] < 1e-4
    assert values["trained_trajectories"] == 7
    assert values["zero_variance_groups"] == 0
    assert values["reference_kl"] == pytest.approx(0, abs=1e-6)


def test_p37_equal_inputs_give_equal_bytes_across_iterations(experiment: Experiment) -> None:
    def two_iterations(seed: int) -> list[str]:
        policy, _, state, _, _ = experiment.update(seed=seed)
        policy, _, state, _, _ = experiment.update(
            "iter_00002", policy=policy, state=state, seed=seed
        )
        return [folder_sha256(policy), folder_sha256(state)]

    first = two_iterations(0)
    assert two_iterations(0) == first
    assert two_iterations(1) != first


def test_row_order_changes_nothing(experiment: Experiment) -> None:
    expected = folder_sha256(experiment.update()[0])
    shuffled = TABLE.sample(frac=1, random_state=3).reset_index(drop=True)
    assert folder_sha256(experiment.update(table=shuffled)[0]) == expected


def test_tables_that_do_not_fit_are_refused_before_anything_is_staged(
    experiment: Experiment,
) -> None:
    logprobs = compute_logprobs(
        TABLE, experiment.start, experiment.start, experiment.critic, {}, {}
    )
    advantages = compute_advantages(TABLE, REWARDS, logprobs, {})
    with pytest.raises(SchemaError, match="'logprobs' does not hold the steps of 'rollouts'"):
        update_policy(
            experiment.start,
            experiment.start,
            experiment.critic,
            experiment.state,
            {},
            TABLE,
            logprobs.head(7),
            advantages,
            tables.empty("preferences"),
            {},
            {},
            0,
            iteration="iter_00001",
        )
    assert not Path("data/.staging").exists()


def test_unknown_parameters_and_objectives_are_named(experiment: Experiment) -> None:
    with pytest.raises(ParameterError, match=r"'update.clip_hgh'. Did you mean 'clip_high'"):
        experiment.update(clip_hgh=0.3)
    with pytest.raises(ParameterError, match=r"unknown objective 'pp_clip'. Did you mean 'ppo_cl"):
        experiment.update(objective="pp_clip")


def values(metrics: pd.DataFrame, step: int = 0) -> pd.Series:
    return metrics[metrics["step"] == step].set_index("metric")["value"]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective_moves_the_policy_and_row_order_does_not(
    experiment: Experiment, objective: str
) -> None:
    policy, _, _, _, metrics = experiment.update(objective=objective)
    assert folder_sha256(policy) != folder_sha256(experiment.start)
    assert values(metrics)["initial_ratio_max_deviation"] < 1e-4
    shuffled = TABLE.sample(frac=1, random_state=3).reset_index(drop=True)
    again = experiment.update(table=shuffled, objective=objective)[0]
    assert folder_sha256(again) == folder_sha256(policy)


def test_dpo_learns_the_better_of_each_pair(experiment: Experiment) -> None:
    _, _, _, _, metrics = experiment.update(objective="dpo", epochs=5, kl_coef=0.0)
    assert values(metrics)["trained_pairs"] == 2
    assert values(metrics)["policy_loss"] == pytest.approx(np.log(2), abs=1e-5)
    assert values(metrics)["preference_margin"] == pytest.approx(0, abs=1e-5)
    assert values(metrics, 4)["preference_accuracy"] == pytest.approx(1)
    assert values(metrics, 4)["policy_loss"] < np.log(2)


def test_without_a_pair_dpo_leaves_everything_as_it_is_and_the_next_update_goes_on(
    experiment: Experiment,
) -> None:
    tied = REWARDS.assign(trajectory_reward=REWARDS["trajectory_reward"] * 0)
    policy, _, state, _, metrics = experiment.update(objective="dpo", scores=tied)
    assert folder_sha256(policy) == folder_sha256(experiment.start)
    assert folder_sha256(state) == folder_sha256(experiment.state)
    assert values(metrics)["trained_pairs"] == 0
    assert "loss" not in values(metrics)
    after = experiment.update("iter_00002", policy=policy, state=state, objective="dpo")
    assert folder_sha256(after[0]) != folder_sha256(policy)


def test_dpo_needs_the_reference(experiment: Experiment) -> None:
    logprobs = compute_logprobs(
        TABLE, experiment.start, experiment.start, experiment.critic, {"reference": False}, {}
    )
    with pytest.raises(SchemaError, match=r"set logprobs\.reference to true"):
        update_policy(
            experiment.start,
            experiment.start,
            experiment.critic,
            experiment.state,
            {},
            TABLE,
            logprobs,
            compute_advantages(TABLE, REWARDS, logprobs, {}),
            tables.empty("preferences"),
            {"objective": "dpo"},
            {},
            0,
            iteration="iter_00001",
        )


def test_p37_a_steered_kl_coefficient_is_carried_in_the_controllers(
    experiment: Experiment,
) -> None:
    how = {"kl_target": 0.01, "kl_horizon": 70}
    policy, _, state, controllers, metrics = experiment.update(**how)
    assert values(metrics)["kl_coef"] == 0.01
    # 7 scored trajectories at a KL of 0: the error is -0.2
    assert controllers == {"kl_coef": pytest.approx(0.01 * 0.98)}
    *_, controllers, metrics = experiment.update(
        "iter_00002", policy=policy, state=state, controllers=controllers, **how
    )
    assert values(metrics)["kl_coef"] == pytest.approx(0.01 * 0.98)
    assert controllers == {"kl_coef": pytest.approx(0.01 * 0.98 * 1.02)}
    *_, controllers, metrics = experiment.update(controllers={"kl_coef": 5.0})
    assert values(metrics)["kl_coef"] == 0.01
    assert controllers == {"kl_coef": 5.0}


def test_the_gradient_of_the_first_step_is_kept_if_it_is_asked_for(experiment: Experiment) -> None:
    plain, kept = experiment.update(), experiment.update(keep_gradients=True)
    assert folder_sha256(kept[0]) == folder_sha256(plain[0])
    gradients = load_file(kept[2] / "gradients.safetensors")
    assert set(gradients) == set(load_file(kept[0] / "model.safetensors"))
    squares = sum((gradient**2).sum().item() for gradient in gradients.values())
    assert squares**0.5 == pytest.approx(values(kept[4])["grad_norm"], rel=1e-5)
    # It is not of the state: the next update goes on all the same, and keeps none.
    after = experiment.update("iter_00002", policy=kept[0], state=kept[2])
    expected = experiment.update("iter_00002", policy=plain[0], state=plain[2])
    assert folder_sha256(after[2]) == folder_sha256(expected[2])
    # Where no step is taken, there is no gradient, and none of an earlier update.
    tied = REWARDS.assign(trajectory_reward=REWARDS["trajectory_reward"] * 0)
    none = experiment.update(state=kept[2], objective="dpo", scores=tied, keep_gradients=True)
    assert folder_sha256(none[2]) == folder_sha256(plain[2])


def test_p37_deepspeed_continues_from_what_it_wrote(experiment: Experiment) -> None:
    def two_iterations() -> list[str]:
        policy, _, state, _, _ = experiment.update(strategy="deepspeed")
        policy, _, state, _, _ = experiment.update(
            "iter_00002", policy=policy, state=state, strategy="deepspeed"
        )
        return [folder_sha256(policy), folder_sha256(state)]

    assert two_iterations() == two_iterations()


def test_p37_the_coefficient_of_the_kl_in_the_reward_is_steered_too(
    experiment: Experiment,
) -> None:
    how = {"kl_target": 0.01, "kl_horizon": 70, "advantage": {
        "kl_coef": 0.5, "kl_target": 0.02, "kl_horizon": 700,
    }}  # fmt: skip
    policy, _, state, controllers, metrics = experiment.update(**how)
    assert values(metrics)["reward_kl_coef"] == 0.5
    # 7 scored trajectories at a KL of 0: the error is -0.2, and each has its own horizon
    expected = {"kl_coef": 0.01 * 0.98, "reward_kl_coef": 0.5 * 0.998}
    assert controllers == pytest.approx(expected)
    *_, metrics = experiment.update(
        "iter_00002", policy=policy, state=state, controllers=controllers, **how
    )
    assert values(metrics)["reward_kl_coef"] == pytest.approx(0.499)
    *_, controllers, metrics = experiment.update(controllers={"reward_kl_coef": 5.0})
    assert "reward_kl_coef" not in values(metrics)
    assert controllers == {"reward_kl_coef": 5.0}  # of a run that steered it; nobody reads it
