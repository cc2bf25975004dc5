"""Properties of every objective: the gradient is right, the same for any split of the work, and
ignores masked tokens."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from transformers import PreTrainedModel

from agent_r1.losses.registry import OBJECTIVES, objective
from agent_r1.training.accumulation import accumulate
from agent_r1.training.logprobs import head_of, token_logprobs
from agent_r1.training.selection import select
from agent_r1.training.sequences import build_sequences
from agent_r1.training.strategies import TorchStrategy
from agent_r1.training.update import UpdateParameters
from agent_r1.training.update_batch import UpdateBatch, prepare
from tests.support.step_tables import per_token, rollouts, step
from tests.support.tiny_models import flat_gradient, random_model
from tests.support.update_batches import (
    AT_POLICY,
    AT_REFERENCE,
    MOVED,
    SAMPLED,
    TABLE,
    TOKENS,
    A,
    batch,
    distance,
    gradient,
    metric,
    preferences,
    run,
    update_tables,
)

EVERYTHING = {
    "aggregation": "sequence_mean_token_mean",
    "kl_coef": 0.1,
    "entropy_coef": 0.01,
    "importance_correction": "sequence",
    "clip_low": 0.05,
    "clip_high": 0.1,
}
OFF_POLICY = {"policy_logprobs": MOVED, "sampler_logprobs": SAMPLED}
every_objective = pytest.mark.parametrize("name", OBJECTIVES)
each_sequence = pytest.mark.parametrize("sequence", ["trajectory", "step"])


@every_objective
@each_sequence
@pytest.mark.parametrize("size", [1, 2, 4])
def test_p22_the_gradient_does_not_depend_on_micro_batch_and_padding(name, sequence, size) -> None:
    """One sequence per micro-batch has no padding; all together are padded to the longest."""
    for how in (EVERYTHING, {"aggregation": "token_mean"}):
        how = {**how, "objective": name, "sequence": sequence}
        whole = gradient(batch(**OFF_POLICY), micro_batch_trajectories=100, **how)
        parts = gradient(batch(**OFF_POLICY), micro_batch_trajectories=size, **how)
        assert distance(parts, whole) < 1e-5


def test_p22_the_test_fails_if_a_micro_batch_sees_only_its_own_tokens(monkeypatch) -> None:
    how = {"objective": "gspo", "micro_batch_trajectories": 1, "clip_low": 1.0, "clip_high": 9.0}
    whole = gradient(batch(**OFF_POLICY), **how)
    monkeypatch.setitem(OBJECTIVES, "gspo", OBJECTIVES["gspo"]._replace(couples="token"))
    assert distance(gradient(batch(**OFF_POLICY), **how), whole) > 1e-3


@every_objective
@each_sequence
def test_skipping_zero_advantages_does_not_change_the_gradient(name: str, sequence: str) -> None:
    """Even if only some tokens of a sequence have advantage 0: the ratio covers all of them."""
    of = batch(advantages=np.where(np.arange(TOKENS) % 3, A, 0.0), **OFF_POLICY)
    how = {"objective": name, "sequence": sequence, "clip_low": 0.05}
    expected = gradient(of, skip_zero_advantages=False, **how)
    assert distance(gradient(of, skip_zero_advantages=True, **how), expected) < 1e-6


@every_objective
def test_p22_row_order_changes_nothing(name: str) -> None:
    how = {**EVERYTHING, "objective": name, "mini_batch_trajectories": 2, "learning_rate": 0.01}
    of = batch(**OFF_POLICY)
    shuffled = (
        table.sample(frac=1, random_state=seed).reset_index(drop=True)
        for seed, table in enumerate((*update_tables(**OFF_POLICY), preferences()))
    )
    rollout, logprobs, advantages, pairs = shuffled
    again = prepare(rollout, logprobs, advantages, needs_reference=True, preferences=pairs)
    weights, metrics = run(of, **how)
    other_weights, other_metrics = run(again, **how)
    assert torch.equal(weights, other_weights)
    assert metrics.equals(other_metrics)


@every_objective
def test_p06_nan_in_a_masked_slot_gives_a_finite_loss_and_no_gradient(name: str) -> None:
    mask = np.arange(TOKENS) % 4 != 1
    how = {**EVERYTHING, "objective": name}
    columns = {"advantages": A, "reference_logprobs": AT_REFERENCE, **OFF_POLICY}
    clean = gradient(batch(mask=mask, **columns), **how)
    poisoned = {key: np.where(mask, values, np.nan) for key, values in columns.items()}
    found = gradient(batch(mask=mask, **poisoned), **how)
    assert found.isfinite().all()
    assert torch.equal(found, clean)


@every_objective
def test_p05_p22_masked_trajectories_are_ignored(name: str) -> None:
    """The gradient with a mask equals that of tables without the masked trajectories."""
    how = {**EVERYTHING, "objective": name}
    keep = ~np.isin(np.repeat(TABLE["trajectory_id"], TABLE["completion_tokens"]), ["p/3", "q/0"])
    rows = ~TABLE["trajectory_id"].isin(["p/3", "q/0"])
    tables_left = (table[rows].reset_index(drop=True) for table in update_tables(**OFF_POLICY))
    pairs = preferences([("p/2", "p/0"), ("q/1", "q/3")])
    smaller = prepare(*tables_left, needs_reference=True, preferences=pairs)
    masked = batch(mask=keep, **OFF_POLICY)
    assert distance(gradient(masked, **how), gradient(smaller, **how)) < 1e-5


def double_model() -> PreTrainedModel:
    """The tiny Llama, fully in float64: its own norm would round to float32."""
    model = random_model(dtype=torch.float64)
    for layer in (*model.modules(),):
        for name, child in (*layer.named_children(),):
            if type(child).__name__ == "LlamaRMSNorm":
                norm = torch.nn.RMSNorm(
                    len(child.weight), child.variance_epsilon, dtype=torch.float64
                )
                norm.weight = child.weight
                setattr(layer, name, norm)
    return model


def few_tokens(old: float) -> UpdateBatch:
    """Two groups of two. Each token has become ``old`` nats less likely, or every second one as
    much more likely."""
    random = np.random.default_rng(1)

    def ids(count: int) -> list[int]:
        return random.integers(0, 48, count).tolist()

    table = rollouts(
        step("p/0", 0, ids(3), ids(2)),
        step("p/0", 1, ids(2), ids(2), context_prefix=2, context_start=4),
        step("p/1", 0, ids(4), ids(3), temperature=0.7),
        step("q/0", 0, ids(2), ids(2)),
        step("q/1", 0, ids(3), ids(1)),
    )
    trainer = token_logprobs(random_model(), build_sequences(table))
    sign = np.where(np.arange(10) % 2, 1, -1)
    logprobs = per_token(
        table, "logprobs", policy_logprobs=trainer + old * sign, reference_logprobs=trainer - 0.1
    )
    sampled = per_token(table, "logprobs", policy_logprobs=trainer + old * sign + 0.05 * sign)
    table = table.assign(action_logprobs=sampled["policy_logprobs"])
    spread = per_token(
        table,
        "advantages",
        advantages=np.repeat([0.8, -0.6, 0.5, -1.1], [4, 3, 2, 1]),
        loss_mask=np.ones(10, bool),
    )
    pairs = preferences([("p/0", "p/1"), ("q/1", "q/0")])
    return prepare(table, logprobs, spread, needs_reference=True, preferences=pairs)


@each_sequence
@pytest.mark.parametrize("micro", [1, 100])
@pytest.mark.parametrize(
    ("name", "old"),
    # CISPO treats weights as constants; only clipped ones are constant for finite differences.
    [("ppo_clip", 0.1), ("gspo", 0.1), ("cispo", 0.5), ("dpo", 0.1), ("sft", 0.1)],
)
def test_gradients_against_finite_differences(name, old, micro, sequence) -> None:
    parameters = UpdateParameters(
        objective=name,
        micro_batch_trajectories=micro,
        sequence=sequence,
        # GSPO's token variant is the derivative only with one weight per sequence.
        importance_correction="sequence",
        aggregation="sequence_mean_token_mean",
        kl_coef=0.2,
        entropy_coef=0.05,
        beta=0.7,
        clip_high=0.2,
        warmup_steps=0,
    )
    of = select(few_tokens(old), objective(name))
    model = double_model()
    trainer = TorchStrategy(model, parameters.optimizer)

    def loss() -> float:
        return accumulate(trainer, head_of(model), of, np.arange(4), parameters)["loss"]

    loss()
    expected = flat_gradient(model)
    generator = torch.Generator().manual_seed(0)
    for _ in range(3):
        direction = torch.randn(len(expected), generator=generator, dtype=torch.float64)
        direction = direction / direction.norm() + expected / expected.norm()
        slope = finite_difference(model, direction, loss)
        assert slope == pytest.approx((expected @ direction).item(), rel=1e-6)


def finite_difference(model: PreTrainedModel, direction: torch.Tensor, loss: Any) -> float:
    """Central difference of ``loss`` along ``direction``."""
    width, values = 1e-5, []
    start = [parameter.detach().clone() for parameter in model.parameters()]
    for sign in (1, -1):
        shift = direction
        for parameter, value in zip(model.parameters(), start, strict=True):
            part, shift = shift[: value.numel()], shift[value.numel() :]
            parameter.data = value + sign * width * part.view_as(value)
        values.append(loss())
    for parameter, value in zip(model.parameters(), start, strict=True):
        parameter.data = value
    return (values[0] - values[1]) / (2 * width)


@pytest.mark.parametrize("name", ["ppo_clip", "gspo", "cispo"])
def test_p24_before_the_first_step_all_policy_gradients_are_equal(name: str) -> None:
    """At ratio 1 each equals the gradient of -A log p."""
    how = {"aggregation": "sequence_mean_token_mean", "kl_coef": 0.1}
    expected = gradient(batch(), objective="ppo_clip", **how)
    assert distance(gradient(batch(), objective=name, **how), expected) < 1e-3
    _, metrics = run(batch(), objective=name, mini_batch_trajectories=3, learning_rate=0.01)
    assert metric(metrics, "initial_ratio_max_deviation")[0] < 1e-4


@pytest.mark.parametrize("name", ["sft", "dpo"])
def test_p24_the_ratio_is_one_before_the_first_step(name: str) -> None:
    _, metrics = run(batch(), objective=name)
    assert metric(metrics, "initial_ratio_max_deviation")[0] < 1e-4


@pytest.mark.parametrize("kind", ["token", "sequence"])
def test_p25_a_correction_by_equal_weights_scales_only_the_policy_loss(kind: str) -> None:
    """If the sampler's log-probs are lower by log 1.5, every token has weight 1.5."""
    how = {"kl_coef": 0.1, "importance_correction": kind, "importance_cap": 1.5}
    less = AT_POLICY - np.float32(np.log(1.5))
    plain = gradient(batch(), **{**how, "importance_correction": "none"})
    kl = gradient(batch(advantages=np.zeros(TOKENS)), kl_coef=0.1)
    found = gradient(batch(sampler_logprobs=less), **how)
    assert distance(found, 1.5 * (plain - kl) + kl) < 1e-5
    how["importance_mode"] = "mask"
    how["importance_cap"] = 1.4
    assert distance(gradient(batch(sampler_logprobs=less), **how), kl) < 1e-6


def test_p25_the_effective_sample_size_is_reported_with_and_without_a_correction() -> None:
    assert metric(run(batch())[1], "ess") == [pytest.approx(1)]
    one = AT_POLICY.copy()
    one[0] -= 3
    _, metrics = run(batch(sampler_logprobs=one))
    weights = np.array([np.e**3] + [1] * (TOKENS - 1))
    expected = weights.sum() ** 2 / (TOKENS * (weights**2).sum())
    assert metric(metrics, "ess") == [pytest.approx(expected, rel=1e-4)]
    assert metric(metrics, "importance_capped") == []
    _, metrics = run(batch(sampler_logprobs=one), importance_correction="token")
    assert metric(metrics, "importance_capped") == [pytest.approx(1 / TOKENS)]
    assert metric(metrics, "ess")[0] > expected


def test_p27_a_mini_batch_of_dpo_counts_pairs_and_each_pair_once() -> None:
    _, metrics = run(batch(), objective="dpo", mini_batch_trajectories=2, epochs=2)
    # 5 pairs: 2 + 2 + 1 per epoch
    assert len(metric(metrics, "grad_norm")) == 6
    assert metric(metrics, "trained_pairs") == [5]
    parts = [replace(batch(), pairs=batch().pairs[[index]]) for index in range(5)]
    whole = gradient(batch(), objective="dpo")
    mean = sum(gradient(part, objective="dpo") for part in parts) / 5
    assert distance(mean, whole) < 1e-5
