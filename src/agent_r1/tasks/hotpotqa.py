"""HotpotQA's official JSON (Yang et al. 2018, https://hotpotqa.github.io) as tasks and documents.

A file is a list of questions: ``{"_id", "question", "answer", "type", "level", "supporting_facts":
[[title, sentence], …], "context": [[title, [sentence, …]], …]}``. The test file lacks ``answer``
and ``supporting_facts`` and cannot be trained or evaluated on. 2WikiMultihopQA is published in the
same format.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from agent_r1 import schemas

_HOPS = 2  # by construction of the data set
_DOWNLOAD = "the official files are listed at https://hotpotqa.github.io"


class TaskFileError(ValueError):
    """A task file is missing or malformed; the message names the file, the row and the key."""


def load_hotpotqa(
    path: str | Path, split: str, environment: str = "multihop_qa"
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tables ``tasks`` and ``documents`` of one file.

    Args:
        path: the JSON file.
        split: the split of all of its questions, one of `agent_r1.schemas.SPLITS`.
        environment: name in the environment registry.

    Returns:
        One task per question (``family`` is its type, the payload keeps ``supporting_facts``,
        ``level`` and the given ``context``), and one document per title (where the same title has
        several texts, the first one).

    Raises:
        TaskFileError: the file is missing, no JSON, or a row is malformed.
        ValueError: the split is unknown.
    """
    if split not in schemas.SPLITS:
        raise ValueError(f"unknown split {split!r}; known: {', '.join(schemas.SPLITS)}")
    path = Path(path)
    rows = _read(path)
    tasks, texts, first_row = [], {}, {}
    for number, row in enumerate(rows):
        checked = _check(row, f"{path}: row {number}")
        other = first_row.setdefault(checked["_id"], number)
        if other != number:
            raise TaskFileError(f"{path}: row {number}, key '_id': the same as in row {other}")
        tasks.append(_task(checked, split, environment))
        for title, sentences in checked["context"]:
            texts.setdefault(title, "".join(sentences).strip())
    documents = [
        {"document_id": f"hotpotqa:{title}", "title": title, "text": text}
        for title, text in texts.items()
    ]
    return schemas.from_rows(tasks, "tasks"), schemas.from_rows(documents, "documents")


def _read(path: Path) -> list[Any]:
    if not path.is_file():
        raise TaskFileError(f"{path}: no such file; {_DOWNLOAD}")
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise TaskFileError(f"{path}: not JSON ({error})") from None
    if not isinstance(rows, list):
        raise TaskFileError(f"{path}: expected a list of questions, got {type(rows).__name__}")
    return rows


def _check(row: Any, where: str) -> Mapping[str, Any]:
    """``row`` if it has everything that a task needs."""
    if not isinstance(row, Mapping):
        raise TaskFileError(f"{where}: expected an object, got {type(row).__name__}")
    for key in ("_id", "question", "answer", "type", "level", "supporting_facts", "context"):
        if key not in row:
            raise TaskFileError(f"{where}: key {key!r} is missing; it has {sorted(row)}")
    for key in ("_id", "question", "answer", "type", "level"):
        if not isinstance(row[key], str) or not row[key].strip():
            raise TaskFileError(f"{where}, key {key!r}: expected a text, got {row[key]!r}")
    if not _all_pairs(row["supporting_facts"], int):
        raise TaskFileError(
            f"{where}, key 'supporting_facts': expected [[title, index of sentence], …]"
        )
    is_context = _all_pairs(row["context"], list) and all(
        isinstance(sentence, str) for _, sentences in row["context"] for sentence in sentences
    )
    if not is_context:
        raise TaskFileError(f"{where}, key 'context': expected [[title, [sentence, …]], …]")
    return row


def _all_pairs(value: Any, second: type) -> bool:
    return isinstance(value, list) and all(
        isinstance(pair, list)
        and len(pair) == 2
        and isinstance(pair[0], str)
        and isinstance(pair[1], second)
        for pair in value
    )


def _task(row: Mapping[str, Any], split: str, environment: str) -> dict[str, Any]:
    payload = {
        "entities": list(dict.fromkeys(title for title, _ in row["supporting_facts"])),
        "supporting_facts": row["supporting_facts"],
        "type": row["type"],
        "level": row["level"],
        "context": row["context"],
    }
    return {
        "task_id": f"hotpotqa:{row['_id']}",
        "environment": environment,
        "split": split,
        "family": row["type"],
        "prompt": row["question"].strip(),
        "answers": [row["answer"].strip()],
        "hops": _HOPS,
        "payload": json.dumps(payload, ensure_ascii=False),
    }
