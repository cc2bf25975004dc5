"""The project as it ships: its configuration, its catalog, and the wiring of the real nodes."""

from __future__ import annotations

from pathlib import Path

import pytest
from kedro.config import OmegaConfigLoader
from kedro.io import DataCatalog

from agent_r1 import settings
from agent_r1.parameter_groups import GROUPS, read_parameters
from agent_r1.pipeline_registry import register_pipelines

REPOSITORY = Path(__file__).parents[1]
NAMES = (
    "prepare_tasks", "base", "demonstrations", "iter_00000", "iter_00001", "iter_00012", "report",
    "knowledge_base", "pretrain", "__default__",
)  # fmt: skip


@pytest.fixture(scope="module")
def config() -> OmegaConfigLoader:
    return OmegaConfigLoader(
        str(REPOSITORY / "conf"), env="base", **settings.CONFIG_LOADER_ARGS
    )  # conf/local is the user's


def test_the_shipped_parameters_are_valid_and_complete(config):
    values = config["parameters"]
    resolved = read_parameters(values)
    assert set(GROUPS) <= set(values), "every group stands in conf/base"
    assert resolved.experiment.experiment == "default"


@pytest.mark.parametrize("name", NAMES)
def test_every_dataset_and_parameter_of_a_pipeline_exists(config, name):
    catalog = DataCatalog.from_config(config["catalog"])
    resolved = read_parameters(config["parameters"])
    for dataset in register_pipelines()[name].datasets():
        if dataset.startswith(("params:", "parameters")):
            assert resolved.lookup(dataset) is not None
        else:
            assert dataset in catalog, dataset


def test_every_experiment_has_its_own_paths(config):
    for name, entry in config["catalog"].items():
        path = entry.get("filepath", "")
        assert path.startswith("data/0") or entry["type"].endswith("EngineDataset"), name
        shared = path.startswith("data/01_raw/") or name == "place_names"
        assert shared or "/default/" in path or not path, name
