"""MBPP's official JSON (Austin et al. 2021, https://github.com/google-research/google-research/tree
/master/mbpp).

A line of ``mbpp.jsonl`` is ``{"task_id": 11, "text", "code", "test_list": [assertion, …],
"test_setup_code", "challenge_test_list": [assertion, …]}``. ``sanitized-mbpp.json`` is one list,
with ``prompt`` for ``text`` and ``test_imports`` for ``test_setup_code``. The paper evaluates on
the ids 11 to 510; whoever compares with it cuts the file there, and does not train on them.

A solution passes if ``test_list`` does, as in the paper. There the agent is shown these tests. Here
it is shown the head of the function that they call, whose name it could not know else.
Classes that the tests make objects of (``max_chain_length([Pair(5, 24)], 1)``) are shown too, with
what their objects hold. Set-up code that uses such a class (``root = Node(1)``) is run before the
tests; other set-up code (``import math``) is given to solution and tests alike, and what it imports
and defines is shown.
"""

from __future__ import annotations

import ast
import builtins
import itertools
import sys
from pathlib import Path
from typing import Any, NamedTuple

from agent_r1.tasks.files import Row, read_rows, refuse_twins
from agent_r1.tasks.rows import task_row, without_documents
from agent_r1.tasks.script import answer
from agent_r1.tasks.source import (
    SCORED_BY_ENVIRONMENT,
    FileSourceParameters,
    Source,
    SourceInputs,
    Tables,
    from_files,
)

_DOWNLOAD = "the official files are in https://github.com/google-research/google-research (mbpp)"
_SHOWN = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef)
"""Of set-up code. An assignment could be what the tests expect."""
_OF_PYTHON = {*vars(builtins), *sys.stdlib_module_names}


class MbppParameters(FileSourceParameters):
    """``tasks.sources.mbpp`` in ``conf/``."""

    challenge_tests: bool = False
    """Whether ``challenge_test_list`` must pass, too: harder to pass by luck, and no longer what
    others report."""


def load_mbpp(
    path: str | Path,
    split: str = "train",
    environment: str = "code",
    *,
    challenge_tests: bool = False,
) -> Tables:
    """The table ``tasks`` of one file, and no documents.

    Args:
        path: the JSON lines, or the JSON list.
        split: the split of all of its tasks.
        environment: plays them.
        challenge_tests: see `MbppParameters`.

    Raises:
        TaskFileError: the file is missing, a line is malformed, or its tests call nothing that its
            code defines.
    """
    rows = read_rows(Path(path), _DOWNLOAD)
    tasks = [_task(row, split, environment, challenge_tests) for row in rows]
    refuse_twins(((str(row.value["task_id"]), row) for row in rows), "task_id")
    return without_documents(tasks)


def _task(row: Row, split: str, environment: str, challenge_tests: bool) -> dict[str, Any]:
    row.require(("task_id", "code", "test_list"))
    text = row.text("text" if "text" in row.value else "prompt").strip()
    tests, code = row.texts("test_list"), row.text("code")
    hidden = list(tests)
    if challenge_tests and "challenge_test_list" in row.value:  # the sanitized file has none
        hidden += row.texts("challenge_test_list")
    setup = row.value.get("test_setup_code") or "\n".join(row.value.get("test_imports") or [])
    wanted = _wanted(row, code, setup, tests, hidden)
    payload = {
        "prelude": wanted.given,
        "tests": "\n".join([*wanted.before, *hidden]),
        # The assertions name it; where Python has that name too, it must be said whose they mean.
        "entry_point": wanted.function if wanted.function in _OF_PYTHON else None,
        "classes": wanted.classes,
        "script": [answer(f"```python\n{code.strip()}\n```")],
    }
    return task_row(
        f"mbpp:{row.value['task_id']}",
        environment,
        split,
        family="mbpp",
        prompt=f"{text}\n```python\n{wanted.head}\n```",
        payload=payload,
    )


class _Wanted(NamedTuple):
    """What a solution must define, and what of the set-up code it is given."""

    function: str
    classes: list[str]
    head: str
    given: str
    before: list[str]
    """Set-up code that is run before the tests, because it needs a solution."""


def _wanted(row: Row, code: str, setup: str, tests: list[str], hidden: list[str]) -> _Wanted:
    try:
        used = [ast.parse(test) for test in hidden]
        prepared = ast.parse(setup).body
        defined = ast.parse(code).body
    except SyntaxError as error:
        raise row.wrong("code", f"no Python, or another key's is none ({error})") from None
    called = {name for test in used[: len(tests)] for name in _called(test)}
    functions = [each for each in defined if isinstance(each, ast.FunctionDef)]
    function = next((each for each in functions if each.name in called), None)
    if function is None:
        raise row.wrong("test_list", f"the tests call {sorted(called)}, and the code defines none")
    owned = {each.name for each in defined if isinstance(each, ast.FunctionDef | ast.ClassDef)}
    given = list(itertools.takewhile(lambda each: not owned & _names(each), prepared))
    before = prepared[len(given) :]
    looked_at = [*before, *used]
    classes = [
        each
        for each in defined
        if isinstance(each, ast.ClassDef) and any(each.name in _names(tree) for tree in looked_at)
    ]
    attributes = {name for tree in looked_at for name in _attributes(tree)}
    shown = [each for each in given if isinstance(each, _SHOWN)]
    heads = [*shown, *(_class_head(each, attributes) for each in classes)]
    return _Wanted(
        function.name,
        [each.name for each in classes],
        "\n".join([*map(ast.unparse, heads), _function_head(function)]),
        "\n".join(map(ast.unparse, given)),
        [ast.unparse(each) for each in before],
    )


def _called(tree: ast.AST) -> set[str]:
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {called.id for called in calls if isinstance(called, ast.Name)}


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _attributes(tree: ast.AST) -> set[str]:
    return {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def _function_head(function: ast.FunctionDef) -> str:
    return f"def {function.name}({ast.unparse(function.args)}):"


def _class_head(definition: ast.ClassDef, used: set[str]) -> ast.ClassDef:
    """A class with what its objects hold, and the heads of the methods that the tests use."""
    body: list[ast.stmt] = []
    for each in definition.body:
        held = isinstance(each, ast.Assign | ast.AnnAssign)
        if held or getattr(each, "name", "") == "__init__":
            body.append(each)
        elif isinstance(each, ast.FunctionDef) and each.name in used:
            body += ast.parse(f"{_function_head(each)} ...").body
    shown = ast.ClassDef(**{**vars(definition), "body": body or ast.parse("...").body})
    return ast.fix_missing_locations(shown)


def _load(path: Path, inputs: SourceInputs) -> Tables:
    own = inputs.own
    return load_mbpp(path, environment=inputs.environment, challenge_tests=own.challenge_tests)


SOURCE = Source("code", from_files(_load), MbppParameters, SCORED_BY_ENVIRONMENT)
