"""MBPP's official JSON (Austin et al. 2021, https://github.com/google-research/google-research/tree
/master/mbpp).

A line of ``mbpp.jsonl`` is ``{"task_id": 11, "text", "code", "test_list": [assertion, …],
"test_setup_code", "challenge_test_list": [assertion, …]}``. ``sanitized-mbpp.json`` is one list,
with ``prompt`` for ``text`` and ``test_imports`` for ``test_setup_code``. The paper evaluates on
the ids 11 to 510; whoever compares with it cuts the file there, and does not train on them.

A solution passes if ``test_list`` does, as in the paper. There the agent is shown these tests. Here
it is shown the head of the function that they call, whose name it could not know else.
Set-up code is the task's own, and knows no class of a solution: the few tasks whose set-up makes an
object of one (``root = Node(1)``) cannot be judged, and are not scored.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

from agent_r1 import schemas
from agent_r1.tasks.files import Row, read_rows, refuse_twins
from agent_r1.tasks.script import answer
from agent_r1.tasks.source import (
    JUDGED_BY_ENVIRONMENT,
    FileSourceParameters,
    Source,
    SourceInputs,
    Tables,
    from_files,
)

_DOWNLOAD = "the official files are in https://github.com/google-research/google-research (mbpp)"


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
    return schemas.from_rows(tasks, "tasks"), schemas.empty("documents")


def _task(row: Row, split: str, environment: str, challenge_tests: bool) -> dict[str, Any]:
    row.require(("task_id", "code", "test_list"))
    text = row.text("text" if "text" in row.value else "prompt").strip()
    tests, code = row.texts("test_list"), row.text("code")
    hidden = list(tests)
    if challenge_tests and "challenge_test_list" in row.value:  # the sanitized file has none
        hidden += row.texts("challenge_test_list")
    setup = row.value.get("test_setup_code") or "\n".join(row.value.get("test_imports") or [])
    head = _head(row, code, tests)
    payload = {
        "prelude": setup,
        "tests": "\n".join(hidden),
        "entry_point": None,  # the assertions name it
        "script": [answer(f"```python\n{code.strip()}\n```")],
    }
    return {
        "task_id": f"mbpp:{row.value['task_id']}",
        "environment": environment,
        "split": split,
        "family": "mbpp",
        "prompt": f"{text}\n```python\n{head}\n```",
        "answers": [],  # the tests alone can tell
        "hops": None,
        "payload": json.dumps(payload, ensure_ascii=False),
    }


def _head(row: Row, code: str, tests: list[str]) -> str:
    """``def name(arguments):`` of the function that the tests call."""
    try:
        called = {
            node.func.id
            for test in tests
            for node in ast.walk(ast.parse(test))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        defined = [node for node in ast.parse(code).body if isinstance(node, ast.FunctionDef)]
    except SyntaxError as error:
        raise row.wrong("code", f"no Python, or key 'test_list' is none ({error})") from None
    for function in defined:
        if function.name in called:
            return f"def {function.name}({ast.unparse(function.args)}):"
    raise row.wrong("test_list", f"the tests call {sorted(called)}, and the code defines none")


def _load(path: Path, inputs: SourceInputs) -> Tables:
    own = inputs.own
    return load_mbpp(path, environment=inputs.environment, challenge_tests=own.challenge_tests)


SOURCE = Source("code", from_files(_load), MbppParameters, JUDGED_BY_ENVIRONMENT)
