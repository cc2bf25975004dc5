"""Training sequences: the ids that the policy saw and sampled, each action token exactly once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_r1.mdp import visible_context
from agent_r1.schemas import SchemaError
from agent_r1.training.sequences import Sequences, build_sequences
from tests.support.step_tables import rollouts, step


def rows(sequences: Sequences) -> list[tuple[list[int], list[int], list[int]]]:
    """(tokens, predictors, actions) of each sequence."""
    return [
        tuple(
            part.values[part.offsets[i] : part.offsets[i + 1]].tolist()
            for part in (sequences.tokens, sequences.predictors, sequences.actions)
        )
        for i in range(len(sequences.trajectory))
    ]


def test_steps_whose_context_only_grows_share_one_sequence() -> None:
    table = rollouts(
        step("a/0", 0, context=[10, 11], action=[20, 21]),
        step("a/0", 1, context=[12], action=[22]),
        step("b/0", 0, context=[13], action=[23]),
    )
    sequences = build_sequences(table)
    assert rows(sequences) == [
        ([10, 11, 20, 21, 12, 22], [1, 2, 4], [0, 1, 2]),
        ([13, 23], [0], [3]),
    ]
    assert sequences.trajectory.tolist() == [0, 1]


def test_rows_in_any_order_give_the_same_sequences() -> None:
    first = step("a/0", 0, context=[10], action=[20, 21])
    second = step("a/0", 1, context=[12], action=[22])
    other = step("b/0", 0, context=[13], action=[23])
    shuffled = build_sequences(rollouts(second, other, first))
    # Flat action order is the order of the table: 22 is 0, 23 is 1, 20 and 21 are 2 and 3.
    assert rows(shuffled) == [([10, 20, 21, 12, 22], [0, 1, 3], [2, 3, 0]), ([13, 23], [0], [1])]


def test_p09_a_moved_window_keeps_the_question_and_starts_a_sequence() -> None:
    table = rollouts(
        step("a/0", 0, context=[10, 11], action=[20]),
        step("a/0", 1, context=[12], action=[21]),
        # the stream is 10 11 20 12 21 | 13; the window keeps 10 11 and everything from position 4
        step("a/0", 2, context=[13], action=[22], context_prefix=2, context_start=4),
        step("a/0", 3, context=[14], action=[23], context_prefix=2, context_start=4),
    )
    assert rows(build_sequences(table)) == [
        ([10, 11, 20, 12, 21], [1, 3], [0, 1]),
        ([10, 11, 21, 13, 22, 14, 23], [3, 5], [2, 3]),
    ]


def test_dropped_positions_are_hidden() -> None:
    table = rollouts(
        step("a/0", 0, context=[10, 11], action=[20, 21]),
        step("a/0", 1, context=[12], action=[22], context_drops=[2, 3]),
    )
    assert rows(build_sequences(table)) == [
        ([10, 11, 20, 21], [1, 2], [0, 1]),
        ([10, 11, 21, 12, 22], [3], [2]),
    ]


def test_a_trajectory_without_an_action_gives_no_sequence() -> None:
    table = rollouts(
        step("a/0", 0, context=[], action=[], action_type="none"),
        step("b/0", 0, context=[13], action=[23]),
    )
    sequences = build_sequences(table)
    assert rows(sequences) == [([13, 23], [0], [0])]
    assert sequences.trajectory.tolist() == [1]
    assert build_sequences(table.head(1)).action_tokens == 0


def test_no_rows_give_no_sequences() -> None:
    assert rows(build_sequences(rollouts())) == []


def test_greedy_rows_are_scored_at_temperature_one() -> None:
    table = rollouts(
        step("a/0", 0, action=[5, 6], temperature=0.5), step("a/0", 1, action=[7], temperature=0.0)
    )
    assert build_sequences(table).temperature.tolist() == [0.5, 0.5, 1.0]


def test_an_action_without_any_context_is_refused() -> None:
    with pytest.raises(SchemaError, match="row 0: an action has no context"):
        build_sequences(rollouts(step("a/0", context=[], action=[3])))


def test_a_window_that_hides_its_own_action_is_refused() -> None:
    table = rollouts(step("a/0", context=[1, 2], action=[3], context_drops=[2, 3]))
    with pytest.raises(SchemaError, match="row 0: its window hides its own action"):
        build_sequences(table)


@st.composite
def trajectories(draw: st.DrawFn) -> list[dict]:
    """A few trajectories whose windows sometimes move or drop tokens; rows in random order."""
    table = []
    for name in draw(st.sets(st.sampled_from(["a/0", "a/1", "b/0"]), min_size=1)):
        length, start, prefix = 0, 0, draw(st.integers(1, 3))
        drops: list[int] = []
        for index in range(draw(st.integers(1, 4))):
            context = draw(st.lists(st.integers(0, 9), min_size=prefix, max_size=5))
            action = draw(st.lists(st.integers(0, 9), max_size=3))
            if index and draw(st.booleans()):
                start = draw(st.integers(start, length))
            if index and draw(st.booleans()):
                drops = [*drops, *sorted(draw(st.tuples(*[st.integers(prefix, length)] * 2)))]
            window = {"context_prefix": prefix, "context_start": start, "context_drops": drops}
            table.append(step(name, index, context, action, **window))
            length += len(context) + len(action)
    return draw(st.permutations(table))


@given(trajectories())
def test_every_action_token_is_predicted_once_from_what_the_policy_saw(table: list[dict]) -> None:
    sequences = build_sequences(rollouts(*table))
    scored = np.sort(sequences.actions.values)
    assert scored.tolist() == list(range(sequences.action_tokens))

    seen = {}  # flat action index → visible tokens before it, as agent_r1.mdp defines them
    offset = 0
    for row in table:
        earlier = sorted(
            (other for other in table if other["trajectory_id"] == row["trajectory_id"]),
            key=lambda other: other["step_index"],
        )[: row["step_index"] + 1]
        stream = [t for o in earlier for t in (*o["context_token_ids"], *o["action_token_ids"])]
        length = len(row["action_token_ids"])
        before = stream[: len(stream) - length]
        window = (row["context_prefix"], row["context_start"], row["context_drops"])
        visible = visible_context(before, *window)
        for position, token in enumerate(row["action_token_ids"]):
            context = [*visible, *row["action_token_ids"][:position]]
            seen[offset + position] = (context, token)
        offset += length
    for tokens, predictors, actions in rows(sequences):
        for predictor, action in zip(predictors, actions, strict=True):
            assert (tokens[: predictor + 1], tokens[predictor + 1]) == seen[action]
