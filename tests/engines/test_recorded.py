import asyncio
import math
from pathlib import Path

import pytest

from agent_r1.engines.base import Sampling
from agent_r1.engines.recorded import RecordedEngine
from agent_r1.engines.scripted import ScriptError
from tests.support.step_tables import rollouts, step

STOP = 9


def generate(engine, session, new=(7,), max_tokens=8):
    sampling = Sampling(max_tokens=max_tokens, stop_token_ids=(STOP,), seed=0)
    return asyncio.run(engine.generate(session, new, sampling))


def recorded(*actions, trajectory="a/0", **columns):
    return [
        step(trajectory, index, action=action, **columns) for index, action in enumerate(actions)
    ]


def engine(*actions, **columns):
    return RecordedEngine(rollouts(*recorded(*actions, **columns)))


def test_each_session_plays_its_own_trajectory_step_by_step():
    rows = [*recorded([1, STOP], [2, STOP]), *recorded([3, 3, STOP], trajectory="a/1")]
    played = RecordedEngine(rollouts(*rows[::-1]))
    first = generate(played, "a/0", [7, 7, 7])
    assert (first.token_ids, first.logprobs, first.finish_reason) == ([1, 9], [-1, -1], "stop")
    assert first.prompt_tokens == 3
    assert generate(played, "a/1").token_ids == [3, 3, STOP]
    second = generate(played, "a/0", [8])
    assert (second.token_ids, second.prompt_tokens) == ([2, STOP], 3 + 2 + 1)


def test_log_probs_are_the_recorded_ones():
    played = engine([1, STOP], action_logprobs=[-0.25, -3.5])
    assert generate(played, "a/0").logprobs == [-0.25, -3.5]


def test_a_prompt_can_be_counted_without_an_action_and_shared():
    played = engine([1, STOP])
    shared = generate(played, "group", [7, 7], max_tokens=0)
    assert (shared.token_ids, shared.finish_reason) == ([], "length")
    played.fork("group", ["a/0"])
    assert generate(played, "a/0", []).prompt_tokens == 2


@pytest.mark.parametrize("session", ["a/0", "unknown"])
def test_after_the_last_recorded_step_actions_are_empty(session):
    played = engine([1, STOP])
    generate(played, "a/0")
    over = generate(played, session)
    assert (over.token_ids, over.logprobs, over.finish_reason) == ([], [], "length")


def test_a_missing_step_is_not_replaced_by_the_next():
    rows = recorded([1, STOP], [2, STOP], [3, STOP])
    played = RecordedEngine(rollouts(rows[0], rows[2]))
    found = [generate(played, "a/0").token_ids for _ in range(3)]
    assert found == [[1, STOP], [], [3, STOP]]


def test_the_first_of_two_rows_with_one_step_is_played():
    played = RecordedEngine(rollouts(*recorded([1, STOP]), *recorded([2, STOP])))
    assert generate(played, "a/0").token_ids == [1, STOP]


@pytest.mark.parametrize(
    ("action", "sampled", "reason"),
    [
        ([1, 2], [1, 2], "length"),
        ([1, STOP, 2], [1, STOP], "stop"),
        ([1, 2, 3, 4, 5], [1, 2, 3, 4], "length"),
        ([1, 2, 3, STOP], [1, 2, 3, STOP], "stop"),
        ([1, -5, STOP], [1], "length"),
        ([1, None, STOP], [1], "length"),
        ([], [], "length"),
    ],
)
def test_only_actions_that_an_engine_could_have_sampled_are_played(action, sampled, reason):
    found = generate(engine(action), "a/0", max_tokens=4)
    assert (found.token_ids, found.finish_reason) == (sampled, reason)
    assert len(found.logprobs) == len(sampled)


def test_each_token_has_a_log_prob_which_is_nan_if_none_was_recorded():
    too_few = generate(engine([1, 2, STOP], action_logprobs=[-1.0, None]), "a/0").logprobs
    assert too_few[0] == -1.0
    assert [math.isnan(value) for value in too_few] == [False, True, True]
    assert generate(engine([1, STOP], action_logprobs=[-1.0] * 3), "a/0").logprobs == [-1, -1]


def test_a_closed_session_starts_over():
    played = engine([1, STOP])
    generate(played, "a/0")
    played.close("a/0")
    played.close("unknown")
    again = generate(played, "a/0")
    assert (again.token_ids, again.prompt_tokens) == ([1, STOP], 1)


def test_its_version_is_that_of_most_rows():
    rows = recorded([1], [2], [3])
    rows[0]["policy_version"] = "forged"
    assert RecordedEngine(rollouts(*rows)).weight_version == "v"
    assert RecordedEngine(rollouts(*rows), "other").weight_version == "other"
    assert RecordedEngine(rollouts()).weight_version == ""


def test_it_has_no_policy_to_load():
    played = engine([1])
    played.load(Path(), "v")
    with pytest.raises(ScriptError, match="no policy 'abc'"):
        played.load(Path(), "abc")
