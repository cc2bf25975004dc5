from __future__ import annotations

import pytest

from agent_r1 import tables
from agent_r1.environments import EnvironmentParameters
from agent_r1.parameters import ParameterError
from agent_r1.rollout import environment_factory
from tests.support.toy_world import task

NO_DOCUMENTS = tables.empty("documents")


def test_each_task_gets_the_environment_that_it_names():
    parameters = EnvironmentParameters(name="multihop_qa", options={"top_k": 3, "timeout_s": 2})
    make = environment_factory(parameters, NO_DOCUMENTS)
    configured = make(task(environment="multihop_qa"))
    assert (configured.options.top_k, configured.options.timeout_s) == (3, 2)
    other = make(task(environment="tests.support.toy_world:ToyEnv"))
    assert type(other).__name__ == "ToyEnv"
    assert other.options.timeout_s == type(other).Options().timeout_s
    assert other.resources is configured.resources


def test_an_unknown_environment_or_option_is_an_error_before_any_episode():
    with pytest.raises(ParameterError, match="multihop_qa"):
        environment_factory(EnvironmentParameters(name="multihop_qs"), NO_DOCUMENTS)
    with pytest.raises(ParameterError, match="top_k"):
        environment_factory(EnvironmentParameters(options={"topk": 1}), NO_DOCUMENTS)
