"""2WikiMultihopQA's official JSON (Ho et al. 2020, arXiv:2011.01060,
https://github.com/Alab-NII/2wikimultihop).

HotpotQA's format without ``level`` and with ``evidences``, the chain as triples: ``{"_id",
"question", "answer", "type", "supporting_facts": [[title, sentence], …], "context": [[title,
[sentence, …]], …], "evidences": [[subject, relation, object], …], "answer_id"}``. The test file has
neither answers nor evidences. The first release has no ``answer_id``.

``answer_id`` is the answer's id in Wikidata. Each line of ``id_aliases.json`` gives the other names
of one id: ``{"Q_id", "aliases": [text, …], "demonyms": [text, …]}``. The official evaluation
(``2wikimultihop_evaluate_v1.1.py``) accepts all of these names.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_r1 import tables
from agent_r1.tasks.files import Row, read_lines, read_list, refuse_duplicates
from agent_r1.tasks.paragraphs import (
    ParagraphParameters,
    check_context,
    check_pairs,
    documents_of,
    paragraph_source,
    supporting_script,
)
from agent_r1.tasks.rows import task_row
from agent_r1.tasks.source import SourceInputs, Tables

_DOWNLOAD = "the official files are in https://github.com/Alab-NII/2wikimultihop"
_TEXTS = ("_id", "question", "answer", "type")


class TwoWikiParameters(ParagraphParameters):
    """``tasks.sources.2wikimultihopqa`` in ``conf/``."""

    aliases: str | None = None
    """``id_aliases.json``, relative to ``data/01_raw``: other names of the answers, which the
    official evaluation accepts too. If null, only the answer itself is accepted."""


def load_two_wiki(
    path: str | Path,
    split: str = "train",
    environment: str = "multihop_qa",
    aliases: str | Path | None = None,
) -> Tables:
    """The tables ``tasks`` and ``documents`` of one file; see `agent_r1.tasks.hotpotqa`.

    ``hops`` is the number of evidences. A comparison has one for each compared entity.

    Args:
        path: the JSON file.
        split: the split of all questions in the file.
        environment: the environment that plays them.
        aliases: ``id_aliases.json``; see `TwoWikiParameters`.

    Raises:
        TaskFileError: a file is missing or is not JSON, or a row is malformed.
    """
    names = {} if aliases is None else _read_aliases(Path(aliases))
    rows = read_list(Path(path), _DOWNLOAD)
    tasks = [_task(row, split, environment, names) for row in rows]
    refuse_duplicates(((row.value["_id"], row) for row in rows), "_id")
    return tables.from_rows(tasks, "tasks"), documents_of(tasks, "2wikimultihopqa")


def _read_aliases(path: Path) -> dict[str, list[str]]:
    """Wikidata id → its names."""
    rows = read_lines(path, _DOWNLOAD)
    return {row.text("Q_id"): row.texts("aliases") + row.texts("demonyms") for row in rows}


def _task(row: Row, split: str, environment: str, names: Mapping[str, list[str]]) -> dict[str, Any]:
    row.require((*_TEXTS, "supporting_facts", "context", "evidences"))
    texts = {key: row.text(key) for key in _TEXTS}
    facts = check_pairs(row, "supporting_facts", int, "[[title, index of sentence], …]")
    accepted = [texts["answer"], *names.get(row.value.get("answer_id", ""), ())]
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
    return task_row(
        f"2wikimultihopqa:{texts['_id']}",
        environment,
        split,
        family=texts["type"],
        prompt=texts["question"].strip(),
        answers=list(dict.fromkeys(filter(None, (name.strip() for name in accepted)))),
        hops=len(evidences),
        payload=payload,
    )


def _load(path: Path, inputs: SourceInputs) -> Tables:
    aliases = inputs.own.aliases and inputs.files.find(inputs.own.aliases)
    return load_two_wiki(path, environment=inputs.environment, aliases=aliases)


SOURCE = paragraph_source(_load, TwoWikiParameters)
