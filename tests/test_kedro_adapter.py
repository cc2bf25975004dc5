"""The contract with Kedro 1.7: each private name that `agent_r1.kedro_adapter` touches."""

from __future__ import annotations

import tomllib

import kedro
import pytest
from kedro.framework.session.service_session import KedroServiceSession
from kedro.io import AbstractVersionedDataset, DataCatalog, MemoryDataset, Version

from agent_r1 import kedro_adapter
from agent_r1.datasets import ArrowParquetDataset, StrictJSONDataset
from agent_r1.experiments.session import Session
from tests.support import REPOSITORY

PRIVATE = (
    "_get_catalog", "_hook_manager", "_read_raw_config", "_fetch_latest_load_version",
    "_clear_version_cache", "_pipelines_to_validate", "generate_timestamp",
)  # fmt: skip


def test_the_kedro_that_this_was_written_for():
    assert kedro.__version__.startswith("1.7.")
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    assert "kedro~=1.7.0" in project["project"]["dependencies"]


@pytest.mark.parametrize("name", PRIVATE)
def test_one_module_alone_touches_a_private_name(name):
    source = REPOSITORY / "src/agent_r1"
    texts = {path: path.read_text(encoding="utf-8") for path in source.rglob("*.py")}
    found = [path.relative_to(source).as_posix() for path, text in texts.items() if name in text]
    assert found == ["kedro_adapter.py"]


def test_a_new_version_is_a_timestamp_that_sorts():
    versions = [kedro_adapter.new_version() for _ in range(3)]
    assert all(kedro_adapter.VERSION.fullmatch(version) for version in versions)
    assert versions == sorted(versions)


def test_versions_and_places_of_datasets(tmp_path):
    filepath = str(tmp_path / "rewards.parquet")
    plain = ArrowParquetDataset(filepath=filepath)
    versioned = ArrowParquetDataset(filepath=filepath, version=Version("l", "s"))
    assert not kedro_adapter.is_versioned(plain)
    assert not kedro_adapter.is_versioned(MemoryDataset())
    assert kedro_adapter.is_versioned(versioned)
    assert kedro_adapter.chosen_version(plain) is None
    assert kedro_adapter.chosen_version(versioned) == "l"
    assert kedro_adapter.location(MemoryDataset()) is None
    assert str(kedro_adapter.location(plain, "v")) == filepath
    assert str(kedro_adapter.location(versioned)) == filepath
    assert str(kedro_adapter.location(versioned, "v")) == f"{filepath}/v/rewards.parquet"


def test_a_pinned_dataset_loads_that_version_from_that_folder(tmp_path):
    for folder, value in (("here", 1), ("there", 2)):
        filepath = str(tmp_path / folder / "controllers.json")
        StrictJSONDataset(filepath=filepath, version=Version(None, "v")).save({"value": value})
    dataset = StrictJSONDataset(
        filepath=str(tmp_path / "here/controllers.json"), version=Version(None, "w")
    )
    assert dataset.load() == {"value": 1}
    kedro_adapter.pin(dataset, "v", tmp_path / "there/controllers.json")
    assert dataset.load() == {"value": 2}
    assert dataset.resolve_load_version() == "v"
    assert dataset.resolve_save_version() == "w"


def test_kedro_asks_the_dataset_for_its_newest_version(tmp_path):
    filepath = str(tmp_path / "controllers.json")
    for version in ("1", "2"):
        StrictJSONDataset(filepath=filepath, version=Version(None, version)).save({})

    class First(StrictJSONDataset):
        def _current(self):
            return "1", tmp_path / "controllers.json/1/controllers.json"

    assert issubclass(First, AbstractVersionedDataset)
    for kind, newest in ((StrictJSONDataset, "2"), (First, "1")):
        dataset = kind(filepath=filepath, version=Version(None, None))
        assert dataset.resolve_load_version() == newest


def test_the_catalog_of_a_context_is_made_without_validating_parameters(project):
    (project.path / "conf/local/parameters.yml").write_text("rollout: {temperature: hot}")
    with Session(project.path, {"experiment": "elsewhere"}, validates=False) as session:
        catalog = session.catalog()
    assert isinstance(catalog, DataCatalog)
    assert catalog.load("parameters")["rollout"]["temperature"] == "hot"


def test_hooks_are_kept_between_runs_and_hear_of_an_interrupt(project):
    session = Session(project.path, {"experiment": "x"})
    assert isinstance(session._session, KedroServiceSession)
    manager = session._session._hook_manager
    plugins = list(manager.get_plugins())
    session.run("prepare_tasks", ["prepare_tasks"])
    assert list(manager.get_plugins()) == plugins
    errors = []

    class Listener:
        from kedro.framework.hooks import hook_impl

        @hook_impl
        def on_pipeline_error(self, error):
            errors.append(error)

    manager.register(Listener())
    interrupt = KeyboardInterrupt()
    kedro_adapter.report_interrupt(session._session, interrupt)
    assert errors == [interrupt]


def test_the_command_line_has_the_options_that_ours_builds_on():
    names = {option.name for option in kedro_adapter.run_command().params}
    assert {"env", "conf_source", "params", "pipelines", "node_names", "tags"} <= names
    assert kedro_adapter.params_option().name == "params"
    assert kedro_adapter.run_command().callback is not None
