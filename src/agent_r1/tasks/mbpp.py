"""MBPP's official JSON (Austin et al. 2021, arXiv:2108.07732,
https://github.com/google-research/google-research/tree/master/mbpp).

A line of ``mbpp.jsonl`` is ``{"task_id": 11, "text", "code", "test_list": [assertion, …],
"test_setup_code", "challenge_test_list": [assertion, …]}``. ``sanitized-mbpp.json`` is one list,
with ``prompt`` for ``text`` and ``test_imports`` for ``test_setup_code``. The paper evaluates on
the ids 11 to 510. To compare with it, evaluate on these tasks only, and do not train on them.

1. A solution passes if the assertions in ``test_list`` pass, as in the paper.
2. In the paper the agent sees these tests. Here it sees the signature of the function that they
   call: without it, the agent could not know the function's name.
3. The agent also sees the classes whose objects the tests create
   (``max_chain_length([Pair(5, 24)], 1)``), with the attributes of these objects.
4. Set-up code that uses such a class (``root = Node(1)``) runs between solution and tests. Other
   set-up code (``import math``) runs before both, and the agent sees its imports and definitions.
"""

from __future__ import annotations

import ast
import builtins
import itertools
import sys
from pathlib import Path
from typing import Any, NamedTuple

from agent_r1.tasks.files import Row, read_rows, refuse_duplicates
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
"""Set-up statements that the agent sees. An assignment could reveal the expected result."""
_OF_PYTHON = {*vars(builtins), *sys.stdlib_module_names}


class MbppParameters(FileSourceParameters):
    """``tasks.sources.mbpp`` in ``conf/``."""

    challenge_tests: bool = False
    """Whether ``challenge_test_list`` must pass too. A wrong solution then passes less often by
    luck, but the scores are no longer comparable with published ones."""


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
        split: the split of all tasks in the file.
        environment: the environment that plays them.
        challenge_tests: see `MbppParameters`.

    Raises:
        TaskFileError: the file is missing, a line is malformed, or its tests call no function that
            its code defines.
    """
    rows = read_rows(Path(path), _DOWNLOAD)
    tasks = [_task(row, split, environment, challenge_tests) for row in rows]
    refuse_duplicates(((str(row.value["task_id"]), row) for row in rows), "task_id")
    return without_documents(tasks)


def _task(row: Row, split: str, environment: str, challenge_tests: bool) -> dict[str, Any]:
    row.require(("task_id", "code", "test_list"))
    text = row.text("text" if "text" in row.value else "prompt").strip()
    tests, code = row.texts("test_list"), row.text("code")
    hidden = list(tests)
    if (
        challenge_tests and "challenge_test_list" in row.value
    ):  # the sanitized file does not have the key
        hidden += row.texts("challenge_test_list")
    setup = row.value.get("test_setup_code") or "\n".join(row.value.get("test_imports") or [])
    wanted = _wanted(row, code, setup, tests, hidden)
    payload = {
        "prelude": wanted.given,
        "tests": "\n".join([*wanted.before, *hidden]),
        # Python may have a function of this name too. Then the tests need the solution's.
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
    """What a solution must define, and which set-up code runs before it."""

    function: str
    classes: list[str]
    head: str
    given: str
    before: list[str]
    """Set-up code that uses the solution's classes: it runs between solution and tests."""


def _wanted(row: Row, code: str, setup: str, tests: list[str], hidden: list[str]) -> _Wanted:
    try:
        used = [ast.parse(test) for test in hidden]
        prepared = ast.parse(setup).body
        defined = ast.parse(code).body
    except SyntaxError as error:
        raise row.wrong(
            "code", f"not valid Python (here, or in test_list or test_setup_code): {error}"
        ) from None
    called = {name for test in used[: len(tests)] for name in _called(test)}
    functions = [each for each in defined if isinstance(each, ast.FunctionDef)]
    function = next((each for each in functions if each.name in called), None)
    if function is None:
        raise row.wrong(
            "test_list", f"the tests call {sorted(called)}, but the code defines none of these"
        )
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
    """The class with only its attributes, ``__init__``, and signatures of methods in the tests."""
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
