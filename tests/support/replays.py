"""Records made in the toy world, and what a replay of them finds."""

from __future__ import annotations

from agent_r1 import tables
from agent_r1.engines.scripted import ScriptedEngine
from agent_r1.rollout import replay_with
from tests.support.toy_world import (
    ANSWER,
    CALL,
    MALFORMED,
    STOPS,
    ToyChat,
    ToyEnv,
    parameters,
    requests,
    run,
)

FIRST = "iter_00001/task00/0"


def again(table, wanted=None, make=ToyEnv, version=None, on_progress=None, chat=None, **limits):
    """What a replay of ``table`` finds; a table may be given as rows."""
    if isinstance(table, list):
        table = tables.from_rows(table, "rollouts")
    wanted = requests() if wanted is None else wanted
    limits = parameters(**limits)
    return replay_with(chat or ToyChat(), make, table, wanted, limits, version, on_progress)


def scripts(wanted, *actions):
    script = [[*action, STOPS[0]] for action in actions]
    return ScriptedEngine({one.trajectory_id: script for one in wanted})


def short(actions=(CALL, MALFORMED, ANSWER), count=2, samples=2):
    """Requests, and the rows of trajectories that all take the same three actions."""
    wanted = requests(count, samples)
    table, _ = run(scripts(wanted, *actions), wanted)
    return wanted, tables.to_arrow(table, "rollouts").to_pylist()


def columns(found):
    return [(one.trajectory_id, one.step_index, one.column) for one in found.differences]
