"""The fault-injection matrix of tools: what is recorded for each kind of failure, each way of
running a tool, failing on the first one, two or three tries, in one of two trajectories or in both.

1. Each cell collects two trajectories that call the tool and then answer. In the cells of `one`,
   the second trajectory's tool is healthy. All cells run at the same time, so that the test waits
   only once for their time limits.
2. Asserted in each cell: status, attempts, observation, end and reward of both trajectories.
3. A tool that fails on all tries for both counts as down, and neither trajectory is scored. If it
   fails for one of them, the failure is that trajectory's result, and is scored.
4. A tool that kills its process is tested in a worker process only: in a thread or on the event
   loop it would kill the trainer.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from agent_r1.engines.scripted import ScriptedEngine
from agent_r1.mdp import ActionType, ToolCall
from agent_r1.rewards import RewardParameters, rewards_table
from agent_r1.rollout import collect
from agent_r1.tools.processes import PROCESSES
from tests.support import faulty_tools
from tests.support.toy_world import (
    ANSWER,
    CALL,
    STOPS,
    ToyChat,
    ToyEnv,
    parameters,
    requests,
    tasks_table,
)

LIMIT_S = 0.5
"""Per attempt. Long enough that a healthy tool answers in it on a busy machine."""


class Final(NamedTuple):
    """The record of the third failure, or of the only one."""

    status: str
    content: str


TRIED_AGAIN = {
    "exception": Final("error", "error: fail: ConnectionError: no route, try 3"),
    "timeout": Final("timeout", "error: fail did not answer within 0.5 s"),
    "hang": Final("timeout", "error: fail did not answer within 0.5 s"),
    "not_json": Final(
        "error",
        "error: fail: TypeError: returned what is neither text nor JSON: "
        "Object of type set is not JSON serializable",
    ),
    "killed": Final("error", "error: fail: its process was killed by SIGKILL"),
}
"""Failures of the tool: retried, and the third is final."""

AT_ONCE = {
    "oversized": Final("oversized", "yyyyyyyy\n[cut: 8 of 100000 characters]"),
    "unknown_tool": Final(
        "unknown_tool", "error: there is no tool 'fial'. Did you mean 'fail'? Known: fail."
    ),
    "bad_arguments": Final("bad_arguments", "error: fail: 'seven' is no number"),
}
"""Outcomes that another try would not change."""

CELLS = [
    (kind, mode, tries, scope)
    for kind in (*TRIED_AGAIN, *AT_ONCE, "environment")
    for mode in faulty_tools.MODES
    for tries in (1, 2, 3)
    for scope in ("one", "all")
    if mode == "process" or kind != "killed"
]

FIRST, SECOND = "iter_00001/task00/0", "iter_00001/task01/0"


UNSCORED = {"observation": None, "end_reason": "infrastructure", "reward": None}


def expected(kind: str, tries: int, scope: str) -> dict[str, Any]:
    """The record of a trajectory whose tool fails on its first ``tries`` tries."""
    if kind == "environment":
        return {"results": [], **UNSCORED}
    if kind in AT_ONCE:
        (status, content), attempts = AT_ONCE[kind], 1
    elif tries == 3:
        (status, content), attempts = TRIED_AGAIN[kind], 3
    else:
        return healthy(attempts=tries + 1)
    results = [(status, attempts, content)]
    if kind in TRIED_AGAIN and scope == "all":
        return {"results": results, **UNSCORED}
    return {"results": results, "observation": content, "end_reason": "answered", "reward": 1.0}


def healthy(attempts: int = 1) -> dict[str, Any]:
    results = [("ok", attempts, "there")]
    return {"results": results, "observation": "there", "end_reason": "answered", "reward": 1.0}


def environment(cell: tuple[str, str, int, str], folder: Any) -> type[ToyEnv]:
    """An environment with the tool. Its step fills in the arguments, which the toy chat omits."""
    kind, mode, tries, scope = cell
    name = "fial" if kind == "unknown_tool" else "fail"
    options = {"timeout_s": LIMIT_S, "max_result_chars": 8 if kind == "oversized" else 4000}

    class FaultyEnv(ToyEnv):
        echo = None
        fail = faulty_tools.MODES[mode]

        def __init__(self, row: Any) -> None:
            super().__init__(row, options=options)

        async def step(self, action: Any) -> Any:
            if action.type is ActionType.TOOL_CALL:
                fails = scope == "all" or self.task["task_id"] == "task00"
                file = folder / "-".join(map(str, (*cell, self.task["task_id"])))
                arguments = {"kind": kind, "file": str(file), "times": tries if fails else 0}
                called = ToolCall(name if fails else "fail", arguments)
                action = replace(action, tool_calls=(called,))
            return await super().step(action)

    return FaultyEnv


def play(cell: tuple[str, str, int, str], folder: Any) -> dict[str, dict[str, Any]]:
    wanted = requests(2, 1)
    script = [[*CALL, STOPS[0]], [*ANSWER, STOPS[0]]]
    engine = ScriptedEngine({one.trajectory_id: script for one in wanted})
    make = environment(cell, folder)
    rollouts, _ = collect(engine, ToyChat(), make, wanted, parameters())
    terms = RewardParameters.read({"terms": {"environment": {"weight": 1.0}}}, "reward")
    rewards = rewards_table(rollouts, tasks_table(2), terms)
    rows = rollouts.assign(reward=rewards["trajectory_reward"].astype(object)).to_dict("records")
    return {
        name: recorded([r for r in rows if r["trajectory_id"] == name]) for name in (FIRST, SECOND)
    }


def recorded(steps: list[dict[str, Any]]) -> dict[str, Any]:
    results = json.loads(steps[0]["tool_results"])
    reward = steps[0]["reward"]
    return {
        "results": [(one["status"], one["attempts"], one["content"]) for one in results],
        "observation": steps[0]["observation"] or None,
        "end_reason": steps[-1]["end_reason"],
        "reward": reward if isinstance(reward, float) else None,
    }


@pytest.fixture(scope="module")
def matrix(tmp_path_factory) -> dict[tuple, dict[str, dict[str, Any]]]:
    """Cell → trajectory → record."""
    folder = tmp_path_factory.mktemp("tries")

    try:
        with ThreadPoolExecutor(len(CELLS)) as side_by_side:
            played = side_by_side.map(lambda cell: play(cell, folder), CELLS)
            return dict(zip(CELLS, played, strict=True))
    finally:
        faulty_tools.NEVER.set()
        PROCESSES.close()


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: "-".join(map(str, cell)))
def test_p31_the_record_of_each_cell(matrix, cell):
    kind, _, tries, scope = cell
    failing = expected(kind, tries, scope)
    assert matrix[cell] == {FIRST: failing, SECOND: failing if scope == "all" else healthy()}


def test_the_matrix_is_complete():
    assert len(CELLS) == (9 * 3 - 2) * 3 * 2
