"""All parameters, checked before any work starts; with the real groups."""

from __future__ import annotations

import shutil
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from agent_r1.configuration import groups as parameter_groups
from agent_r1.configuration.groups import (
    lookup,
    read_parameters,
    recorded_parameters,
)
from agent_r1.configuration.references import check_base, check_references
from agent_r1.lineage.branches import differences, flatten
from agent_r1.parameters import ParameterError, Parameters
from tests.support import REPOSITORY


def test_every_group_has_a_model():
    for path in parameter_groups.GROUPS.values():
        module, _, name = path.partition(":")
        assert issubclass(getattr(import_module(module), name), Parameters), path


def test_defaults_fill_what_is_not_given():
    resolved = read_parameters({"seed": 3, "rollout": {"group_size": 4}})
    assert lookup(resolved, "params:seed") == 3
    assert lookup(resolved, "params:experiment") == "default"
    assert lookup(resolved, "params:rollout.group_size") == 4
    assert lookup(resolved, "params:rollout")["temperature"] == 1.0
    assert lookup(resolved, "parameters")["rollout"]["group_size"] == 4
    assert set(lookup(resolved, "parameters")) == {
        *parameter_groups.GROUPS, "algorithm", "experiment", "seed", "iterations",
    }  # fmt: skip


def test_options_of_environments_have_their_defaults_too():
    """So a manifest says what was played with, whatever stands in ``conf/``."""
    values = {"options": {"timeout_s": 3}, "others": {"math": {"python": True}}}
    resolved = read_parameters({"environment": values})["environment"]
    assert resolved["options"]["timeout_s"] == 3.0
    assert resolved["options"]["top_k"] == 1
    assert resolved["options"]["budget"]["when_spent"] == "end"
    assert resolved["others"]["math"]["python"] is True
    assert resolved["others"]["math"]["sandbox"]["memory_mb"] == 512


def test_an_older_record_is_read_with_the_defaults_of_today():
    """Options and reward terms had fewer keys then, and the tasks one more."""
    groups = {"environment": {"options": {"top_k": 2}}, "reward": {"terms": {"overlong": {}}}}
    now = flatten(read_parameters(groups))
    newer = {
        "environment.options.backoff_s", "environment.options.budget.calls",
        "reward.terms.overlong.cap", "rollout.window_keep", "tasks.sources",
    }  # fmt: skip
    record = {key: value for key, value in now.items() if key not in newer}
    assert len(record) == len(now) - len(newer)
    record["tasks.environment"] = "multihop_qa"
    assert recorded_parameters(record) == now
    record["environment.options.top_k"] = 3
    assert differences(recorded_parameters(record), now) == {"environment.options.top_k": (3, 2)}


def test_a_record_that_cannot_be_read_is_compared_as_it_is():
    record = {"environment.name": "gone:Env", "tasks.environment": "gone:Env"}
    assert recorded_parameters(record) == record


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"rolout": {}}, "unknown parameter 'rolout'. Did you mean 'rollout'?"),
        ({"itertions": 3}, "unknown parameter 'itertions'. Did you mean 'iterations'?"),
        ({"rollout": {"temprature": 1}}, "'rollout.temprature'. Did you mean 'temperature'?"),
        ({"rollout": 5}, "parameter 'rollout': Input should be a group of keys (got 5)."),
        ({"seed": "x"}, "parameter 'seed'"),
        ({"advantage": {"estimator": "gpro"}}, "gpro"),
        ({"evaluation": {"splits": ["heldout"]}}, "unknown split 'heldout'"),
        ({"experiment": "../elsewhere"}, "parameter 'experiment'"),
    ],
)
def test_what_is_wrong_is_named(values, message):
    with pytest.raises(ParameterError) as caught:
        read_parameters(values)
    assert message in str(caught.value)


def test_p20_an_unknown_estimator_names_the_known_ones():
    with pytest.raises(ParameterError, match="grpo"):
        read_parameters({"advantage": {"estimator": "gpro"}})


def test_all_problems_come_at_once():
    with pytest.raises(ParameterError) as caught:
        read_parameters({"seed": -1, "rolout": {}, "rollout": {"top_q": 1, "temperature": "hot"}})
    assert len(str(caught.value).splitlines()) == 4


def test_a_number_is_a_name_too():
    assert read_parameters({"experiment": 7})["experiment"] == "7"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """What looks like a model folder from outside; its content is read much later."""
    folder = tmp_path / "model"
    folder.mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (folder / name).touch()
    return folder


def check(model: Path, **values) -> None:
    parameters = read_parameters({"model": {"path": model.name}, **values})
    check_references(parameters, model.parent)


def test_a_usable_model_folder_passes(model):
    check(model)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: shutil.rmtree(folder), "does not exist"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "has no tokenizer"),
        (lambda folder: (folder / "model.safetensors").unlink(), "no safetensors weights"),
        (lambda folder: (folder / "pytorch_model.bin").touch(), "pickled"),
    ],
)
def test_an_unusable_model_folder_is_refused(model, change, message):
    change(model)
    with pytest.raises(ParameterError, match=message):
        check(model)


def test_a_pipeline_that_reads_no_model_needs_none(tmp_path):
    parameters = read_parameters({"model": {"path": "missing"}})
    check_references(parameters, tmp_path, {"place_names", "params:pretrain"})
    for inputs in ({"params:model"}, {"params:model.path"}, {"parameters"}):
        with pytest.raises(ParameterError, match="does not exist"):
            check_references(parameters, tmp_path, inputs)


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"name": "multihop"}, "unknown environment 'multihop'. Did you mean 'multihop_qa'"),
        ({"options": {"surprise": 1}}, "unknown parameter 'environment.options.surprise'"),
    ],
)
def test_an_unknown_environment_or_option_is_refused(model, environment, message):
    with pytest.raises(ParameterError) as caught:
        check(model, environment=environment)
    assert message in str(caught.value)


def test_deepspeed_in_bfloat16_is_refused_before_any_work(model):
    half = {"path": model.name, "dtype": "bfloat16"}
    parameters = read_parameters({"model": half, "update": {"strategy": "deepspeed"}})
    with pytest.raises(ParameterError, match=r"set model\.dtype to float32, or update\.strategy"):
        check_references(parameters, model.parent)


def test_the_environments_that_rewards_are_for_exist(model):
    check(model, reward={"environments": {"multihop_qa": {"terms": {"outcome": {}}}}})
    with pytest.raises(ParameterError, match=r"'reward.environments': unknown .*'multihop_qa'"):
        check(model, reward={"environments": {"multihop": {"terms": {}}}})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"environment": {"name": "tests.support.toy_world:ToyEnv"}},
            "ToyEnv' has no default source of tasks",
        ),
        (
            {"tasks": {"sources": {"word_problems": {"environment": "maths"}}}},
            "parameter 'tasks.sources.word_problems': unknown environment 'maths'",
        ),
        ({"environment": {"others": {"maths": {}}}}, "unknown environment 'maths'"),
        (
            {"environment": {"others": {"math": {"pyton": True}}}},
            "unknown parameter 'environment.others.math.pyton'. Did you mean 'python'",
        ),
        ({"tasks": {"sources": {"hotpotqa": {}}}}, "'tasks.sources.hotpotqa.files'"),
    ],
)
def test_tasks_and_who_plays_them_are_checked_before_any_work(model, values, message):
    with pytest.raises(ParameterError) as caught:
        check(model, **values)
    assert message in str(caught.value)


SOLVED = {"terms": {"outcome": {"metric": "environment"}}}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"reward": {"terms": {"outcome": {"metric": "numeric"}}}},
            "reward.terms.outcome.metric is numeric, which cannot tell whether a task of "
            "'knowledge_base' is solved: set it to exact_match or f1 or substring",
        ),
        (
            {"reward": SOLVED},
            "which cannot tell whether a task of 'knowledge_base' is solved",
        ),
        (
            {"environment": {"name": "code"}},
            "reward.terms.outcome.metric is exact_match, which cannot tell whether a task of "
            "'functions' is solved: set it to environment",
        ),
        (
            {"environment": {"name": "math"}, "reward": {"environments": {"math": SOLVED}}},
            "reward.environments.math.terms.outcome.metric is environment, which cannot tell "
            "whether a task of 'word_problems' is solved: set it to numeric or",
        ),
        (
            {"tasks": {"sources": {"knowledge_base": {}, "functions": {}}}},
            "set it to environment, or for these tasks alone reward.environments.code.terms",
        ),
    ],
)
def test_a_metric_that_knows_no_solution_of_a_task_is_refused(model, values, message):
    with pytest.raises(ParameterError) as caught:
        check(model, **values)
    assert message in str(caught.value)


def test_a_task_that_another_environment_plays_needs_that_environment_s_metric(model):
    by_code = {"sources": {"word_problems": {"environment": "code"}}}
    check(model, tasks=by_code, reward=SOLVED)
    check(model, environment={"name": "code"}, reward={"terms": {"environment": {}}})
    both = {"terms": {"outcome": {}, "environment": {}}}
    check(model, environment={"name": "code"}, reward=both)


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        (
            {"sources": {"hotpotqa": {"files": {"train": "a.json", "validation": "a.json"}}}},
            "evaluation.splits names the split 'held_out', but no source of tasks has it (hotpotqa "
            "has train, validation): give it a file or a source, or take it out of evaluation",
        ),
        (
            {"sources": {"hotpotqa": {"files": {"train": "a.json", "held_out": "a.json"}}}},
            "validate_policy plays the split 'validation', but no source of tasks has it",
        ),
        ({"sizes": {"train": 0}}, "training plays the split 'train', but tasks.sizes.train is 0"),
        (
            {"sources": {"textworld": {"max_games": {"held_out": 0}}}},
            "no source of tasks has it (textworld has train, validation, in_domain, ood)",
        ),
    ],
)
def test_a_split_that_is_played_has_tasks(model, tasks, message):
    reward = {"terms": {"format": {}}}
    with pytest.raises(ParameterError) as caught:
        check(model, tasks=tasks, reward=reward, evaluation={"splits": ["held_out"]})
    assert message in str(caught.value)


def test_a_benchmark_is_chosen_by_two_keys(model):
    numeric = {"terms": {"outcome": {"metric": "numeric"}}}
    check(model, environment={"name": "math"}, reward=numeric)
    passing = {"terms": {"outcome": {"metric": "environment"}}}
    check(model, environment={"name": "code"}, reward=passing)
    check(
        model,
        environment={"others": {"math": {"python": True}}},
        tasks={"sources": {"knowledge_base": {}, "word_problems": {"share": 2}}},
        reward={"environments": {"math": numeric}},
    )


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"chat": {"format": "native"}}, "chat template"),
        ({"rollout": {"max_context_tokens": 100_000}}, "rollout.max_context_tokens is 100000"),
        pytest.param(
            {"environment": {"options": {"mcp": {"gone": {"command": ["no-such-server"]}}}}},
            "gone",
            marks=pytest.mark.skipif(find_spec("mcp") is None, reason="needs the extra mcp"),
        ),
    ],
)
def test_a_base_model_that_cannot_act_so_is_refused(values, message):
    check_base(read_parameters({}), REPOSITORY)
    with pytest.raises(ParameterError, match=message):
        check_base(read_parameters(values), REPOSITORY)
