"""Notebooks compile, and the one that shows an iteration of GRPO raises the reward."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.support import REPOSITORY
from tests.support.pages import DOCS, blocks, text_of

FOLDER = REPOSITORY / "notebooks"
ITERATION = FOLDER / "one_iteration.ipynb"
PAGE = text_of(DOCS / "one_iteration.md")
LINES = 45
"""Of the cells that load tasks, roll out, score, compute advantages and update."""
MEASURED = """\
import json
import sys
print(json.dumps({
    "before": [before.mean(), len(before)],
    "after": [after.mean(), len(after)],
    "upper_half": sorted({"kedro", "agent_r1.lineage", "agent_r1.tracking"} & set(sys.modules)),
}))
"""


def code_cells(path: Path) -> list[Any]:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def printed(cell: Any) -> str:
    """The cell's output, which must be text on stdout."""
    assert {(output.output_type, output.get("name")) for output in cell.outputs} <= {
        ("stream", "stdout")
    }
    return "".join(output.text for output in cell.outputs)


def lines(cells: list[Any]) -> list[str]:
    return [line for cell in cells for line in cell.source.splitlines() if line.strip()]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.name)
def test_a_notebook_compiles_and_holds_no_large_output(path):
    for cell in code_cells(path):
        compile(cell.source, path.name, "exec")
        assert len(printed(cell)) < 500
        assert path == ITERATION or not cell.outputs


def test_the_page_has_the_code_and_the_output_of_the_notebook():
    cells = code_cells(ITERATION)
    assert blocks(PAGE, "python") == [f"{cell.source}\n" for cell in cells]
    assert blocks(PAGE, "text") == ["".join(map(printed, cells))]


def test_an_iteration_is_about_forty_lines():
    own = [cell for cell in code_cells(ITERATION) if not cell.id.startswith("set-up")]
    assert [cell.id for cell in own] == ["tasks", "play", "iteration", "compare"]
    assert len(lines(own[:3])) <= LINES


def test_it_calls_public_names_of_the_library_alone():
    tree = ast.parse("\n".join(cell.source for cell in code_cells(ITERATION)))
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    modules = {node.module for node in nodes if node.module.startswith("agent_r1")}
    assert {name.split(".")[1] for name in modules} == {
        "advantages", "chat", "display", "engines", "environments", "rewards", "rollout",
        "seeding", "tasks", "training",
    }  # fmt: skip
    assert {name for name in modules if ".display" in name} == {"agent_r1.display.console"}
    names = [alias.name for node in nodes for alias in node.names]
    attributes = [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    assert [name for name in (*names, *attributes) if name.startswith("_")] == []


@pytest.mark.slow
def test_three_iterations_raise_the_reward_on_fixed_tasks():
    notebook = nbformat.read(ITERATION, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(MEASURED))
    NotebookClient(notebook, timeout=900, resources={"metadata": {"path": str(FOLDER)}}).execute()
    measured = json.loads(printed(notebook.cells[-1]))
    (before, tried_before), (after, tried_after) = measured["before"], measured["after"]
    assert tried_before == tried_after == 200
    assert after > before + 0.05, measured
    assert measured["upper_half"] == []
    told = re.search(r"fixed tasks: (\S+) -> (\S+)\n", printed(notebook.cells[-2]))
    assert told is not None
    assert [float(number) for number in told.groups()] == pytest.approx([before, after], abs=6e-4)
