"""The adapter for Gymnasium environments: actions, observations and failures."""

from __future__ import annotations

import asyncio
import string
import threading

import pytest

from agent_r1.environments import finish, make_environment, start, transition
from agent_r1.mdp import Action, ActionType, EndReason, EnvironmentFailure, ToolCall

gymnasium = pytest.importorskip("gymnasium")

TASK = {"task_id": "t", "prompt": "Guess the number.", "payload": "{}"}


class Guess(gymnasium.Env):
    """Guess a number. With ``words``, observations are dicts, and actions are any text."""

    closed = 0

    def __init__(self, words=False):
        spaces = gymnasium.spaces
        self.words = words
        self.action_space = spaces.Text(5) if words else spaces.Discrete(10)
        told = spaces.Text(100, charset=string.printable)
        number = spaces.Discrete(2)
        self.observation_space = spaces.Dict(said=told, words=number) if words else told

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.secret = (options or {}).get("secret", int(self.np_random.integers(10)))
        return self.told("I think of a number."), {}

    def step(self, action):
        if action in (9, "stop"):
            raise OSError("the game crashed")
        if action in (8, "wait"):
            threading.Event().wait(5)
        right = str(action) == str(self.secret)
        info = {"secret": self.secret, "object": object()}
        return self.told("yes" if right else "no"), 1.0 if right else -0.1, right, False, info

    def told(self, text):
        return {"said": text, "words": 1} if self.words else text

    def close(self):
        Guess.closed += 1


gymnasium.register("Guess-v0", Guess)


def play(*actions, task=TASK, **options):
    """The first observation and the transitions of these actions."""

    async def scenario():
        env = make_environment("gymnasium", task, None, {"id": "Guess-v0"} | options)
        steps = [await start(env)]
        for action in actions:
            steps.append(await transition(env, action))
            if env.done:
                break
        await finish(env)
        return steps

    return asyncio.run(scenario())


def act(*texts):
    calls = tuple(ToolCall("act", {"text": text}) for text in texts)
    return Action(ActionType.TOOL_CALL, "…", tool_calls=calls)


SECRET = TASK | {"payload": '{"options": {"secret": 3}}'}


def test_a_turn_without_a_call_is_an_action_only_with_plain_text():
    turn = Action(ActionType.MALFORMED, "3", code="3", error="could not parse: no tool call")
    told, played = play(turn, task=SECRET)[1], play(turn, task=SECRET, plain_text=True)[1]
    assert (told.observation, told.reward) == ({"error": turn.error}, 0.0)
    assert (played.terminated, played.reward) == (True, 1.0)


def test_a_game_is_played_to_its_end():
    first, wrong, right = play(act("2"), act("3"), task=SECRET)
    assert first == {"task": "Guess the number.", "observation": "I think of a number."}
    assert (wrong.observation, wrong.reward, wrong.terminated) == (
        {"tool_results": ["no"]},
        -0.1,
        False,
    )
    assert wrong.tool_results[0].status == "ok"
    assert (right.reward, right.terminated, right.end_reason) == (1.0, True, EndReason.ENVIRONMENT)
    assert right.info == {"secret": 3}


def test_several_calls_of_a_turn_are_played_in_order_and_stop_at_the_end():
    _, step = play(act("1", "3", "2"), task=SECRET)
    assert [result.content for result in step.tool_results] == ["no", "yes", "the game is over"]
    assert (step.reward, step.terminated) == (0.9, True)


def test_answers_and_plain_text_are_actions():
    answer = Action(ActionType.ANSWER, "", answer="2")
    plain = Action(ActionType.MALFORMED, "3", error="could not parse")
    _, first, told = play(answer, plain, task=SECRET)
    assert (first.observation, first.terminated) == ({"observation": "no"}, False)
    assert (told.observation, told.reward) == ({"error": "could not parse"}, 0.0)
    _, right = play(plain, task=SECRET, plain_text=True)
    assert (right.reward, right.terminated) == (1.0, True)


def test_a_text_space_and_a_dict_observation():
    first, step = play(act("3"), task=SECRET, kwargs={"words": True})
    assert first == {"task": "Guess the number.", "said": "I think of a number.", "words": 1}
    assert step.terminated
    _, step = play(act("2"), task=SECRET, kwargs={"words": True})
    assert step.observation == {"tool_results": ["said: no\nwords: 1"]}


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ("12", False, "error: act: an action is a whole number from 0 to 9"),
        ("two", False, "error: act: an action is a whole number from 0 to 9"),
        ("too long", True, "error: act: an action has 1 to 5 characters out of"),
    ],
)
def test_an_invalid_action_gives_an_error_and_costs_nothing(text, words, said):
    _, step = play(act(text), kwargs={"words": words})
    assert step.observation["tool_results"][0].startswith(said)
    assert (step.tool_results[0].status, step.reward) == ("bad_arguments", 0.0)


@pytest.mark.parametrize("text", ["--5", "-1", "10", "9" * 5000, "1.0", "²", "٣", ""])
@pytest.mark.parametrize("kind", ["call", "answer"])
def test_a_text_that_is_not_the_number_of_an_action_gives_an_error(kind, text):
    """As a failure of the game it would not be scored, and a losing agent could use that."""
    action = Action(ActionType.ANSWER, text, answer=text) if kind == "answer" else act(text)
    _, told, played = play(action, act(" 3 "))
    assert "an action is a whole number from 0 to 9" in str(told.observation)
    assert (told.reward, told.end_reason) == (0.0, None)
    assert played.reward in (1.0, -0.1)


def test_actions_that_are_not_text_are_refused():
    with pytest.raises(EnvironmentFailure, match=r"'Pendulum-v1' are neither text nor .*\(Box\)"):
        play(id="Pendulum-v1")


def test_the_observation_has_the_rendering_of_a_game_that_renders_text():
    lake = {"id": "FrozenLake-v1", "kwargs": {"is_slippery": False, "render_mode": "ansi"}}
    first, down = play(act("1"), **lake)
    red = "\x1b[41m{}\x1b[0m".format
    assert first["rendering"].splitlines()[1:] == [red("S") + "FFF", "FHFH", "FFFH", "HFFG"]
    assert f"SFFF\n{red('F')}HFH" in down.observation["tool_results"][0]


def test_the_same_task_is_the_same_game():
    games = [play(act("0"), act("1"), act("2"), task=TASK) for _ in range(2)]
    assert games[0][-1].info["secret"] == games[1][-1].info["secret"]


def test_p31_a_game_that_crashes_or_hangs_is_an_infrastructure_failure():
    _, crashed = play(act("9"))
    assert (crashed.reward, crashed.end_reason) == (None, EndReason.INFRASTRUCTURE)
    assert crashed.info["failure"].endswith("OSError: the game crashed")
    _, stuck = play(act("8"), timeout_s=0.05)
    assert (stuck.reward, stuck.end_reason) == (None, EndReason.INFRASTRUCTURE)
    assert "did not answer in time" in stuck.info["failure"]


def test_a_game_is_closed():
    before = Guess.closed
    play(act("1"))
    assert Guess.closed == before + 1
