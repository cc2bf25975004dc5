"""The critic's update: the same gradient for any split, only on trained tokens, and it learns.

Both kinds are tested: a critic with its own backbone, and a head on the policy.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from agent_r1.parameters import ParameterError
from agent_r1.schemas import SchemaError
from agent_r1.training.accumulation import accumulate
from agent_r1.training.critic import Critic, CriticState
from agent_r1.training.critic_update import accumulate_values
from agent_r1.training.logprobs import head_of
from agent_r1.training.optimizer import make_optimizer
from agent_r1.training.selection import permuted
from agent_r1.training.strategies import TorchStrategy, make_strategy
from agent_r1.training.update import UpdateParameters, train
from agent_r1.training.update_batch import UpdateBatch, prepare
from agent_r1.training.values import token_values
from tests.support.tiny_models import flat_gradient, flat_weights, random_model
from tests.support.update_batches import (
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

RANDOM = np.random.default_rng(1)
RETURNS = RANDOM.normal(size=TOKENS).astype(np.float32)
OLD_VALUES = RANDOM.normal(size=TOKENS).astype(np.float32)
EVERYTHING = np.arange(9)
AGGREGATIONS = (
    "token_mean", "sequence_mean_token_mean", "sequence_mean_token_sum", "constant_norm",
)  # fmt: skip
HEAD = slice(33)
"""Of a gradient, with a shared critic: 32 weights and a bias."""
BOTH = pytest.mark.parametrize("kind", ["own", "shared"])


def given(**changes: Any) -> UpdateBatch:
    return batch(**{"returns": RETURNS, "values": OLD_VALUES} | changes)


def new_critic(kind: str, policy: torch.nn.Module, opinion: bool = False) -> Critic:
    critic = Critic(random_model().base_model if kind == "own" else None, policy)
    if opinion:
        torch.manual_seed(5)
        torch.nn.init.normal_(critic.head.weight, std=0.3)
    return critic


def how(kind: str, critic: dict[str, Any] | None = None, **parameters: Any) -> UpdateParameters:
    chosen = {"backbone": kind, "learning_rate": 0.01} | (critic or {})
    return UpdateParameters(**PLAIN | {"learning_rate": 0.01, "critic": chosen} | parameters)


def critic_gradient(of: UpdateBatch, kind: str, **parameters: Any) -> torch.Tensor:
    """The whole gradient; for a shared critic with the policy's, which both losses reach."""
    policy, parameters = random_model(), how(kind, **parameters)
    critic = new_critic(kind, policy, opinion=True)
    if kind == "own":
        accumulate_values(critic, policy, of, EVERYTHING, parameters)
        assert all(parameter.grad is None for parameter in policy.parameters())
        return flat_gradient(critic)
    trainer = TorchStrategy(policy, parameters.optimizer)
    accumulate(trainer, head_of(policy), of, EVERYTHING, parameters, critic)
    return torch.cat([flat_gradient(critic), flat_gradient(policy)])


def state_of(kind: str, policy: torch.nn.Module, parameters: UpdateParameters) -> CriticState:
    critic = new_critic(kind, policy)
    return CriticState(critic, make_optimizer(critic, parameters.critic_adamw))


def trained(
    of: UpdateBatch, kind: str, seed: int = 0, **parameters: Any
) -> tuple[torch.Tensor, torch.Tensor, pd.DataFrame]:
    """Weights of the policy and the critic, and metrics, after one update of new ones."""
    policy, parameters = random_model(), how(kind, **parameters)
    state = state_of(kind, policy, parameters)
    _, metrics = train(
        TorchStrategy(policy, parameters.optimizer), of, parameters, seed, critic=state
    )
    return flat_weights(policy), flat_weights(state.critic), metrics


@BOTH
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_p22_the_gradient_does_not_depend_on_the_micro_batch(kind: str, aggregation: str) -> None:
    of, more = given(), {"aggregation": aggregation, "critic": {"value_clip": 0.5}}
    whole = critic_gradient(of, kind, micro_batch_trajectories=100, **more)
    for size in (1, 2, 4):
        found = critic_gradient(of, kind, micro_batch_trajectories=size, **more)
        assert distance(found, whole) < 1e-5


@BOTH
def test_p22_a_split_coupled_objective_has_the_same_gradient(kind: str) -> None:
    of = given()
    more = {"objective": "gspo", "sequence": "trajectory"}
    whole = critic_gradient(of, kind, micro_batch_trajectories=100, **more)
    assert distance(critic_gradient(of, kind, micro_batch_trajectories=1, **more), whole) < 1e-5


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_the_gradient_of_the_head_by_hand(aggregation: str) -> None:
    """Half the squared error of a linear head: sum of weight * (V - R) * state."""
    of, policy = given(), random_model()
    critic = new_critic("own", policy, opinion=True)
    accumulate_values(critic, policy, of, EVERYTHING, how("own", aggregation=aggregation))
    values = token_values(critic, policy, of.sequences)
    _, tokens = np.unique(OWNER, return_counts=True)
    length = np.repeat(tokens, tokens)
    weights = {
        "token_mean": np.full(TOKENS, 1 / TOKENS),
        "sequence_mean_token_mean": 1 / (9 * length),
        "sequence_mean_token_sum": np.full(TOKENS, 1 / 9),
        "constant_norm": np.full(TOKENS, 1 / (9 * 1024)),
    }[aggregation]
    expected = (weights * (values - RETURNS)).sum()
    assert critic.head.bias.grad.item() == pytest.approx(expected, abs=1e-5)


def test_a_shared_critic_adds_its_weighted_loss_to_the_policy_s() -> None:
    of = given()
    policy_alone = gradient(of, kl_coef=0.1)
    both, twice = (
        critic_gradient(of, "shared", kl_coef=0.1, critic={"value_coef": coefficient})
        for coefficient in (0.5, 1.0)
    )
    assert distance(twice[HEAD], 2 * both[HEAD]) < 1e-6
    from_values = both[HEAD.stop :] - policy_alone
    assert from_values.norm() > 1e-3
    assert distance(twice[HEAD.stop :] - policy_alone, 2 * from_values) < 1e-4


def test_a_value_is_trained_where_the_advantage_is_zero() -> None:
    of = given(advantages=np.zeros(TOKENS))
    values, everywhere = critic_gradient(of, "shared"), critic_gradient(given(), "shared")
    assert distance(values[HEAD], everywhere[HEAD]) < 1e-6
    _, _, metrics = trained(of, "shared")
    assert metric(metrics, "run_tokens") == [TOKENS]


@BOTH
def test_p06_nan_in_a_masked_slot_changes_nothing(kind: str) -> None:
    mask = (OWNER != "q/3") & (np.arange(TOKENS) % 5 > 0)
    clean = critic_gradient(given(mask=mask), kind)
    for field, column in (("returns", RETURNS), ("values", OLD_VALUES)):
        for poison in (np.nan, np.inf, 7.0, None):
            poisoned = [x if keep else poison for x, keep in zip(column, mask, strict=True)]
            assert torch.equal(critic_gradient(given(mask=mask, **{field: poisoned}), kind), clean)


@BOTH
def test_a_null_return_is_not_a_target_of_zero(kind: str) -> None:
    """One return per step: the tokens after the first are treated as not trained."""
    lengths = [len(action) for action in TABLE["action_token_ids"]]
    first = np.zeros(TOKENS, bool)
    first[np.concatenate([[0], np.cumsum(lengths)[:-1]])] = True
    per_step = [x if here else None for x, here in zip(RETURNS, first, strict=True)]
    of = given(returns=per_step)
    assert of.targets.trained.tolist() == first.tolist()
    of_critic = slice(None) if kind == "own" else HEAD
    found, expected = (critic_gradient(x, kind)[of_critic] for x in (of, given(mask=first)))
    assert distance(found, expected) < 1e-6
    _, _, metrics = trained(of, kind)
    assert metric(metrics, "return_variance") == [pytest.approx(RETURNS[first].var(), rel=1e-5)]


@BOTH
def test_p22_row_order_changes_no_bit(kind: str) -> None:
    parts = update_tables(returns=RETURNS, values=OLD_VALUES)
    shuffled = (
        table.sample(frac=1, random_state=seed).reset_index(drop=True)
        for seed, table in enumerate(parts)
    )
    of = prepare(*shuffled, needs_reference=True, needs_values=True)
    more = {"mini_batch_trajectories": 4}
    for ours, theirs in zip(trained(of, kind, **more)[:2], trained(given(), kind, **more)[:2],
                            strict=True):  # fmt: skip
        assert torch.equal(ours, theirs)


@BOTH
def test_p07_the_gradient_does_not_depend_on_padding(kind: str) -> None:
    """A sequence alone in its block has no padding; with the longest one it has."""
    of = given(mask=OWNER == "p/0")
    alone = critic_gradient(of, kind, micro_batch_trajectories=1)
    together = critic_gradient(of, kind, micro_batch_trajectories=9)
    assert distance(alone, together) < 1e-6


def test_an_own_critic_uses_the_policys_mini_batches_in_their_order() -> None:
    more = {"mini_batch_trajectories": 4, "epochs": 2, "critic": {"epochs": 2}}
    weights, critic, metrics = trained(given(), "own", seed=3, **more)
    assert torch.equal(weights, run(given(), seed=3, learning_rate=0.01, **{
        name: more[name] for name in ("mini_batch_trajectories", "epochs")})[0])  # fmt: skip
    assert len(metric(metrics, "value_loss")) == len(metric(metrics, "grad_norm")) == 6

    policy, parameters = random_model(), how("own", **more)
    state = state_of("own", policy, parameters)
    for picked in permuted(np.arange(9), 2, 4, 3):
        accumulate_values(state.critic, policy, given(), picked, parameters)
        torch.nn.utils.clip_grad_norm_(state.critic.parameters(), 1.0)
        state.optimizer.step()
        state.optimizer.zero_grad()
    assert torch.equal(critic, flat_weights(state.critic))


@BOTH
def test_metrics_by_hand(kind: str) -> None:
    _, _, metrics = trained(given(), kind, aggregation="token_mean", critic={"value_clip": 0.1})
    # A new critic gives 0, so most old values are further away than the clip.
    bounded = OLD_VALUES + np.clip(0 - OLD_VALUES, -0.1, 0.1)
    plain, clipped = RETURNS.astype(np.float64) ** 2, (bounded - RETURNS.astype(np.float64)) ** 2
    expected = np.maximum(plain, clipped).mean() / 2
    assert metric(metrics, "value_loss") == [pytest.approx(expected, rel=1e-5)]
    gone = (np.abs(OLD_VALUES) > 0.1) & (clipped > plain)
    assert metric(metrics, "value_clip_fraction") == [pytest.approx(gone.mean())]
    explained = 1 - (RETURNS - OLD_VALUES).var() / RETURNS.var()
    assert metric(metrics, "explained_variance") == [pytest.approx(explained, rel=1e-4)]
    assert metric(metrics, "return_variance") == [pytest.approx(RETURNS.var(), rel=1e-5)]
    assert metric(metrics, "critic_warmup") == [0]
    assert metric(metrics, "critic_grad_norm")[0] > 0


@pytest.mark.parametrize(
    ("values", "explained"),
    [(RETURNS, 1.0), (RETURNS + 3, 1.0), (np.full(TOKENS, 2.0), 0.0), (2 * RETURNS, 0.0)],
)
def test_p40_explained_variance(values: np.ndarray, explained: float) -> None:
    health = given(values=values).targets.health()
    assert health["explained_variance"] == pytest.approx(explained, abs=1e-5)


def test_p40_equal_returns_have_no_explained_variance() -> None:
    assert given(returns=np.full(TOKENS, 0.1)).targets.health() == {"return_variance": 0.0}
    assert given(mask=np.zeros(TOKENS, bool)).targets.health() == {}


@BOTH
def test_the_warm_up_trains_only_the_critic(kind: str) -> None:
    more = {"critic": {"warmup_iterations": 1, "epochs": 2}, "mini_batch_trajectories": 4}
    policy, parameters = random_model(), how(kind, **more)
    state = state_of(kind, policy, parameters)
    before, trainer = flat_weights(state.critic), TorchStrategy(policy, parameters.optimizer)
    seen: list[int] = []
    taken, metrics = train(
        trainer, given(), parameters, 0, critic=state,
        on_step=lambda step, values: seen.append(step),
    )  # fmt: skip
    assert (taken, state.steps, state.updates) == (0, 6, 1)
    assert seen == list(range(6))
    assert torch.equal(flat_weights(policy), flat_weights(random_model()))
    assert not trainer.optimizer.state
    assert not torch.equal(flat_weights(state.critic), before)
    assert metric(metrics, "critic_warmup") == [1]
    assert metric(metrics, "loss") == []
    assert metric(metrics, "trained_trajectories") == [9]
    taken, metrics = train(trainer, given(), parameters, 0, critic=state)
    assert (taken, state.updates) == (3, 2)
    assert metric(metrics, "critic_warmup") == [0]
    assert not torch.equal(flat_weights(policy), flat_weights(random_model()))


@BOTH
def test_without_scores_no_weight_changes(kind: str) -> None:
    of = given(mask=np.zeros(TOKENS, bool))
    weights, critic, _ = trained(of, kind)
    assert torch.equal(weights, flat_weights(random_model()))
    assert torch.equal(critic, flat_weights(new_critic(kind, random_model())))


def test_a_kl_stop_drops_the_gradient_of_a_shared_critic_too() -> None:
    policy, parameters = random_model(), how("shared", epochs=4, kl_stop=1e-9)
    state = state_of("shared", policy, parameters)
    taken, _ = train(
        TorchStrategy(policy, parameters.optimizer), given(), parameters, 0, critic=state
    )
    assert 0 < taken < 4
    assert state.steps == taken
    assert all(parameter.grad is None for parameter in state.critic.parameters())


@BOTH
def test_values_learn_fixed_returns(kind: str) -> None:
    """Each state's return is fixed, so all variance can be explained; a few updates find most."""
    worth = dict(zip(sorted(set(OWNER)), np.linspace(0, 1, 9), strict=True))
    returns = np.array([worth[name] for name in OWNER], np.float32)
    policy = random_model()
    parameters = how(kind, epochs=4, learning_rate=1e-3, critic={"epochs": 4, "value_coef": 1.0})
    state, trainer = state_of(kind, policy, parameters), TorchStrategy(policy, parameters.optimizer)
    explained = []
    for iteration in range(6):
        values = token_values(state.critic, policy, given().sequences)
        of = given(values=values, returns=returns, advantages=returns - values)
        _, metrics = train(trainer, of, parameters, iteration, critic=state)
        explained += metric(metrics, "explained_variance")
    assert explained[0] == 0  # a new critic gives 0
    assert explained[-1] > 0.3


def test_the_default_update_has_no_critic() -> None:
    assert not UpdateParameters().needs_values
    weights, metrics = run(given())
    plain, plain_metrics = run(batch())
    assert torch.equal(weights, plain)
    names = set(metrics["metric"]) - set(plain_metrics["metric"])
    assert names == {"explained_variance", "return_variance"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"values": None}, r"'logprobs' has no values of .*: set logprobs\.values to true"),
        ({"returns": None}, r"'advantages' has no returns of .*: set advantage\.estimator"),
    ],
)
def test_errors_about_missing_values_or_returns_name_a_remedy(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(SchemaError, match=message):
        given(**changes)


@pytest.mark.parametrize("field", ["values", "returns"])
def test_nan_in_a_trained_slot_is_refused(field: str) -> None:
    poisoned = RETURNS.copy()
    poisoned[5] = math.nan
    with pytest.raises(SchemaError, match=f"'{field}' of a trained token is null or not finite"):
        given(**{field: poisoned})


def test_a_null_value_of_a_trained_token_is_refused() -> None:
    with pytest.raises(SchemaError, match="'values' of a trained token is null"):
        given(values=[None, *OLD_VALUES[1:]])


@pytest.mark.parametrize("objective", ["dpo", "sft"])
def test_a_shared_critic_needs_an_objective_that_sees_all_trajectories(objective: str) -> None:
    with pytest.raises(ParameterError, match=r"set critic\.backbone to own or none"):
        UpdateParameters.read({"objective": objective, "critic": {"backbone": "shared"}}, "update")
    _, critic, _ = trained(given(advantages=A), "own", objective=objective)
    assert not torch.equal(critic, flat_weights(new_critic("own", random_model())))


def test_unknown_parameters_of_the_critic_are_named() -> None:
    with pytest.raises(ParameterError, match=r"'update.critic.value_clp'. Did you mean 'value_cl"):
        UpdateParameters.read({"critic": {"value_clp": 1}}, "update")


def test_a_head_on_the_policy_learns_with_deepspeed() -> None:
    found = []
    for strategy in ("torch", "deepspeed"):
        parameters = how("shared", strategy=strategy, micro_batch_trajectories=2)
        with make_strategy(random_model(), parameters.trainer, parameters.optimizer) as trainer:
            state = state_of("shared", trainer.model, parameters)
            train(trainer, given(), parameters, 0, critic=state)
        change = flat_weights(trainer.model) - flat_weights(random_model())
        found.append(torch.cat([change, flat_weights(state.critic)]))
    assert distance(found[1], found[0]) < 1e-3
