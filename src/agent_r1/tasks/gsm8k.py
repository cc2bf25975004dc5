"""GSM8K's official JSON lines (Cobbe et al. 2021, arXiv:2110.14168,
https://github.com/openai/grade-school-math).

A line is ``{"question", "answer"}``. The answer is a worked solution with calculator annotations
such as ``<<48/2=24>>``, and ends in ``#### 72``. The script calls the calculator once for each
annotation. The mistake is to stop one computation early.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd

from agent_r1.storage.hashing import text_sha256
from agent_r1.tasks.files import Row, read_lines, refuse_duplicates
from agent_r1.tasks.rows import task_row, without_documents
from agent_r1.tasks.script import answer, call
from agent_r1.tasks.source import NUMBER_ANSWERS, FileSourceParameters, Source, from_files
from agent_r1.tools.arithmetic import ExpressionError, calculate

_DOWNLOAD = "the official files are in https://github.com/openai/grade-school-math"
_FINAL = re.compile(r"####\s*(-?[\d.,]*\d)\s*$")
_ANNOTATION = re.compile(r"<<([^<>=]+)=([^<>]*)>>")


def load_gsm8k(
    path: str | Path, split: str = "train", environment: str = "math"
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The table ``tasks`` of one file, and no documents.

    Args:
        path: the JSON lines.
        split: the split of all problems in the file.
        environment: the environment that plays them.

    Raises:
        TaskFileError: the file is missing, or a line is malformed.
    """
    rows = read_lines(Path(path), _DOWNLOAD)
    tasks = [_task(row, split, environment) for row in rows]
    refuse_duplicates(
        ((task["task_id"], row) for task, row in zip(tasks, rows, strict=True)), "question"
    )
    return without_documents(tasks)


def _task(row: Row, split: str, environment: str) -> dict[str, Any]:
    question, solution = row.text("question").strip(), row.text("answer")
    final = _FINAL.search(solution)
    if final is None:
        raise row.wrong("answer", "expected an answer that ends in '#### NUMBER'")
    accepted = final[1].replace(",", "")
    calls, results = _calls(solution)
    payload: dict[str, Any] = {"script": [*calls, answer(accepted)], "solution": solution}
    if len(calls) > 1 and results[-2] != accepted:
        payload["mistakes"] = [[*calls[:-1], answer(results[-2])]]
    return task_row(
        # The file has no ids, so the question itself names the problem.
        f"gsm8k:{text_sha256(question)[:16]}",
        environment,
        split,
        family="gsm8k",
        prompt=question,
        answers=[accepted],
        payload=payload,
    )


def _calls(solution: str) -> tuple[list[dict[str, Any]], list[str]]:
    """A call for each annotation that the calculator can compute, and the results."""
    calls, results = [], []
    for expression, _ in _ANNOTATION.findall(solution):
        try:
            results.append(calculate(expression))
        except ExpressionError:  # such as "20%*5" or "1/2 of 3"
            continue
        calls.append(call("calculate", expression=expression))
    return calls, results


SOURCE = Source(
    "math",
    from_files(lambda path, inputs: load_gsm8k(path, environment=inputs.environment)),
    FileSourceParameters,
    NUMBER_ANSWERS,
)
