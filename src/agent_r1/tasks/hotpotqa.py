"""HotpotQA's official JSON as tasks and documents (Yang et al. 2018, arXiv:1809.09600,
https://hotpotqa.github.io).

A file is a list of questions: ``{"_id", "question", "answer", "type", "level", "supporting_facts":
[[title, sentence], …], "context": [[title, [sentence, …]], …]}``. The test file lacks ``answer``
and ``supporting_facts``, so it can be used neither for training nor for evaluation.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from agent_r1 import schemas, tables
from agent_r1.tasks.files import Row, TaskFileError, read_list, refuse_duplicates
from agent_r1.tasks.paragraphs import (
    check_context,
    check_pairs,
    documents_of,
    paragraph_source,
    supporting_script,
)
from agent_r1.tasks.rows import task_row

__all__ = ["SOURCE", "TaskFileError", "load_hotpotqa"]

_HOPS = 2  # by construction of the data set
_DOWNLOAD = "the official files are listed at https://hotpotqa.github.io"
_TEXTS = ("_id", "question", "answer", "type", "level")


def load_hotpotqa(
    path: str | Path, split: str, environment: str = "multihop_qa"
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tables ``tasks`` and ``documents`` of one file.

    Args:
        path: the JSON file.
        split: the split of all questions in the file, one of `agent_r1.schemas.SPLITS`.
        environment: the environment that plays them.

    Returns:
        One task per question and one document per paragraph. A task's ``family`` is the question's
        type. The payload keeps ``supporting_facts``, ``level`` and ``context``.

    Raises:
        TaskFileError: the file is missing or is not JSON, or a row is malformed.
        ValueError: the split is unknown.
    """
    if split not in schemas.SPLITS:
        raise ValueError(f"unknown split {split!r}; known: {', '.join(schemas.SPLITS)}")
    rows = read_list(Path(path), _DOWNLOAD)
    tasks = [_task(row, split, environment) for row in rows]
    refuse_duplicates(((row.value["_id"], row) for row in rows), "_id")
    return tables.from_rows(tasks, "tasks"), documents_of(tasks, "hotpotqa")


def _task(row: Row, split: str, environment: str) -> dict[str, Any]:
    row.require((*_TEXTS, "supporting_facts", "context"))
    texts = {key: row.text(key) for key in _TEXTS}
    facts = check_pairs(row, "supporting_facts", int, "[[title, index of sentence], …]")
    titles = list(dict.fromkeys(title for title, _ in facts))
    payload = {
        "entities": titles,
        "supporting_facts": facts,
        "type": texts["type"],
        "level": texts["level"],
        "context": check_context(row),
        "script": supporting_script(titles, texts["answer"].strip()),
    }
    return task_row(
        f"hotpotqa:{texts['_id']}",
        environment,
        split,
        family=texts["type"],
        prompt=texts["question"].strip(),
        answers=[texts["answer"].strip()],
        hops=_HOPS,
        payload=payload,
    )


SOURCE = paragraph_source(lambda path, inputs: load_hotpotqa(path, "train", inputs.environment))
