"""What the documentation says can be done: commands parse, links lead somewhere, keys exist.

The programs of the how-to pages are run in `test_how_to_pages`.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
import sys
import tomllib
from pathlib import Path
from urllib.parse import unquote

import click
import pytest
import yaml
from omegaconf import OmegaConf

from agent_r1 import settings
from agent_r1.advantages.registry import ESTIMATORS
from agent_r1.cli import cli
from agent_r1.configuration.groups import read_parameters
from agent_r1.configuration.loader import ProjectConfigLoader, read_preset
from agent_r1.configuration.references import check_references
from agent_r1.lineage.branches import flatten
from agent_r1.losses.registry import OBJECTIVES
from agent_r1.pipeline_registry import register_pipelines
from tests.support import REPOSITORY
from tests.support.pages import (
    DOCS,
    HOW_TO,
    PAGES,
    blocks,
    commands,
    text_of,
    write_program,
)

README = text_of(REPOSITORY / "README.md")
EVERYTHING = "\n".join(map(text_of, PAGES))
COMMANDS = sorted(set(commands(EVERYTHING)))
RUNS = [command for command in COMMANDS if command.startswith("kedro run")]
OWN = [
    command for command in COMMANDS if command.split()[1] in cli.commands and command not in RUNS
]
ALGORITHMS = sorted(path.stem for path in (REPOSITORY / "conf/algorithms").glob("*.yml"))
ALGORITHM_PAGE = text_of(DOCS / "algorithms.md")
SECTIONS = dict(re.findall(r"^### `(\w+)`$(.*?)(?=^##)", ALGORITHM_PAGE, re.MULTILINE | re.DOTALL))
LINKED = (*PAGES, REPOSITORY / "data/01_raw/README.md")


@pytest.fixture(autouse=True)
def programs(tmp_path, monkeypatch):
    """What the how-to pages add can be imported, as from ``src/``."""
    names = [write_program(page, tmp_path / "src").stem for page in HOW_TO]
    monkeypatch.syspath_prepend(tmp_path / "src")
    yield
    for name in names:
        sys.modules.pop(name, None)


def test_the_environment_is_the_tested_one():
    source = (REPOSITORY / "tests/environments/test_thirty_lines.py").read_text(encoding="utf-8")
    example = re.search(r"EXAMPLE = '''\\\n(.*?)'''", source, re.DOTALL)
    assert example is not None
    assert f"```python\n{example[1]}```" in README


def anchors(text: str) -> set[str]:
    """Of the headings, as GitHub makes them."""
    outside = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", outside, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", LINKED, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_link_leads_somewhere(page):
    text = re.sub(r"^```.*?^```$", "", text_of(page), flags=re.MULTILINE | re.DOTALL)
    dead = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith(("https://", "http://")):
            continue
        path, _, anchor = unquote(link).partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(text_of(target))):
            dead.append(link)
    assert dead == []


def test_every_page_can_be_found_from_the_readme():
    missing = [
        page.name for page in PAGES if page.parent == DOCS and f"docs/{page.name}" not in README
    ]
    assert missing == []


def test_the_readme_is_an_introduction():
    assert len(README.splitlines()) <= 350


def configuration(params: dict[str, object]) -> dict[str, object]:
    """All parameters of ``conf/base`` under these."""
    config = ProjectConfigLoader(
        str(REPOSITORY / "conf"), env="base", runtime_params=params, **settings.CONFIG_LOADER_ARGS
    )
    return config["parameters"]


PARAMETERS = [
    (page.stem, block)
    for page in PAGES
    for block in blocks(text_of(page), "yaml")
    if set(yaml.safe_load(block)) - {"experiment"}
]


@pytest.mark.parametrize(("page", "block"), PARAMETERS, ids=[page for page, _ in PARAMETERS])
def test_parameters_of_a_page_are_valid_over_those_of_conf_base(page, block):
    resolved = read_parameters(configuration(yaml.safe_load(block)))
    if "mcp" not in block:  # its servers are examples
        check_references(resolved, REPOSITORY)


def parse(command: str) -> click.Context:
    """The command's options; an error if it has none like these."""
    _, name, *arguments = shlex.split(command)
    return cli.commands[name].make_context(name, arguments)


@pytest.mark.parametrize("command", RUNS)
def test_a_command_names_what_exists(command):
    options = parse(command).params
    names = [node.name for p in options["pipelines"] for node in register_pipelines()[p].nodes]
    assert set(options["node_names"] if "node_names" in options else options["nodes"]) <= set(names)


@pytest.mark.parametrize("command", [c for c in RUNS if "--params" in c])
def test_a_commands_parameters_are_known_and_keep_the_others(command):
    params = parse(command).params["params"]
    resolved = read_parameters(configuration(params))
    check_references(resolved, REPOSITORY)
    assert "outcome" in resolved["reward"]["terms"]
    assert (resolved["experiment"] != "default") == ("experiment" in params)


@pytest.mark.parametrize("command", OWN)
def test_the_projects_own_commands_parse_and_name_what_exists(command):
    context = parse(command)
    stage = context.params.get("stage")
    nodes = {node.name.rpartition(".")[2] for node in register_pipelines()["iter_00002"].nodes}
    assert stage is None or stage in nodes
    if params := context.params.get("params"):
        assert "outcome" in read_parameters(configuration(params))["reward"]["terms"]


def value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_presets_section_names_its_paper_its_equation_and_values_that_it_has(name):
    sets, differs, _ = SECTIONS[name].partition("\nDiffers:")
    assert differs
    assert "https://arxiv.org/abs/" in sets
    assert f"(../conf/algorithms/{name}.yml)" in sets
    assert any("=" in equation for equation in blocks(sets, ""))
    said = {key: value(text) for key, text in re.findall(r"`([\w.]+)=([^`]+)`", sets)}
    resolved = flatten(read_parameters(configuration({"algorithm": name})))
    assert said == {key: resolved[key] for key in said}
    preset = flatten(OmegaConf.to_container(read_preset(REPOSITORY / "conf", name)))
    assert set(said) & set(preset) & {"advantage.estimator", "update.objective"}


def test_every_algorithm_has_a_section_and_every_estimator_and_objective_is_named():
    assert list(SECTIONS) == re.findall(r"^\| \[`(\w+)`\]\(#\1\)", ALGORITHM_PAGE, re.MULTILINE)
    assert set(SECTIONS) == set(ALGORITHMS)
    named = set(re.findall(r"`(?:[\w.]+=)?(\w+)`", ALGORITHM_PAGE))
    assert named >= set(ESTIMATORS) | set(OBJECTIVES)


def test_there_are_commands():
    assert len(RUNS) >= 8
    assert len(OWN) >= 12
    known = {*RUNS, *OWN, "kedro viz"}  # a plugin's
    assert set(COMMANDS) <= known


def test_files_that_are_named_exist():
    named = re.findall(r"`((?:src|conf|notebooks|tests|data/01_raw)/[\w./-]+\.\w+)`", EVERYTHING)
    assert named
    missing = {name for name in named if not (REPOSITORY / name).exists()}
    # The reader's own, of the how-to pages.
    assert missing == {
        "src/treasure.py", "src/politeness.py", "src/shop.py", "conf/treasure/globals.yml",
        "conf/treasure/parameters.yml", "conf/polite/parameters.yml",
    }  # fmt: skip


def named_in(path: Path, name: str) -> bool:
    """Whether a module defines the name: a function, a class, a constant, or ``Class.method``."""
    body: list[ast.stmt] = ast.parse(text_of(path)).body
    for part in name.split("."):
        found = [node for node in body if part in names_of(node)]
        body = getattr(found[0], "body", []) if found else []
        if not found:
            return False
    return True


def names_of(node: ast.stmt) -> list[str]:
    """What a statement defines."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


MODULES = [
    (page, path, name)
    for page in PAGES
    for path, name in re.findall(r"`([\w./-]+\.py)(?:::([\w.]+))?`", text_of(page))
    if path not in {"src/treasure.py", "src/politeness.py", "src/shop.py"}  # the reader's own
]


@pytest.mark.parametrize(
    ("page", "path", "name"), MODULES, ids=[f"{p.stem}-{path}-{name}" for p, path, name in MODULES]
)
def test_a_module_that_a_page_names_exists_and_defines_the_name(page, path, name):
    """From the root of the repository, or on the page about the architecture from the package."""
    package = REPOSITORY / "src/agent_r1"
    files = [folder / path for folder in (REPOSITORY, package) if (folder / path).is_file()]
    assert files, f"{page.name}: {path}"
    assert not name or named_in(files[0], name), f"{page.name}: {path}::{name}"


def test_the_architecture_names_every_room():
    page = text_of(DOCS / "architecture.md")
    pyproject = tomllib.loads(text_of(REPOSITORY / "pyproject.toml"))
    layers = pyproject["tool"]["importlinter"]["contracts"][0]["layers"]
    rooms = {room for layer in layers for room in re.findall(r"\w+", layer)}
    rows = re.findall(r"^\| \d \| (.*?) \|", page, re.MULTILINE)
    assert rooms <= {room for row in rows for room in re.findall(r"`(\w+)`", row)}
