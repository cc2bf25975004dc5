"""What the README says can be done: its example is tested elsewhere, and its commands parse."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import click
import pytest
from kedro.config import OmegaConfigLoader
from omegaconf import OmegaConf

from agent_r1 import settings
from agent_r1.advantages.registry import ESTIMATORS
from agent_r1.cli import cli
from agent_r1.lineage.branches import flatten
from agent_r1.losses.registry import OBJECTIVES
from agent_r1.parameter_groups import read_parameters
from agent_r1.pipeline_registry import register_pipelines
from agent_r1.presets import PresetConfigLoader, read_preset

REPOSITORY = Path(__file__).parents[1]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
CHINESE = (REPOSITORY / "README.zh.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^kedro run.*$", README + CHINESE, re.MULTILINE)
ALGORITHMS = sorted(path.stem for path in (REPOSITORY / "conf/algorithms").glob("*.yml"))
SECTION = README.partition("## Algorithms\n")[2].partition("\n## ")[0]
ROWS = dict(re.findall(r"^\| `(\w+)`[^|]*\| (.*) \|$", SECTION, re.MULTILINE))
OWN = re.findall(
    r"^kedro (?:rerun|lineage|verify|replay|check-template).*$", README + CHINESE, re.MULTILINE
)
NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.ipynb"))


def test_the_environment_is_the_tested_one():
    source = (REPOSITORY / "tests/environments/test_thirty_lines.py").read_text(encoding="utf-8")
    example = re.search(r"EXAMPLE = '''\\\n(.*?)'''", source, re.DOTALL)
    assert example is not None
    assert f"```python\n{example[1]}```" in README


def test_the_reward_term_is_the_tested_one():
    source = (REPOSITORY / "tests/rewards/test_terms.py").read_text(encoding="utf-8")
    example = re.search(r"EXAMPLE = '''\\\n(.*?)'''", source, re.DOTALL)
    assert example is not None
    assert f"```python\n{example[1]}```" in README


def parse(command: str) -> click.Context:
    """The command's options; an error if it has none like these."""
    _, name, *arguments = shlex.split(command)
    return cli.commands[name].make_context(name, arguments)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_names_what_exists(command):
    options = parse(command).params
    names = [node.name for p in options["pipelines"] for node in register_pipelines()[p].nodes]
    assert set(options["node_names"] if "node_names" in options else options["nodes"]) <= set(names)


@pytest.mark.parametrize("command", [c for c in COMMANDS if "--params" in c])
def test_a_commands_parameters_are_known_and_keep_the_others(command):
    params = parse(command).params["params"]
    config = OmegaConfigLoader(
        str(REPOSITORY / "conf"), env="base", runtime_params=params, **settings.CONFIG_LOADER_ARGS
    )
    resolved = read_parameters(config["parameters"])
    assert "outcome" in resolved.groups["reward"]["terms"]
    assert (resolved.experiment.experiment != "default") == ("experiment" in params)


@pytest.mark.parametrize("command", OWN)
def test_the_projects_own_commands_parse_and_name_what_exists(command):
    context = parse(command)
    stage = context.params.get("stage")
    nodes = {node.name.rpartition(".")[2] for node in register_pipelines()["iter_00002"].nodes}
    assert stage is None or stage in nodes
    if params := context.params.get("params"):
        config = OmegaConfigLoader(
            str(REPOSITORY / "conf"),
            env="base",
            runtime_params=params,
            **settings.CONFIG_LOADER_ARGS,
        )
        assert "outcome" in read_parameters(config["parameters"]).groups["reward"]["terms"]


def value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_preset_has_a_row_that_says_what_it_says(name):
    """Every parameter of the preset stands there, and what stands there is what it comes to."""
    paper, equation, parameters, differs = ROWS[name].split(" | ")
    assert re.search(r"(19|20)\d\d", paper)
    assert "=" in equation
    assert differs
    said = {key: value(text) for key, text in re.findall(r"`([\w.]+)=([^`]+)`", parameters)}
    config = PresetConfigLoader(
        str(REPOSITORY / "conf"),
        env="base",
        runtime_params={"algorithm": name},
        **settings.CONFIG_LOADER_ARGS,
    )
    resolved = read_parameters(config["parameters"]).flat()
    assert said == {key: resolved[key] for key in said}
    preset = OmegaConf.to_container(read_preset(REPOSITORY / "conf", name))
    assert set(flatten(preset)) <= set(said)


def test_every_algorithm_is_spoken_of_and_exists():
    assert set(ROWS) >= set(ALGORITHMS) | set(ESTIMATORS) | set(OBJECTIVES) - {"ppo_clip"}
    assert set(ROWS) <= set(ALGORITHMS) | set(ESTIMATORS) | set(OBJECTIVES)


def test_there_are_commands():
    assert len(COMMANDS) >= 4
    assert len(OWN) >= 8


def test_files_that_are_named_exist():
    named = r"`((?:src|conf|notebooks|tests|data/01_raw)/[\w./-]+\.\w+)`"
    shipped = re.findall(named, README + CHINESE)
    assert shipped
    missing = [name for name in shipped if not (REPOSITORY / name).exists()]
    assert missing == ["src/agent_r1/environments/calculator.py"]  # the example is the reader's


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_compiles_and_has_no_outputs(notebook):
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    for cell in cells:
        if cell["cell_type"] == "code":
            compile("".join(cell["source"]), notebook.name, "exec")
            assert cell["outputs"] == []
