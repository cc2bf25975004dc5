"""The project as it ships: its configuration, its catalog, and the wiring of the real nodes."""

from __future__ import annotations

import json
import math
import pkgutil
import tomllib

import pandas as pd
import pytest
from kedro.config import OmegaConfigLoader
from kedro.io import DataCatalog
from kedro.validation.type_extractor import TypeExtractor
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from agent_r1 import settings
from agent_r1.chat import load_tokenizer
from agent_r1.configuration.groups import GROUPS, lookup, read_parameters
from agent_r1.lineage.branches import flatten
from agent_r1.pipeline_registry import register_pipelines
from agent_r1.shipped.pretraining.train import PretrainParameters
from agent_r1.storage.hashing import file_sha256
from agent_r1.tasks.multihop import build_tasks
from agent_r1.tasks.parameters import TasksParameters
from agent_r1.tasks.spelling import key
from agent_r1.training.update_parameters import UpdateParameters
from tests.support import REPOSITORY

RAW = REPOSITORY / "data/01_raw"
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
    assert resolved["experiment"] == "default"


OTHERWISE = {
    "environment.options.max_result_chars": "the default of every environment; conf/base fits the "
    "one that it names to the small context of the shipped model",
    "chat.system": "the shipped model learns its task from demonstrations and has no system "
    "message; a pretrained model needs one",
}
"""Parameters whose value in ``conf/base`` is not the default of the model, and why."""


def test_what_conf_shows_is_the_default_of_the_model(config):
    shown = flatten(read_parameters(config["parameters"]))
    defaults = flatten(read_parameters({}))
    assert {name for name in shown if shown[name] != defaults[name]} == set(OTHERWISE)
    assert set(shown) == set(defaults)


def test_every_parameter_of_the_update_stands_in_conf(config):
    assert set(config["parameters"]["update"]) == set(UpdateParameters.known_keys())


@pytest.mark.parametrize("name", NAMES)
def test_every_dataset_and_parameter_of_a_pipeline_exists(config, name):
    catalog = DataCatalog.from_config(config["catalog"])
    resolved = read_parameters(config["parameters"])
    for dataset in register_pipelines()[name].datasets():
        if dataset.startswith(("params:", "parameters")):
            assert lookup(resolved, dataset) is not None
        else:
            assert dataset in catalog, dataset


@pytest.mark.parametrize("name", NAMES)
def test_kedro_makes_every_group_into_its_model(name):
    """A group without its model as the hint would reach its node as a dict."""
    pipeline = register_pipelines()[name]
    groups = [group for group in GROUPS if f"params:{group}" in pipeline.inputs()]
    hinted = TypeExtractor({name: pipeline}).extract_types_from_pipelines()
    models = {group: pkgutil.resolve_name(GROUPS[group]) for group in groups}
    assert {group: hinted[group] for group in groups} == models


def test_every_experiment_has_its_own_paths(config):
    for name, entry in config["catalog"].items():
        path = entry.get("filepath", "")
        assert path.startswith("data/0") or entry["type"].endswith("EngineDataset"), name
        shared = path.startswith("data/01_raw") or name == "place_names"
        assert shared or "/default/" in path or not path, name


def test_place_names_are_none_of_the_knowledge_base():
    """Fictional worlds are told about them; a held-out entity must not be known from there."""
    tables = {
        name: pd.read_parquet(RAW / f"knowledge_base/{name}.parquet")
        for name in ("countries", "cities")
    }
    known = {*tables["countries"]["name"], *tables["countries"]["capital"].dropna()}
    known |= set(tables["cities"]["name"])
    names = pd.read_parquet(RAW / "place_names.parquet")["name"]
    assert len(names) > 10_000
    assert not {key(name) for name in names} & {key(name) for name in known}


def test_the_tiny_base_is_tiny_and_what_its_manifest_says():
    folder = RAW / "tiny_base"
    files = {file.name: file for file in folder.iterdir() if not file.name.startswith("_")}
    manifest = json.loads((folder / "_manifest.json").read_text(encoding="utf-8"))
    assert {name: file_sha256(file) for name, file in files.items()} == manifest["sha256"]
    assert sum(file.stat().st_size for file in files.values()) <= 12_000_000
    with files["model.safetensors"].open("rb") as weights:  # 8 bytes: length of the JSON header
        header = json.loads(weights.read(int.from_bytes(weights.read(8), "little")))
    shapes = [tensor["shape"] for name, tensor in header.items() if name != "__metadata__"]
    assert sum(map(math.prod, shapes)) == manifest["model_parameters"] <= 3_000_000


def test_the_tiny_base_is_what_the_configuration_makes(config):
    manifest = json.loads((RAW / "tiny_base/_manifest.json").read_text(encoding="utf-8"))
    parameters = PretrainParameters.read(config["parameters"]["pretrain"], "pretrain")
    assert parameters.model_dump(mode="json") == manifest["parameters"]
    names = pd.read_parquet(RAW / "place_names.parquet")["name"]
    assert len(names) == manifest["place_names"]


def test_what_is_copied_is_the_same_ids_wherever_it_stands():
    """For the questions that ship: a name in the question and on its page, a label, an answer."""
    tokenizer = load_tokenizer(RAW / "tiny_base")
    countries, cities, elements = (
        pd.read_parquet(RAW / f"knowledge_base/{name}.parquet", dtype_backend="pyarrow")
        for name in ("countries", "cities", "elements")
    )
    tasks, documents = build_tasks(countries, cities, elements, TasksParameters())
    pages = dict(zip(documents["title"], documents["text"], strict=True))

    def ids(text: str) -> str:
        return " ".join(map(str, ["", *tokenizer.encode(text, add_special_tokens=False), ""]))

    for task in tasks.to_dict("records"):
        chain = json.loads(task["payload"])["chain"]
        question = ids(task["prompt"])
        assert ids(chain[0]["title"]) in question, task["prompt"]
        for hop in chain:
            page = ids(f"{hop['title']}\n{pages[hop['title']]}")
            assert ids(hop["label"]) in question, (task["prompt"], hop["label"])
            assert ids(hop["label"]) in page
            assert ids(hop["value"]) in page
            assert ids(hop["value"]) in ids(f"<answer>{hop['value']}</answer>")
            assert ids(hop["value"]) in ids(f'{{"query": "{hop["value"]}"}}')


def test_the_constraints_pin_every_dependency_to_a_version_that_is_allowed():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    untested = {"viz", "reasoning-gym"}  # the header of constraints.txt says so
    wanted = [*project["dependencies"]]
    wanted += [each for name in extras.keys() - untested for each in extras[name]]
    lines = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    versions = {canonicalize_name(name): version for name, version in pins.items()}
    for requirement in map(Requirement, wanted):
        assert versions[canonicalize_name(requirement.name)] in requirement.specifier, requirement
