"""2WikiMultihopQA's official JSON (Ho et al. 2020, https://github.com/Alab-NII/2wikimultihop).

HotpotQA's format without ``level`` and with ``evidences``, the chain as triples: ``{"_id",
"question", "answer", "type", "supporting_facts": [[title, sentence], …], "context": [[title,
[sentence, …]], …], "evidences": [[subject, relation, object], …]}``. The test file has neither
answers nor evidences.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agent_r1 import schemas
from agent_r1.tasks.files import Row, read_list, refuse_twins
from agent_r1.tasks.paragraphs import (
    check_context,
    check_pairs,
    documents_of,
    paragraph_source,
    supporting_script,
)
from agent_r1.tasks.source import Tables

_DOWNLOAD = "the official files are in https://github.com/Alab-NII/2wikimultihop"
_TEXTS = ("_id", "question", "answer", "type")


def load_two_wiki(
    path: str | Path, split: str = "train", environment: str = "multihop_qa"
) -> Tables:
    """The tables ``tasks`` and ``documents`` of one file; see `agent_r1.tasks.hotpotqa`.

    ``hops`` counts the evidences; a comparison has one for each thing that is compared.

    Raises:
        TaskFileError: the file is missing, no JSON, or a row is malformed.
    """
    rows = read_list(Path(path), _DOWNLOAD)
    tasks = [_task(row, split, environment) for row in rows]
    refuse_twins(((row.value["_id"], row) for row in rows), "_id")
    return schemas.from_rows(tasks, "tasks"), documents_of(tasks, "2wikimultihopqa")


def _task(row: Row, split: str, environment: str) -> dict[str, Any]:
    row.require((*_TEXTS, "supporting_facts", "context", "evidences"))
    texts = {key: row.text(key) for key in _TEXTS}
    facts = check_pairs(row, "supporting_facts", int, "[[title, index of sentence], …]")
    evidences = row.items("evidences", list)
    if not evidences or any(len(triple) != 3 for triple in evidences):
        raise row.wrong("evidences", "expected [[subject, relation, object], …]")
    payload = {
        "supporting_facts": facts,
        "type": texts["type"],
        "evidences": evidences,
        "context": check_context(row),
        "script": supporting_script((title for title, _ in facts), texts["answer"].strip()),
    }
    return {
        "task_id": f"2wikimultihopqa:{texts['_id']}",
        "environment": environment,
        "split": split,
        "family": texts["type"],
        "prompt": texts["question"].strip(),
        "answers": [texts["answer"].strip()],
        "hops": len(evidences),
        "payload": json.dumps(payload, ensure_ascii=False),
    }


SOURCE = paragraph_source(load_two_wiki)
