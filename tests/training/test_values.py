"""Values: V at the end of each state, and of the state where a truncated trajectory stopped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import PreTrainedModel

from agent_r1.mdp import visible_context
from agent_r1.training.batching import collate
from agent_r1.training.critic import Critic
from agent_r1.training.logprobs import head_of, score
from agent_r1.training.sequences import build_sequences
from agent_r1.training.values import token_values, value_columns
from tests.support.step_tables import rollouts, step
from tests.support.tiny_models import VOCABULARY, capped_model, random_model

RANDOM = np.random.default_rng(0)
CUT = {"truncated": True, "end_reason": "max_steps"}
MOVED = {"context_prefix": 2, "context_start": 7}


def ids(count: int) -> list[int]:
    return RANDOM.integers(0, VOCABULARY, count).tolist()


TABLE = rollouts(
    step("a/0", 0, ids(5), ids(4)),
    step("a/0", 1, ids(3), ids(2), final_token_ids=ids(3), **CUT),
    step("a/1", 0, ids(20), ids(6), terminated=True, end_reason="answered"),
    # cut inside its action: no token was appended
    step("a/2", 0, ids(4), ids(3), final_token_ids=[], **CUT),
    step("a/3", 0, ids(4), ids(3), final_token_ids=None, **CUT),
    # the window moved: the state is what the last step sees
    step("b/0", 0, ids(6), ids(3)),
    step("b/0", 1, ids(2), ids(3), final_token_ids=ids(2), **CUT, **MOVED),
    # a part of the first action was dropped
    step("b/1", 0, ids(6), ids(4)),
    step("b/1", 1, ids(2), ids(3), final_token_ids=ids(2), context_drops=[6, 9], **CUT),
    # the prompt did not fit: no token, no state
    step("c/0", 0, [], [], action_type="none", truncated=True, end_reason="prompt_too_long"),
)

STOPPED = [None, 0.0, None, 0.0, 0.0, None, 0.0, None, 0.0, None]
"""The bootstrap values of an untrained critic."""


def with_head(critic: Critic, seed: int = 0) -> Critic:
    """A critic with random weights."""
    torch.manual_seed(seed)
    torch.nn.init.normal_(critic.head.weight)
    torch.nn.init.constant_(critic.head.bias, 0.5)
    return critic


def shared(policy: PreTrainedModel) -> Critic:
    return with_head(Critic(None, policy))


def own(policy: PreTrainedModel) -> Critic:
    return with_head(Critic(random_model(seed=7).base_model, policy))


def plain(critic: Critic, decoder: Any, seen: list[int]) -> float:
    """V after the tokens ``seen``, from one forward pass over these tokens."""
    with torch.no_grad():
        state = decoder(input_ids=torch.tensor([seen])).last_hidden_state[0, -1]
        return float(state @ critic.head.weight[0] + critic.head.bias[0])


def plain_columns(critic: Critic, decoder: Any) -> tuple[list[float], list[float | None]]:
    """Both columns, from one forward pass per token."""
    streams: dict[str, list[int]] = {}
    values, bootstrap = [], []
    for row in TABLE.to_dict("records"):
        stream = streams.setdefault(row["trajectory_id"], [])
        stream += list(row["context_token_ids"])
        window = (row["context_prefix"], row["context_start"], row["context_drops"])
        for token in row["action_token_ids"]:
            values.append(plain(critic, decoder, visible_context(stream, *window)))
            stream.append(int(token))
        final = row["final_token_ids"]
        end = [*stream, *([] if final is None or final is pd.NA else final)]
        stopped = row["truncated"] and end
        seen = visible_context(end, *window) if stopped else []
        bootstrap.append(plain(critic, decoder, seen) if stopped else None)
    return values, bootstrap


def flat(columns: dict[str, Any]) -> tuple[list[float], list[float | None]]:
    lists = columns["values"].to_pylist()
    assert [len(values) for values in lists] == [len(a) for a in TABLE["action_token_ids"]]
    return [value for values in lists for value in values], columns["bootstrap_value"].to_pylist()


@pytest.mark.parametrize("kind", [own, shared])
@pytest.mark.parametrize("size", [1, 3, 100])
def test_v_is_read_where_each_token_is_predicted_and_where_the_last_state_ends(
    kind: Any, size: int
) -> None:
    policy = random_model()
    critic = kind(policy)
    decoder = critic.backbone or policy.base_model
    values, bootstrap = flat(value_columns(TABLE, critic, policy, size))
    expected_values, expected_bootstrap = plain_columns(critic, decoder)
    assert values == pytest.approx(expected_values, abs=2e-5)
    assert [x is None for x in bootstrap] == [x is None for x in expected_bootstrap]
    assert [x is None for x in bootstrap] == [x is None for x in STOPPED]
    pairs = zip(bootstrap, expected_bootstrap, strict=True)
    for found, expected in (pair for pair in pairs if pair[0] is not None):
        assert found == pytest.approx(expected, abs=2e-5)
    # positions matter in this model: neighbours differ by far more than the tolerance
    assert np.abs(np.diff(values)).min() > 1e-4


def test_values_do_not_depend_on_what_is_appended_after_the_last_action() -> None:
    policy = random_model()
    critic = shared(policy)
    sequences = build_sequences(TABLE)
    values, _ = flat(value_columns(TABLE, critic, policy))
    assert token_values(critic, policy, sequences).tolist() == pytest.approx(values, abs=2e-5)


@pytest.mark.parametrize("critic", [None, "new"])
def test_an_untrained_critic_gives_exactly_zero(critic: str | None) -> None:
    policy = random_model()
    critic_model = Critic(random_model(seed=7).base_model, policy) if critic else None
    values, bootstrap = flat(value_columns(TABLE, critic_model, policy))
    assert values == [0.0] * sum(len(action) for action in TABLE["action_token_ids"])
    assert bootstrap == STOPPED


def test_rows_may_be_in_any_order() -> None:
    policy = random_model()
    critic = shared(policy)
    order = np.array([6, 1, 7, 0, 9, 4, 3, 5, 8, 2])
    shuffled = value_columns(TABLE.take(order).reset_index(drop=True), critic, policy)
    expected = value_columns(TABLE, critic, policy)
    for name, column in shuffled.items():
        assert column.equals(expected[name].take(order))


def test_a_new_critic_draws_no_random_number() -> None:
    policy, state = random_model(), torch.get_rng_state()
    Critic(None, policy)
    assert torch.equal(torch.get_rng_state(), state)


def test_a_model_that_caps_its_logits_returns_the_same_states() -> None:
    capped = capped_model()
    sequences = build_sequences(TABLE)
    block = collate(sequences, np.arange(len(sequences.trajectory)))
    ones = torch.ones(len(block.targets_N))
    for model in (capped, random_model()):
        states = score(model, head_of(model), block, ones, with_states=True).states_N_D
        assert torch.equal(states, Critic(None, model).states(model, block))
    assert score(capped, None, block, ones).states_N_D is None
