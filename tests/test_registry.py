"""The pipelines by name, and how they are wired; with toy nodes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from agent_r1.pipeline_registry import producer_command, register_pipelines
from agent_r1.pipelines.namespaces import iteration_name


def test_iterations_are_built_when_asked_for(project):
    registry = register_pipelines()
    assert "iter_00007" not in list(registry)
    assert {node.name for node in registry["iter_00007"].nodes} == {
        "iter_00007.generate_rollouts", "iter_00007.score_rewards", "iter_00007.compute_logprobs",
        "iter_00007.compute_advantages", "iter_00007.build_preferences",
        "iter_00007.update_policy", "iter_00007.validate_policy", "iter_00007.evaluate_policy",
    }  # fmt: skip


def test_an_iteration_takes_over_from_the_one_before_and_refers_to_sft(project):
    inputs = {name for name in register_pipelines()["iter_00007"].inputs() if ":" not in name}
    assert inputs == {
        "engine", "tasks", "documents", "memory", "iter_00000.policy", "iter_00006.policy",
        "iter_00006.critic", "iter_00006.trainer_state", "iter_00006.controllers",
    }  # fmt: skip


def test_parameters_are_shared_by_all_iterations(project):
    registry = register_pipelines()
    for name in ("base", "iter_00000", "iter_00001"):
        parameters = {p for p in registry[name].inputs() if p.startswith("params:")}
        assert parameters
        assert not [p for p in parameters if p.startswith(f"params:{name}.")]


def test_the_first_iteration_starts_from_sft(project):
    (node,) = [n for n in register_pipelines()["iter_00001"].nodes if "rollouts" in n.name]
    assert "iter_00000.policy" in node.inputs


@pytest.mark.parametrize("name", ["iter_7", "iter_0000x", "iterations", "iter_00000_"])
def test_other_names_are_unknown(project, name):
    with pytest.raises(KeyError):
        register_pipelines()[name]
    assert register_pipelines().get(name) is None


def test_the_default_pipeline_is_one_connected_experiment(project):
    pipeline = register_pipelines()["__default__"]
    names = [node.name for node in pipeline.nodes]
    assert names[0] == "prepare_tasks" or names[0] == "base.import_policy"
    assert names[-1] == "build_report"
    produced = pipeline.all_outputs()
    raw = {name for name in pipeline.inputs() if not name.startswith("param")}
    sources = {"countries", "cities", "elements", "task_files"}
    assert raw == sources | {"memory", "engine", "history"}
    assert "iter_00001.policy" in produced
    assert len(names) == len(set(names)) == 16


def test_names_sort_as_numbers():
    names = [iteration_name(index) for index in (0, 9, 10, 123)]
    assert names == sorted(names) == ["iter_00000", "iter_00009", "iter_00010", "iter_00123"]


@pytest.mark.parametrize(
    ("dataset", "command"),
    [
        ("tasks", "kedro run --pipelines prepare_tasks --nodes prepare_tasks"),
        ("base.policy", "kedro run --pipelines base --nodes base.import_policy"),
        ("iter_00000.policy", "kedro run --pipelines iter_00000 --nodes iter_00000.train_sft"),
        ("iter_00012.policy", "kedro run --pipelines iter_00012 --nodes iter_00012.update_policy"),
        ("elsewhere.policy", "kedro run"),
    ],
)
def test_what_makes_a_dataset(project, dataset, command):
    assert producer_command(dataset, "x") == f"{command} --params experiment=x"


def test_listing_the_pipelines_imports_no_torch():
    code = (
        "import sys; from agent_r1.pipeline_registry import register_pipelines; "
        "import agent_r1.settings; print(sorted(dict(register_pipelines()))); "
        "print([m for m in ('torch', 'transformers', 'mlflow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names, heavy = done.stdout.splitlines()[-2:]
    assert "'iter_00000'" in names
    assert heavy == "[]"
