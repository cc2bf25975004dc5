"""MBPP's official JSON lines (Austin et al. 2021, https://github.com/google-research/google-research
/tree/master/mbpp).

A line is ``{"task_id": 11, "text", "code", "test_list": [assertion, …], "test_setup_code",
"challenge_test_list": [assertion, …]}``; the sanitized file has ``prompt`` for ``text`` and
``test_imports`` for ``test_setup_code``. In the paper the agent is shown the tests. Here it is
shown the head of the function that they call, whose name it could not know else, and not the tests.
Set-up code is the task's own, and knows no class of a solution: the few tasks whose set-up makes an
object of one (``root = Node(1)``) cannot be judged, and are not scored.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

from agent_r1 import schemas
from agent_r1.tasks.files import Row, read_lines, refuse_twins
from agent_r1.tasks.script import answer
from agent_r1.tasks.source import (
    JUDGED_BY_ENVIRONMENT,
    FileSourceParameters,
    Source,
    Tables,
    from_files,
)

_DOWNLOAD = "the official files are in https://github.com/google-research/google-research (mbpp)"


def load_mbpp(path: str | Path, split: str = "train", environment: str = "code") -> Tables:
    """The table ``tasks`` of one file, and no documents.

    Raises:
        TaskFileError: the file is missing, a line is malformed, or its tests call nothing that its
            code defines.
    """
    rows = read_lines(Path(path), _DOWNLOAD)
    tasks = [_task(row, split, environment) for row in rows]
    refuse_twins(((str(row.value["task_id"]), row) for row in rows), "task_id")
    return schemas.from_rows(tasks, "tasks"), schemas.empty("documents")


def _task(row: Row, split: str, environment: str) -> dict[str, Any]:
    row.require(("task_id", "code", "test_list"))
    text = row.text("text" if "text" in row.value else "prompt").strip()
    tests, code = row.texts("test_list"), row.text("code")
    challenges = row.texts("challenge_test_list") if "challenge_test_list" in row.value else []
    setup = row.value.get("test_setup_code") or "\n".join(row.value.get("test_imports") or [])
    head = _head(row, code, tests)
    payload = {
        "prelude": setup,
        "tests": "\n".join([*tests, *challenges]),
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


SOURCE = Source(
    "code",
    from_files(lambda path, inputs: load_mbpp(path, environment=inputs.environment)),
    FileSourceParameters,
    JUDGED_BY_ENVIRONMENT,
)
