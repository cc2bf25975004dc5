"""Text games: what decides a game, its episodes, and the errors if a game is missing."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path

import pandas as pd
import pytest

from agent_r1 import schemas
from agent_r1.environments import make_environment, start, transition
from agent_r1.extras import MissingExtraError
from agent_r1.mdp import Action, ActionType, EndReason, EnvironmentFailure, ToolCall, ToolStatus
from agent_r1.parameters import ParameterError
from agent_r1.tasks import textworld
from agent_r1.tasks.files import TaskFiles
from agent_r1.tasks.parameters import TasksParameters
from agent_r1.tasks.source import SourceInputs
from agent_r1.tasks.textworld import TextWorldParameters, load_textworld, start_game

SIZES = {"train": 1, "held_out": 1}
SMALL = {"rooms": 3, "objects": 3, "quest_length": 4}


def act(*commands: str) -> Action:
    calls = tuple(ToolCall("act", {"command": command}) for command in commands)
    return Action(ActionType.TOOL_CALL, "…", tool_calls=calls)


def begin(task, **options):
    env = make_environment("textworld", task, None, options)
    return env, asyncio.run(start(env))


def games_of(values, sizes):
    parameters = TextWorldParameters.read(values, "tasks.sources.textworld")
    return load_textworld(parameters, sizes)


def play(env, *commands: str):
    return asyncio.run(transition(env, act(*commands)))


@pytest.fixture(scope="module")
def games(tmp_path_factory):
    pytest.importorskip("textworld")
    parameters = SMALL | {"folder": str(tmp_path_factory.mktemp("games"))}
    return parameters, games_of(parameters, SIZES)[0]


@pytest.fixture
def task(games):
    return games[1].to_dict("records")[0]


@pytest.fixture
def way(task):
    """The commands of the shortest solution."""
    return [turn["call"]["arguments"]["command"] for turn in json.loads(task["payload"])["script"]]


def test_without_the_package_the_error_says_how_to_install_it(tmp_path, monkeypatch):
    for name in ("textworld", "textworld.generator"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"pip install -e '\.\[textworld\]'"):
        games_of(SMALL | {"folder": str(tmp_path)}, SIZES)


def test_an_unknown_parameter_is_named():
    with pytest.raises(ParameterError, match="'rooms'"):
        TextWorldParameters.read({"room": 3}, "tasks.sources.textworld")


def test_a_missing_game_is_a_failure_of_the_environment(tmp_path):
    payload = {"game": str(tmp_path / "g.z8"), "sha256": "0"}
    with pytest.raises(EnvironmentFailure, match="run prepare_tasks again"):
        start_game(payload)
    with pytest.raises(EnvironmentFailure, match="run prepare_tasks again"):
        begin({"task_id": "t", "prompt": "", "answers": [], "payload": json.dumps(payload)})


def stub_task(_, split, number, *rest):
    """A task row whose game is not generated."""
    return {
        "task_id": f"{split}:{number}",
        "environment": "textworld",
        "split": split,
        "family": "f",
        "prompt": "p",
        "answers": [],
        "payload": json.dumps({"game": f"games/{split}{number}.z8"}),
    }


def test_max_games_limits_the_games_of_each_split(monkeypatch):
    monkeypatch.setattr(textworld, "_task", stub_task)
    own = textworld.TextWorldParameters(max_games={"train": 3, "ood": 0})
    tasks = TasksParameters(sizes={"train": 5, "validation": 2, "ood": 4})
    inputs = SourceInputs(own, tasks, "textworld", (), TaskFiles())
    tasks, _ = textworld.SOURCE.load(inputs)
    counts = tasks["split"].value_counts().to_dict()
    assert (counts["train"], counts["validation"]) == (3, 2)
    assert "ood" not in counts


def test_both_files_of_each_game_are_recorded_for_the_manifest(monkeypatch):
    monkeypatch.setattr(textworld, "_task", stub_task)
    sizes = dict.fromkeys(schemas.SPLITS, 0) | {"train": 1, "ood": 1}
    files = TaskFiles()
    own = textworld.TextWorldParameters()
    textworld.SOURCE.load(SourceInputs(own, TasksParameters(sizes=sizes), "textworld", (), files))
    assert [path.as_posix() for path in files.used] == [
        "games/train0.z8", "games/train0.json", "games/ood0.z8", "games/ood0.json",
    ]  # fmt: skip


@pytest.mark.slow
def test_equal_parameters_give_equal_bytes_and_splits_have_different_games(games, tmp_path):
    parameters, tasks = games
    assert tasks["split"].tolist() == ["train", "held_out"]
    payloads = [json.loads(payload) for payload in tasks["payload"]]
    assert len({payload["sha256"] for payload in payloads}) == 2
    kept = games_of(parameters, SIZES)[0]
    pd.testing.assert_frame_equal(kept, tasks)
    elsewhere = games_of(parameters | {"folder": str(tmp_path)}, SIZES)[0]
    made = [json.loads(payload) for payload in elsewhere["payload"]]
    assert [one["sha256"] for one in made] == [one["sha256"] for one in payloads]
    assert [path.suffix for path in sorted(tmp_path.iterdir())] == [".json", ".z8"] * 2


@pytest.mark.slow
@pytest.mark.parametrize("reward", ["score", "progress"])
def test_the_shortest_solution_wins_and_earns_one(task, way, reward):
    """``score`` pays at the end, ``progress`` a share for each command."""
    env, first = begin(task, reward=reward)
    assert first["task"] == task["prompt"]
    assert way[0] in first["scene"]
    steps = [play(env, command) for command in way]
    share = 1 / len(way)
    expected = {"score": [0.0] * (len(way) - 1) + [1.0], "progress": [share] * len(way)}
    assert [step.reward for step in steps] == pytest.approx(expected[reward])
    assert [step.terminated for step in steps] == [False] * (len(way) - 1) + [True]
    assert steps[-1].end_reason is EndReason.ENVIRONMENT


@pytest.mark.slow
def test_going_back_costs_what_going_there_earned(task):
    env, first = begin(task, reward="progress")
    there = re.search(r"You can: .*go (north|south|east|west)", first["scene"])[1]
    back = {"north": "south", "south": "north", "east": "west", "west": "east"}[there]
    assert play(env, f"go {there}", f"go {back}").reward == pytest.approx(0)


@pytest.mark.slow
def test_parallel_commands_are_played_in_order(task, way):
    env, _ = begin(task)
    step = play(env, *way)
    assert (step.reward, step.terminated) == (1.0, True)
    assert len(step.tool_results) == len(way)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["fly", "undo", "save", "restart", "quit", ""])
def test_p34_a_command_that_the_game_does_not_offer_never_reaches_the_interpreter(
    task, way, command
):
    env, _ = begin(task)
    step = play(env, command)
    assert step.observation == {"tool_results": ["error: act: that cannot be done"]}
    # Not a valid call, so a reward term may penalise it.
    assert step.tool_results[0].status is ToolStatus.BAD_ARGUMENTS
    assert (step.reward, step.terminated) == (0.0, False)
    assert play(env, *way).reward == 1.0


@pytest.mark.slow
def test_an_answer_gives_up(task):
    env, _ = begin(task)
    step = asyncio.run(transition(env, Action(ActionType.ANSWER, "…", answer="enough")))
    assert (step.reward, step.terminated) == (0.0, True)


@pytest.mark.slow
def test_p32_many_episodes_at_once_do_not_disturb_each_other(games):
    tasks = games[1].to_dict("records")

    async def episode(number: int) -> list[float]:
        task = tasks[number % len(tasks)]
        env = make_environment("textworld", task, None, {"reward": "progress"})
        await start(env)
        script = env.payload["script"]
        return [(await transition(env, act(turn["call"]["arguments"]["command"]))).reward
                for turn in script]  # fmt: skip

    async def all_of_them() -> list[list[float]]:
        return await asyncio.gather(*(episode(number) for number in range(16)))

    for rewards in asyncio.run(all_of_them()):
        assert sum(rewards) == pytest.approx(1)


@pytest.mark.slow
def test_a_game_with_a_missing_file_is_generated_again(games, tmp_path):
    parameters = SMALL | {"folder": str(tmp_path)}
    task = games_of(parameters, {"train": 1})[0]
    logic = Path(json.loads(task["payload"][0])["game"]).with_suffix(".json")
    logic.unlink()
    with pytest.raises(EnvironmentFailure, match="missing or was changed"):
        begin(task.to_dict("records")[0])
    pd.testing.assert_frame_equal(games_of(parameters, {"train": 1})[0], task)
    begin(task.to_dict("records")[0])


@pytest.mark.slow
def test_a_changed_game_is_not_played(games, tmp_path):
    parameters = SMALL | {"folder": str(tmp_path)}
    task = games_of(parameters, {"train": 1})[0].to_dict("records")[0]
    logic = Path(json.loads(task["payload"])["game"]).with_suffix(".json")
    logic.write_text(logic.read_text(encoding="utf-8") + " ", encoding="utf-8")
    with pytest.raises(EnvironmentFailure, match="was changed"):
        begin(task)
