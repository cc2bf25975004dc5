import asyncio
from pathlib import Path

import pytest

from agent_r1.engines.base import Sampling
from agent_r1.engines.scripted import ScriptedEngine, ScriptError


def generate(engine, session, new, max_tokens=8):
    sampling = Sampling(max_tokens=max_tokens, stop_token_ids=(9,), seed=0)
    return asyncio.run(engine.generate(session, new, sampling))


def test_each_session_follows_its_own_script():
    engine = ScriptedEngine({"a": [[1, 9], [2, 9]], "b": [[3, 3, 9]]})
    first = generate(engine, "a", [7, 7, 7])
    assert (first.token_ids, first.logprobs, first.finish_reason) == ([1, 9], [0.0, 0.0], "stop")
    assert first.prompt_tokens == 3
    assert generate(engine, "b", [7]).token_ids == [3, 3, 9]
    second = generate(engine, "a", [8])
    assert second.token_ids == [2, 9]
    assert second.prompt_tokens == 3 + 2 + 1


def test_a_prompt_can_be_appended_without_an_action_and_shared():
    engine = ScriptedEngine({"a": [[1, 9]], "b": [[2, 9]]})
    assert generate(engine, "group", [7, 7], max_tokens=0).token_ids == []
    engine.fork("group", ["a", "b"])
    assert generate(engine, "a", []).prompt_tokens == 2
    assert generate(engine, "b", [5]).prompt_tokens == 3


def test_a_script_that_has_ended_or_exceeds_the_limit_is_an_error():
    engine = ScriptedEngine({"a": [[1, 2, 9]]})
    with pytest.raises(ScriptError, match="action 0 of 'a' has 3 tokens, more than the limit of 2"):
        generate(engine, "a", [7], max_tokens=2)
    with pytest.raises(ScriptError, match="the script of 'a' ends after 1 actions"):
        generate(engine, "a", [7])
    with pytest.raises(ScriptError, match="the script of 'c' ends after 0 actions"):
        generate(engine, "c", [7])


def test_a_closed_session_starts_over():
    engine = ScriptedEngine({"a": [[1, 9]]})
    generate(engine, "a", [7])
    engine.close("a")
    engine.close("unknown")
    assert generate(engine, "a", [7]).prompt_tokens == 1


def test_it_has_no_policy_to_load():
    engine = ScriptedEngine({})
    engine.load(Path(), "scripted")
    with pytest.raises(ScriptError, match="no policy 'abc'"):
        engine.load(Path(), "abc")
