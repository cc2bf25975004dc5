"""The update's metrics have the values that their definitions give."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from agent_r1.pipelines.advantage.nodes import compute_advantages
from agent_r1.training.accumulation import accumulate
from agent_r1.training.logprobs import head_of
from agent_r1.training.strategies import TorchStrategy
from agent_r1.training.update import UpdateParameters
from agent_r1.training.update_batch import health, prepare
from tests.support.step_tables import per_token, rewards, rollouts, step
from tests.support.tiny_models import VOCABULARY, random_model
from tests.support.update_batches import (
    AT_POLICY,
    AT_REFERENCE,
    MOVED,
    OWNER,
    PLAIN,
    TOKENS,
    A,
    batch,
    gradient,
    metric,
    run,
    update_tables,
)


def test_p23_the_kl_to_the_policy_itself_is_zero() -> None:
    table, logprobs, advantages = update_tables()
    logprobs = logprobs.assign(reference_logprobs=logprobs["policy_logprobs"])
    _, metrics = run(prepare(table, logprobs, advantages, needs_reference=True))
    assert metric(metrics, "reference_kl")[0] == pytest.approx(0, abs=1e-6)


def test_p25_the_drift_between_sampler_and_trainer_is_reported() -> None:
    sampled = AT_POLICY.copy()
    sampled[0] += 0.5
    values = health(batch(sampler_logprobs=sampled), np.arange(9))
    assert values["logprob_drift_max"] == pytest.approx(0.5, abs=1e-5)
    assert values["logprob_drift_mean"] == pytest.approx(0.5 / TOKENS, abs=1e-5)


def test_p06_masked_tokens_are_in_no_metric() -> None:
    mask = np.arange(TOKENS) > 2
    broken = np.where(mask, AT_POLICY, [np.nan, -np.inf, np.inf, *AT_POLICY[3:]]).astype(np.float32)
    of = batch(mask=mask, policy_logprobs=broken, sampler_logprobs=broken, advantages=A * mask)
    _, metrics = run(of)
    assert metrics["value"].map(np.isfinite).all()


def test_p40_shares_of_groups_and_clips_match_their_definitions() -> None:
    partly = np.where(np.char.startswith(OWNER.astype(str), "p"), 0.0, A)
    unscored = OWNER != "r/0"
    values = health(batch(advantages=partly, mask=unscored), np.arange(8))
    assert values["zero_variance_groups"] == pytest.approx(1 / 2)  # p, but not q
    assert values["trained_trajectories"] == 8

    # an old policy at which every ratio is 2 (above) or 1/2 (below)
    up = np.where(np.arange(TOKENS) % 2, np.log(2), -np.log(2))
    of = batch(advantages=np.ones(TOKENS), policy_logprobs=AT_POLICY - up.astype(np.float32))
    _, metrics = run(of)
    high = (np.arange(TOKENS) % 2).mean()
    assert metric(metrics, "clip_fraction_high") == pytest.approx([high])
    assert metric(metrics, "clip_fraction_low") == [0]
    assert metric(metrics, "ratio_mean") == pytest.approx([2 * high + 0.5 * (1 - high)], abs=1e-4)
    assert metric(metrics, "ratio_max") == pytest.approx([2], abs=1e-3)


def test_p40_groups_without_variance_and_singletons_are_counted() -> None:
    """p has variance, q has none, r has one member, s one scored and one unscored member."""
    table = rollouts(*(step(name) for name in ("p/0", "p/1", "q/0", "q/1", "r/0", "s/0", "s/1")))
    scored = rewards(table, p__0=1.0, p__1=0.0, q__0=0.5, q__1=0.5, r__0=1.0, s__0=1.0, s__1=None)
    logprobs = per_token(table, "logprobs", policy_logprobs=[-1.0] * 14)
    advantages = compute_advantages(table, scored, logprobs, {"estimator": "grpo"})
    prepared = prepare(table, logprobs, advantages, needs_reference=False)
    values = health(prepared, prepared.trained)
    names = ("groups", "zero_variance_group_count", "zero_variance_groups", "singleton_groups")
    assert [values[name] for name in names] == [4, 3, 3 / 4, 2]
    assert values["trained_trajectories"] == 6
    nothing = health(prepared, np.empty(0, np.int64))
    assert [nothing[name] for name in names] == [0, 0, 0, 0]


def test_p40_the_gradient_norm_is_of_the_whole_gradient_before_clipping() -> None:
    _, metrics = run(batch(), max_grad_norm=1e-3)
    assert metric(metrics, "grad_norm") == [
        pytest.approx(gradient(batch()).norm().item(), rel=1e-4)
    ]


def test_p40_the_entropy_of_a_uniform_policy_is_the_log_of_the_vocabulary() -> None:
    model = random_model()
    torch.nn.init.zeros_(model.get_output_embeddings().weight)
    parameters = UpdateParameters(**PLAIN)
    trainer = TorchStrategy(model, parameters.optimizer)
    values = accumulate(trainer, head_of(model), batch(), np.arange(9), parameters)
    assert values["entropy"] == pytest.approx(np.log(VOCABULARY), rel=1e-5)


def test_the_loss_matches_its_definition() -> None:
    _, metrics = run(batch(), kl_coef=0.5, aggregation="token_mean")
    log_ratio = (AT_REFERENCE - AT_POLICY).astype(np.float64)
    k3 = np.expm1(log_ratio) - log_ratio
    assert metric(metrics, "policy_loss") == pytest.approx([-A.mean()], abs=1e-5)
    assert metric(metrics, "reference_kl") == pytest.approx([k3.mean()], rel=1e-4)
    assert metric(metrics, "loss") == pytest.approx([-A.mean() + 0.5 * k3.mean()], rel=1e-4)


def test_p40_the_kl_in_both_directions_matches_its_definition() -> None:
    _, metrics = run(batch(policy_logprobs=MOVED))
    log_ratio = (AT_POLICY - MOVED).astype(np.float64)
    assert metric(metrics, "old_kl_k1") == pytest.approx([log_ratio.mean()], abs=1e-5)
    assert metric(metrics, "old_kl") == pytest.approx(
        [(np.expm1(-log_ratio) + log_ratio).mean()], rel=1e-4
    )
    assert metric(metrics, "reverse_kl") == pytest.approx(
        [(np.expm1(log_ratio) - log_ratio).mean()], rel=1e-4
    )
