"""Sources of tasks: the environment's default source, or a mixture."""

import json
import sys
from types import ModuleType

import pandas as pd
import pytest

from agent_r1 import schemas, tables
from agent_r1.parameters import ParameterError
from agent_r1.tasks.choices import SplitSizes
from agent_r1.tasks.files import TaskFileError, TaskFiles
from agent_r1.tasks.parameters import TasksParameters
from agent_r1.tasks.preparation import load_tasks, shares
from agent_r1.tasks.registry import SOURCES, default_source, find_source
from agent_r1.tasks.source import FileSourceParameters, Source, from_files

SIZES = {"train": 40, "validation": 8, "in_domain": 8, "held_out": 8, "ood": 8}


def load(environment="math", files=None, **tasks):
    parameters = TasksParameters.read({"sizes": SIZES} | tasks, "tasks")
    return load_tasks(parameters, environment, (), files or TaskFiles())


def row(name, environment):
    task = {"task_id": name, "environment": environment, "split": "train", "family": "f"}
    return task | {"prompt": name, "answers": [], "payload": "{}"}


def read_names(path, inputs):
    names = json.loads(path.read_text())
    tasks = tables.from_rows([row(name, inputs.environment) for name in names], "tasks")
    pages = [{"document_id": f"{path.name}:{n}", "title": n, "text": path.name} for n in names]
    return tasks, tables.from_rows(pages, "documents")


@pytest.fixture
def names(monkeypatch, tmp_path):
    """A user's own source. Its files hold lists of names."""
    module = ModuleType("own_tasks")
    module.SOURCE = Source("multihop_qa", from_files(read_names), FileSourceParameters)
    monkeypatch.setitem(sys.modules, "own_tasks", module)
    for name, first in (("one", 0), ("two", 100)):
        content = json.dumps([f"q{number}" for number in range(first, first + 60)])
        (tmp_path / f"{name}.json").write_text(content)
    return TaskFiles(tmp_path)


OWN = "own_tasks:SOURCE"


def test_the_environment_decides_the_default_source():
    assert default_source("multihop_qa") == "knowledge_base"
    assert default_source("math") == "word_problems"
    tasks, documents = load("math")
    assert set(tasks["environment"]) == {"math"}
    assert tasks["split"].value_counts().to_dict() == SIZES
    assert documents.empty


def test_every_registered_source_can_be_imported():
    for name in SOURCES:
        assert isinstance(find_source(name), Source)


def test_the_error_for_an_environment_without_a_source_says_how_to_name_one():
    with pytest.raises(ParameterError, match=r"tasks.sources.knowledge_base.environment: my:Env"):
        load("my:Env")
    tasks, _ = load("my:Env", sources={"word_problems": {"environment": "my:Env"}})
    assert set(tasks["environment"]) == {"my:Env"}


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ({"word_problem": {}}, "unknown source of tasks 'word_problem'. Did you mean 'word_prob"),
        ({"nowhere:SOURCE": {}}, "source of tasks 'nowhere:SOURCE' cannot be imported"),
        ({"agent_r1.mdp:Action": {}}, "is not a Source"),
        ({"word_problems": {"shares": 1}}, r"tasks.sources.word_problems.shares'. Did you mean"),
        ({"word_problems": {"share": 0}}, r"tasks.sources.word_problems.share"),
        ([], "must map the name of each source"),
    ],
)
def test_bad_sources_are_named(sources, message):
    with pytest.raises(ParameterError, match=message):
        load(sources=sources)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "name a file for each split"),
        ({"test": "x"}, "unknown split 'test'"),
    ],
)
def test_bad_files_are_named(names, files, message):
    with pytest.raises(ParameterError, match=message):
        load(sources={OWN: {"files": files}})


def test_a_source_that_is_null_is_off():
    tasks, _ = load(sources={"word_problems": {}, "knowledge_base": None})
    assert set(tasks["environment"]) == {"math"}


def test_recorded_parameters_can_be_read_again():
    read = TasksParameters.read({"sources": {"word_problems": {"share": 2}}}, "tasks")
    recorded = read.model_dump(mode="json")
    assert recorded["sources"] == {"word_problems": {"share": 2.0, "environment": None}}
    assert TasksParameters.read(recorded, "tasks") == read


def test_each_file_gives_the_tasks_of_its_split_and_is_recorded(names):
    files = {"train": "one.json", "held_out": "two.json"}
    tasks, documents = load(sources={OWN: {"files": files}}, files=names)
    split = tasks.groupby("split")["task_id"].apply(set).to_dict()
    assert {name: len(ids) for name, ids in split.items()} == {"train": 40, "held_out": 8}
    assert split["train"] <= {f"q{n}" for n in range(60)}
    assert split["held_out"] <= {f"q{n}" for n in range(100, 160)}
    assert len(documents) == 120
    assert {path.name for path in names.used} == set(files.values())


def test_a_file_of_several_splits_is_divided(names):
    files = dict.fromkeys(("train", "validation", "held_out"), "one.json")
    sizes = SIZES | {"train": 3000}
    tasks, _ = load(sources={OWN: {"files": files}}, files=names, sizes=sizes)
    assert tasks["task_id"].is_unique
    assert tasks["split"].value_counts().to_dict() == {
        "train": 60 - 16, "validation": 8, "held_out": 8,
    }  # fmt: skip
    fewer, _ = load(sources={OWN: {"files": files}}, files=names)
    ids = [set(t.loc[t["split"] == "held_out", "task_id"]) for t in (tasks, fewer)]
    assert ids[0] == ids[1]  # reported questions do not depend on the training questions


def test_a_mixture_interleaves_sources_by_their_shares(names):
    files = {"train": "one.json", "validation": "two.json"}
    sources = {"word_problems": {"share": 3}, OWN: {"files": files}}
    tasks, documents = load(sources=sources, files=names)
    counts = tasks.groupby(["split", "environment"]).size().to_dict()
    assert counts == {
        ("train", "math"): 30, ("train", "multihop_qa"): 10,
        ("validation", "math"): 6, ("validation", "multihop_qa"): 2,
        ("in_domain", "math"): 8, ("held_out", "math"): 8, ("ood", "math"): 8,
    }  # fmt: skip
    train = tasks["environment"][tasks["split"] == "train"].tolist()
    for begin in range(0, 40, 4):
        assert train[begin : begin + 4].count("multihop_qa") == 1
    assert tasks["split"].drop_duplicates().tolist() == list(schemas.SPLITS)
    assert len(documents) == 120
    tables.to_arrow(tasks, "tasks")


def test_rounded_shares_sum_to_the_size():
    sources = {name: FileSourceParameters(files={"train": "x"}) for name in "abc"}
    parts = shares(SplitSizes(train=100, validation=5), sources)
    assert [part.train for part in parts.values()] == [33, 34, 33]
    assert sum(part.validation for part in parts.values()) == 0


def test_duplicate_pages_are_dropped(names):
    other = ModuleType("other_tasks")

    def relabelled(path, inputs):
        tasks, documents = read_names(path, inputs)
        return tasks.assign(task_id="other:" + tasks["task_id"]), documents

    other.SOURCE = Source("multihop_qa", from_files(relabelled), FileSourceParameters)
    sys.modules["other_tasks"] = other
    try:
        sources = {name: {"files": {"train": "one.json"}} for name in (OWN, "other_tasks:SOURCE")}
        tasks, documents = load(sources=sources, files=names)
    finally:
        del sys.modules["other_tasks"]
    assert len(documents) == documents["title"].nunique() == 60
    assert len(tasks) == 40


def test_two_tasks_with_one_id_are_refused(names):
    sys.modules["twin_tasks"] = sys.modules["own_tasks"]
    try:
        sources = {name: {"files": {"train": "one.json"}} for name in (OWN, "twin_tasks:SOURCE")}
        with pytest.raises(TaskFileError, match=r"the id 'q\d+' \(splits: train, train\)"):
            load(sources=sources, files=names, sizes=SIZES | {"train": 120})
    finally:
        del sys.modules["twin_tasks"]


def test_two_files_of_one_source_must_not_share_a_question(names, tmp_path):
    """A training question would be reported as held out."""
    (tmp_path / "three.json").write_text(json.dumps([f"q{number}" for number in range(59, 61)]))
    files = {"train": "one.json", "held_out": "three.json"}
    with pytest.raises(TaskFileError, match=r"the id 'q59' \(splits: held_out, train\)"):
        load(sources={OWN: {"files": files}}, files=names, sizes=SIZES | {"train": 60})


@pytest.mark.parametrize("payload", ["", "[]", "{'a': 1}"])
def test_a_payload_that_is_not_a_json_object_is_refused(monkeypatch, payload):
    """Otherwise the report, which reads all payloads, would fail after the training."""
    table = tables.from_rows([row("q1", "math") | {"payload": payload}], "tasks")
    module = ModuleType("odd_tasks")
    module.SOURCE = Source("math", lambda inputs: (table, tables.empty("documents")))
    monkeypatch.setitem(sys.modules, "odd_tasks", module)
    with pytest.raises(TaskFileError, match=r"payload of task 'q1' must be a JSON object"):
        load(sources={"odd_tasks:SOURCE": {}})


def test_a_single_source_is_not_changed(names):
    tasks, _ = load(sources={OWN: {"files": {"train": "one.json"}}}, files=names)
    assert isinstance(tasks, pd.DataFrame)
    order = [int(name[1:]) for name in tasks["task_id"]]
    assert order == sorted(order)
