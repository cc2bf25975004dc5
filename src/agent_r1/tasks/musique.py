"""MuSiQue's official JSON lines (Trivedi et al. 2022, arXiv:2108.00573,
https://github.com/StonyBrookNLP/musique).

A line is ``{"id": "2hop__…", "question", "answer", "answer_aliases": [text, …], "answerable",
"paragraphs": [{"idx", "title", "paragraph_text", "is_supporting"}, …], "question_decomposition":
[{"id", "question", "answer", "paragraph_support_idx"}, …]}``. Questions that are not answerable
(``musique_full``) are skipped: the correct reaction to them is to give no answer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agent_r1 import tables
from agent_r1.tasks.files import Row, read_lines, refuse_duplicates
from agent_r1.tasks.paragraphs import documents_of, paragraph_source, supporting_script
from agent_r1.tasks.rows import task_row
from agent_r1.tasks.source import Tables

_DOWNLOAD = "the official files are in https://github.com/StonyBrookNLP/musique"


def load_musique(
    path: str | Path, split: str = "train", environment: str = "multihop_qa"
) -> Tables:
    """The tables ``tasks`` and ``documents`` of one file.

    A task's ``family`` is the shape of its chain (``2hop``, ``3hop1``, …). The answer and its
    aliases are accepted.

    Raises:
        TaskFileError: the file is missing, or a line is malformed.
    """
    rows = read_lines(Path(path), _DOWNLOAD)
    refuse_duplicates(((row.text("id"), row) for row in rows), "id")
    kept = [row for row in rows if row.value.get("answerable", True) is not False]
    tasks = [_task(row, split, environment) for row in kept]
    return tables.from_rows(tasks, "tasks"), documents_of(tasks, "musique")


def _task(row: Row, split: str, environment: str) -> dict[str, Any]:
    row.require(("question", "answer", "answer_aliases", "paragraphs", "question_decomposition"))
    name, accepted = row.text("id"), row.text("answer").strip()
    aliases = [alias.strip() for alias in row.texts("answer_aliases") if alias.strip()]
    paragraphs = row.rows("paragraphs")
    context = [[each.text("title"), [each.text("paragraph_text")]] for each in paragraphs]
    steps = [
        {"question": each.text("question"), "answer": each.text("answer")}
        for each in row.rows("question_decomposition")
    ]
    payload = {
        "context": context,
        "decomposition": steps,
        "script": supporting_script(_supporting(row, paragraphs), accepted),
    }
    return task_row(
        f"musique:{name}",
        environment,
        split,
        family=name.partition("__")[0],
        prompt=row.text("question").strip(),
        answers=list(dict.fromkeys([accepted, *aliases])),
        hops=len(steps),
        payload=payload,
    )


def _supporting(row: Row, paragraphs: list[Row]) -> list[str]:
    """Titles of the supporting paragraphs, in the order of the decomposition."""
    by_index = {each.value.get("idx"): each for each in paragraphs}
    titles = []
    for step in row.rows("question_decomposition"):
        step.require(("paragraph_support_idx",))
        found = by_index.get(step.value["paragraph_support_idx"])
        if found is None:
            raise step.wrong("paragraph_support_idx", "no paragraph has this idx")
        if found.value.get("is_supporting") is not True:
            raise found.wrong("is_supporting", "expected true: the decomposition needs it")
        titles.append(found.text("title"))
    return titles


SOURCE = paragraph_source(lambda path, inputs: load_musique(path, environment=inputs.environment))
