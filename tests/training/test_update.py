"""The update: the same gradient for any split of the work, only from trained tokens."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch

from agent_r1.schemas import SchemaError
from agent_r1.seeding import derive_seed
from agent_r1.training.batching import micro_batches
from agent_r1.training.logprobs import head_of, score, token_logprobs
from agent_r1.training.optimizer import make_optimizer, save_state
from agent_r1.training.sequences import build_sequences
from agent_r1.training.strategies import TorchStrategy
from agent_r1.training.update import UpdateParameters, accumulate, train
from agent_r1.training.update_batch import prepare
from tests.support.step_tables import per_token
from tests.support.tiny_models import flat_gradient, flat_weights, random_model
from tests.support.update_batches import (
    AT_POLICY,
    AT_REFERENCE,
    MOVED,
    OWNER,
    PLAIN,
    TABLE,
    TOKENS,
    A,
    batch,
    distance,
    gradient,
    metric,
    run,
    update_tables,
)

AGGREGATIONS = (
    "token_mean",
    "sequence_mean_token_mean",
    "sequence_mean_token_sum",
    "constant_norm",
)


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("size", [1, 2, 4])
def test_p22_the_gradient_does_not_depend_on_the_micro_batch(aggregation: str, size: int) -> None:
    how = {"aggregation": aggregation, "kl_coef": 0.1, "entropy_coef": 0.01}
    whole = gradient(batch(), micro_batch_trajectories=100, **how)
    assert distance(gradient(batch(), micro_batch_trajectories=size, **how), whole) < 1e-5


def test_p22_the_test_fails_for_a_wrong_normalisation() -> None:
    """Averaging per micro-batch, a common bug, gives another gradient than the sum."""
    whole = gradient(batch(), aggregation="token_mean")
    model, of, parameters = random_model(), batch(), UpdateParameters(**PLAIN)
    trainer = TorchStrategy(model, parameters.optimizer)
    for part in np.array_split(np.arange(9), 3):
        accumulate(trainer, head_of(model), of, part, parameters)
    assert distance(flat_gradient(model) / 3, whole) > 1e-2


def test_p22_masked_tokens_and_unscored_trajectories_do_not_count() -> None:
    mask = (OWNER != "q/3") & (np.arange(TOKENS) % 3 > 0)
    poisoned = np.where(mask, A, 7.0)
    expected = gradient(batch(mask=mask), kl_coef=0.1)
    assert distance(gradient(batch(mask=mask, advantages=poisoned), kl_coef=0.1), expected) == 0

    without = TABLE[TABLE["trajectory_id"] != "q/3"].reset_index(drop=True)
    kept = OWNER != "q/3"
    logprobs = per_token(
        without,
        "logprobs",
        policy_logprobs=AT_POLICY[kept],
        reference_logprobs=AT_REFERENCE[kept],
    )
    advantages = per_token(without, "advantages", advantages=A[kept], loss_mask=mask[kept])
    smaller = prepare(without, logprobs, advantages, needs_reference=True)
    for aggregation in AGGREGATIONS:
        how = {"aggregation": aggregation, "kl_coef": 0.1}
        assert distance(gradient(smaller, **how), gradient(batch(mask=mask), **how)) < 1e-5


def test_p22_row_order_changes_nothing() -> None:
    shuffled = (
        table.sample(frac=1, random_state=seed).reset_index(drop=True)
        for seed, table in enumerate(update_tables())
    )
    how = {"mini_batch_trajectories": 4, "learning_rate": 0.01}
    weights, _ = run(batch(), **how)
    assert torch.equal(run(prepare(*shuffled, needs_reference=True), **how)[0], weights)


def test_p06_nan_in_a_masked_slot_leaves_loss_and_gradient_finite() -> None:
    mask = np.arange(TOKENS) != 5
    clean = gradient(batch(mask=mask), kl_coef=0.1)
    for field in ("advantages", "policy_logprobs"):
        source = {"advantages": A, "policy_logprobs": AT_POLICY}[field]
        poisoned = np.where(mask, source, np.nan)
        found = gradient(batch(mask=mask, **{field: poisoned}), kl_coef=0.1)
        assert found.isfinite().all()
        assert torch.equal(found, clean)


def test_nan_in_a_trained_slot_is_refused_before_any_work() -> None:
    poisoned = AT_POLICY.copy()
    poisoned[5] = math.nan
    with pytest.raises(SchemaError, match="'policy_logprobs' of a trained token is not finite"):
        batch(policy_logprobs=poisoned)


def test_p24_the_ratio_is_one_before_the_first_step() -> None:
    _, metrics = run(batch(), mini_batch_trajectories=3, epochs=2, learning_rate=0.01)
    assert metric(metrics, "initial_ratio_max_deviation")[0] < 1e-4
    assert metric(metrics, "ratio_mean")[0] == pytest.approx(1, abs=1e-4)
    assert metric(metrics, "old_kl")[0] == pytest.approx(0, abs=1e-6)
    assert len(metric(metrics, "initial_ratio_max_deviation")) == 1
    assert metric(metrics, "ratio_max")[-1] > 1.001


def test_p23_a_step_on_only_the_kl_lowers_it() -> None:
    of = batch(advantages=np.zeros(TOKENS))
    for estimator in ("k2", "k3"):
        how = {"kl_coef": 1.0, "kl_estimator": estimator, "learning_rate": 0.01}
        _, metrics = run(of, epochs=10, **how)
        kl = metric(metrics, "reference_kl")
        assert kl[-1] < 0.8 * kl[0]


def test_positive_advantages_raise_likelihood_and_negative_ones_lower_it() -> None:
    model, parameters = random_model(), UpdateParameters(**PLAIN, learning_rate=1e-3)
    good = np.where(np.char.startswith(OWNER.astype(str), "p"), 1.0, -1.0)
    train(TorchStrategy(model, parameters.optimizer), batch(advantages=good), parameters, 0)
    change = token_logprobs(model, build_sequences(TABLE)) - AT_POLICY
    assert change[good > 0].mean() > 0
    assert change[good < 0].mean() < 0


def test_skipping_zero_advantages_does_not_change_the_gradient() -> None:
    partly = np.where(np.char.startswith(OWNER.astype(str), "p"), 0.0, A)
    of = batch(advantages=partly)
    expected = gradient(of, skip_zero_advantages=False)
    assert distance(gradient(of, skip_zero_advantages=True), expected) < 1e-6
    _, metrics = run(of)
    run_tokens = float((partly != 0).sum())
    assert (metric(metrics, "tokens"), metric(metrics, "run_tokens")) == ([TOKENS], [run_tokens])
    _, with_kl = run(of, kl_coef=0.1)
    assert metric(with_kl, "run_tokens") == [TOKENS]


def test_p27_trajectories_not_rows_decide_the_number_of_updates() -> None:
    _, metrics = run(batch(), mini_batch_trajectories=4, epochs=2)
    # 9 trajectories of 15 rows: 3 + 3 + 3 per epoch
    assert len(metric(metrics, "grad_norm")) == 6
    assert sum(metric(metrics, "tokens")) == 2 * TOKENS


def test_p37_two_updates_with_a_saved_state_between_equal_one_long_update(tmp_path) -> None:
    parameters = UpdateParameters(**PLAIN, learning_rate=0.01, mini_batch_trajectories=3)
    of, straight = batch(), random_model()
    trainer = TorchStrategy(straight, parameters.optimizer)
    for iteration in range(2):
        train(trainer, of, parameters, iteration)

    first = TorchStrategy(random_model(), parameters.optimizer)
    train(first, of, parameters, 0)
    save_state(first.model, first.optimizer, first.steps, tmp_path)
    second = TorchStrategy(first.model, parameters.optimizer, tmp_path)
    assert second.steps == first.steps == 3
    train(second, of, parameters, 1)
    assert torch.equal(flat_weights(second.model), flat_weights(straight))


def test_equal_seeds_give_equal_weights_and_metrics_and_other_seeds_do_not() -> None:
    how = {"mini_batch_trajectories": 3, "learning_rate": 0.01}
    weights, metrics = run(batch(), **how)
    again, same_metrics = run(batch(), **how)
    assert torch.equal(weights, again)
    assert metrics.equals(same_metrics)
    assert not torch.equal(weights, run(batch(), seed=1, **how)[0])


def test_without_scores_no_weight_changes() -> None:
    weights, metrics = run(batch(mask=np.zeros(TOKENS, bool)))
    assert torch.equal(weights, flat_weights(random_model()))
    assert metric(metrics, "trained_trajectories") == [0]


def test_a_missing_reference_is_named_when_the_loss_needs_it() -> None:
    table, logprobs, advantages = update_tables()
    logprobs = logprobs.drop(columns="reference_logprobs").assign(
        reference_logprobs=pd.Series([None] * len(TABLE), dtype=logprobs["policy_logprobs"].dtype)
    )
    with pytest.raises(SchemaError, match=r"set logprobs\.reference to true"):
        prepare(table, logprobs, advantages, needs_reference=True)
    _, metrics = run(prepare(table, logprobs, advantages, needs_reference=False))
    assert metric(metrics, "reference_kl") == []


def test_lists_of_another_length_than_the_action_are_named() -> None:
    table, logprobs, advantages = update_tables()
    lists = [list(values) for values in advantages["advantages"]]
    lists[2] = lists[2][:-1]
    advantages = advantages.assign(
        advantages=pd.Series(lists, dtype=advantages["advantages"].dtype)
    )
    name = TABLE["trajectory_id"].iloc[2]
    with pytest.raises(SchemaError, match=f"'advantages' of trajectory '{name}'"):
        prepare(table, logprobs, advantages, needs_reference=False)


def test_the_default_update_equals_a_plain_loop() -> None:
    """Bit for bit: code for other objectives does not affect the default one."""
    cut = {"mini_batch_trajectories": 4, "micro_batch_trajectories": 2}
    parameters = UpdateParameters(**PLAIN | cut)
    of, model = batch(policy_logprobs=MOVED), random_model()
    train(TorchStrategy(model, parameters.optimizer), of, parameters, seed=3)

    plain, owner = random_model(), of.sequences.action_trajectory
    optimizer = make_optimizer(plain, parameters.optimizer)
    order = np.random.default_rng(derive_seed(3, "epoch", 0)).permutation(9)
    for picked in np.array_split(order, 3):
        mask = np.isin(owner, picked)
        chosen = np.flatnonzero(np.isin(of.sequences.trajectory, picked))
        for block in micro_batches(of.sequences, chosen, 2):
            temperature = torch.from_numpy(of.sequences.temperature)[block.actions_N]
            new = score(plain, head_of(plain), block, temperature).logprobs_N
            ratio = (new - of.old_logprobs[block.actions_N]).exp()
            gain = of.advantages[block.actions_N]
            losses = torch.maximum(-gain * ratio, -gain * ratio.clamp(0.8, 1.28))
            losses = torch.where(gain < 0, torch.minimum(losses, -gain * 3), losses)
            (losses * np.float32(1 / mask.sum())).sum().backward()
        torch.nn.utils.clip_grad_norm_(plain.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    assert torch.equal(flat_weights(model), flat_weights(plain))


def test_a_kl_stop_skips_the_remaining_steps() -> None:
    how = {"mini_batch_trajectories": 3, "epochs": 4, "learning_rate": 0.01}
    _, free = run(batch(), **how)
    assert len(metric(free, "grad_norm")) == 12
    assert metric(free, "kl_stopped") == []
    kl = metric(free, "old_kl")
    first = next(step for step, value in enumerate(kl) if value > 0.01)
    weights, metrics = run(batch(), kl_stop=0.01, **how)
    assert 0 < first < 12
    assert metric(metrics, "old_kl") == kl[:first]
    assert metric(metrics, "kl_stopped") == [1]
    assert not torch.equal(weights, flat_weights(random_model()))
    _, metrics = run(batch(), kl_stop=1e6, **how)
    assert metric(metrics, "kl_stopped") == [0]
    assert len(metric(metrics, "grad_norm")) == 12


def test_p27_a_sequence_may_be_a_step() -> None:
    how = {"aggregation": "sequence_mean_token_mean", "clip_low": 1.0, "clip_high": 1e6}
    _, metrics = run(batch(), sequence="step", **how)
    lengths = [len(action) for action in TABLE["action_token_ids"]]
    first = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    assert metric(metrics, "policy_loss") == pytest.approx([-A[first].mean()], abs=1e-5)
    _, metrics = run(batch(), **how)
    by_trajectory = [A[name == OWNER][0] for name in sorted(set(OWNER))]
    assert metric(metrics, "policy_loss") == pytest.approx([-np.mean(by_trajectory)], abs=1e-5)
