"""Long contexts, by hand-computed tokens and in the toy world.

Pinned: how much fits into the context, what is dropped and when, how a trajectory ends if nothing
can be dropped, and that the table records what the engine saw.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agent_r1 import tables
from agent_r1.engines.base import Generation
from agent_r1.engines.scripted import ScriptedEngine
from agent_r1.mdp import Action, ActionType, EndReason, Transition, visible_context
from agent_r1.parameters import ParameterError
from agent_r1.rollout import RolloutParameters
from agent_r1.rollout.trajectory import Phase, Trajectory
from tests.support.invariants import check_tables
from tests.support.replays import again
from tests.support.toy_world import (
    CALL,
    STOPS,
    FakeEngine,
    ToyEnv,
    parameters,
    requests,
    run,
    scripted,
)

NOW = datetime(2025, 1, 1, tzinfo=UTC)
GO_ON = Transition({"tool_results": ["x"]}, 0.0)
MODES = ("truncate", "end", "window")


def new(prompt: int = 4, **limits) -> Trajectory:
    """A context of 20 tokens and actions of at most 4. The prompt of 4 leaves 12 for steps."""
    limits = {"max_context_tokens": 20, "max_tokens_per_step": 4, "max_steps": 50} | limits
    trajectory = Trajectory(requests(1, 1)[0], parameters(**limits), "v0")
    trajectory.begin([1] * prompt, "s0")
    return trajectory


def play(trajectory: Trajectory, action: int = 2, observation: int = 3, forgotten: int = 0) -> None:
    """Play one step with these numbers of tokens. The ids of its tokens name the step."""
    step = len(trajectory.rows)
    shown, drops = 0, None
    if trajectory.rows:
        shown, drops = (trajectory.rows[-1][f"context_{what}"] for what in ("start", "drops"))
    if trajectory.pending_window is not None:
        _, shown, drops = trajectory.pending_window
    seen = visible_context(trajectory.stream, 4, shown, drops)
    generation = Generation([100 + step] * action, [0.0] * action, "stop", len(seen), 0, 1.0)
    trajectory.act(generation, Action(ActionType.TOOL_CALL, "x"), NOW)
    spans = [(0, forgotten)] if forgotten else []
    trajectory.observe(GO_ON, "x", [200 + step] * observation, f"s{step + 1}", forgotten=spans)


def test_a_move_drops_whole_steps_until_half_of_the_room_is_free():
    """The prompt takes 4 tokens and an action up to 4, so 12 remain for steps of 5. Two steps fit,
    but three (15) do not. After the move, steps may take 12 * 0.5 = 6: only the last one fits."""
    trajectory = new(on_overflow="window")
    for _ in range(2):
        play(trajectory)
        assert trajectory.pending_window is None
    play(trajectory)
    assert trajectory.pending_window == (4, 14, None)
    play(trajectory)
    assert trajectory.pending_window is None
    assert [row["context_start"] for row in trajectory.rows] == [0, 0, 0, 14]
    assert [row["prompt_tokens"] for row in trajectory.rows] == [4, 9, 14, 9]
    seen = visible_context(trajectory.stream, 4, 14)
    assert seen == [1] * 4 + [102] * 2 + [202] * 3 + [103] * 2 + [203] * 3


@pytest.mark.parametrize(
    ("keep", "start"),
    [(0.0, 14), (0.4, 14), (0.83, 14), (0.84, 9), (1.0, 9)],  # 10 of 12 are 0.833…
)
def test_window_keep_is_the_share_of_the_room_for_the_latest_steps(keep, start):
    trajectory = new(on_overflow="window", window_keep=keep)
    for _ in range(3):
        play(trajectory)
    assert trajectory.pending_window == (4, start, None)


def test_a_window_moves_again_when_it_is_full_again():
    trajectory = new(on_overflow="window")
    for _ in range(8):
        play(trajectory)
    assert [row["context_start"] for row in trajectory.rows] == [0, 0, 0, 14, 14, 24, 24, 34]


def test_p09_the_task_is_never_dropped_even_in_long_episodes():
    trajectory = new(on_overflow="window", max_steps=50)
    for _ in range(49):
        play(trajectory)
        assert (
            visible_context(trajectory.stream, 4, trajectory.rows[-1]["context_start"])[:4]
            == [1] * 4
        )
    assert {row["context_prefix"] for row in trajectory.rows} == {4}
    assert trajectory.phase is Phase.ACTION


@pytest.mark.parametrize("mode", MODES)
def test_p08_a_prompt_must_leave_room_for_an_action(mode):
    """For one token if actions may be cut, otherwise for a whole action."""
    longest = {"truncate": 19, "end": 16, "window": 16}[mode]
    assert new(longest, on_overflow=mode).phase is Phase.ACTION
    (row,) = new(longest + 1, on_overflow=mode).rows
    assert (row["action_type"], row["end_reason"]) == ("none", "prompt_too_long")
    assert (row["context_prefix"], row["context_start"], row["prompt_tokens"]) == (0, 0, 0)


@pytest.mark.parametrize("mode", MODES)
def test_p10_only_truncate_cuts_an_action_at_the_context_limit(mode):
    trajectory = new(on_overflow=mode)
    play(trajectory, observation=12)
    if mode == "truncate":
        assert trajectory.sampling((3,)).max_tokens == 2
    elif mode == "window":
        # 14 tokens and an action of 4 do not fit, and no step can be dropped.
        assert trajectory.rows[-1]["end_reason"] == "context_overflow"
    else:
        assert trajectory.phase is Phase.ENDED
    trajectory = new(on_overflow=mode)
    play(trajectory, observation=10)
    assert trajectory.sampling((3,)).max_tokens == 4


@pytest.mark.parametrize(
    ("mode", "observation", "final"),
    [
        # Prompt 4, action 2: 14 are free, or 10 if a whole action must follow.
        ("truncate", 13, None),
        ("truncate", 14, 14),
        ("truncate", 20, 14),
        ("end", 10, None),
        ("end", 11, 11),
        ("end", 14, 14),
        ("end", 15, 0),
        ("window", 10, None),
        ("window", 14, 14),
        ("window", 15, 0),
    ],
)
def test_an_observation_longer_than_the_context_ends_the_trajectory_with_a_reason(
    mode, observation, final
):
    """`truncate` keeps the part that fits. The others keep all or nothing."""
    trajectory = new(on_overflow=mode)
    play(trajectory, observation=observation)
    row = trajectory.rows[-1]
    assert row["end_reason"] == (None if final is None else EndReason.CONTEXT_OVERFLOW.value)
    assert row["truncated"] == (final is not None)
    assert row["final_token_ids"] == (None if final is None else [200] * final)


def test_a_long_late_observation_drops_all_steps_but_its_own():
    trajectory = new(on_overflow="window")
    play(trajectory)
    play(trajectory, observation=10)  # 2 + 10 fill the room exactly
    assert trajectory.pending_window == (4, 9, None)
    play(trajectory, observation=11)
    assert trajectory.rows[-1]["end_reason"] == "context_overflow"
    assert trajectory.rows[-1]["final_token_ids"] == []
    assert trajectory.rows[-1]["context_start"] == 9


def test_forgotten_tokens_of_an_action_take_no_room_when_the_window_moves():
    """Steps have 7 tokens, 4 of them visible, so three fit into 12 tokens. At the fourth, steps may
    take 12 * 0.7 = 8.4 tokens: the last two fit."""
    trajectory = new(on_overflow="window", window_keep=0.7)
    for _ in range(3):
        play(trajectory, action=4, forgotten=3)
        assert trajectory.pending_window[1] == 0
    play(trajectory, action=4, forgotten=3)
    assert trajectory.pending_window == (4, 18, [18, 21, 25, 28])
    play(trajectory, action=4, forgotten=3)
    assert [row["prompt_tokens"] for row in trajectory.rows] == [4, 8, 12, 16, 12]


def test_forgotten_tokens_of_the_last_step_make_room_for_its_observation():
    """1 + 11 visible tokens fill the room exactly. All 4 + 11 tokens of the step would not fit."""
    trajectory = new(on_overflow="window")
    play(trajectory)
    play(trajectory, action=4, observation=11, forgotten=3)
    assert trajectory.pending_window == (4, 9, [9, 12])
    assert trajectory.sampling((3,)).max_tokens == 4
    play(trajectory, action=4, observation=12, forgotten=3)
    assert trajectory.rows[-1]["end_reason"] == "context_overflow"


def test_the_last_state_has_the_window_of_the_last_step():
    """The last observation does not move the window, even if it overflows."""
    for observation, final in ((3, 3), (4, 4), (5, 0)):
        trajectory = new(on_overflow="window", max_steps=3)
        play(trajectory)
        play(trajectory)
        play(trajectory, observation=observation)
        row = trajectory.rows[-1]
        assert (row["end_reason"], row["context_start"]) == ("max_steps", 0)
        assert row["final_token_ids"] == [202] * final


def test_an_engine_that_saw_other_tokens_is_an_error():
    trajectory = new(on_overflow="window")
    generation = Generation([5], [0.0], "stop", 3, 0, 1.0)
    with pytest.raises(RuntimeError, match=r"step 0: the engine saw 3 tokens instead of 4"):
        trajectory.act(generation, Action(ActionType.TOOL_CALL, "x"), NOW)


@pytest.mark.parametrize("mode", ["end", "window"])
def test_a_context_without_room_for_any_prompt_is_refused(mode):
    with pytest.raises(ParameterError, match="no prompt would fit"):
        RolloutParameters.read(
            {"on_overflow": mode, "max_context_tokens": 64, "max_tokens_per_step": 64}, "rollout"
        )


LONG = {"max_steps": 40, "max_context_tokens": 60, "on_overflow": "window"}


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize("concurrency", [1, 5, 100])
def test_the_table_records_what_the_engine_saw_in_each_step(deterministic, concurrency):
    """For many concurrent trajectories, whose groups share their prompts."""

    class Endless(ToyEnv):
        async def step(self, action):
            observation, _ = await super().step(action)
            return observation or {"go": "on"}, 0.0, False, False, {}

    limits = LONG | {"deterministic": deterministic, "concurrency": concurrency}
    engine = FakeEngine(lengths=(1, 9))
    wanted = requests(3, 3)
    rollouts, timings = run(engine, wanted, Endless, **limits)
    check_tables(rollouts, timings, parameters(**limits), STOPS)
    moves = 0
    for name, steps in rollouts.groupby("trajectory_id"):
        stream: list[int] = []
        for row, seen in zip(steps.to_dict("records"), engine.seen[name], strict=True):
            stream += list(row["context_token_ids"])
            window = (row["context_prefix"], row["context_start"], row["context_drops"])
            assert visible_context(stream, *window) == seen
            stream += list(row["action_token_ids"])
        assert len(steps) == 40
        moves += steps["context_start"].nunique() - 1
    assert moves >= 18
    assert again(rollouts, wanted, Endless, **limits).differences == []


def test_a_replay_names_a_changed_window():
    wanted = requests(1, 1, prompt="hi")
    script = {wanted[0].trajectory_id: [[*CALL, STOPS[0]]] * 12}
    limits = LONG | {"max_steps": 12}
    rollouts, _ = run(ScriptedEngine(script), wanted, **limits)
    rows = tables.to_arrow(rollouts, "rollouts").to_pylist()
    moved = [row["step_index"] for row in rows if row["context_start"]]
    assert moved
    assert again(rows, wanted, **limits).differences == []
    rows[moved[-1]]["context_start"] -= 1
    (difference,) = again(rows, wanted, **limits).differences
    assert (difference.step_index, difference.column) == (moved[-1], "context_start")


def test_without_an_overflow_all_modes_are_equal():
    tables = [scripted(CALL, CALL, [13], on_overflow=mode)[0] for mode in MODES]
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])
