"""FanOutQA's official JSON (Zhu et al. 2024, arXiv:2402.14116,
https://github.com/zhudotexe/fanoutqa).

A file is a list of questions: ``{"id", "question", "decomposition": [{"id", "question", "answer",
"decomposition", "depends_on", "evidence": {"pageid", "revid", "title", "url"} or null}, …],
"answer", "categories": [text, …]}``. An answer is a string, a number, a boolean, a list of these,
or a mapping to these. The package ``fanoutqa`` contains the development set. It has no pages, so
the corpus must come from another source, such as ``wikipedia``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field

from agent_r1.tasks.files import Row, read_list, refuse_duplicates
from agent_r1.tasks.paragraphs import supporting_script
from agent_r1.tasks.rows import task_row, without_documents
from agent_r1.tasks.source import TEXT_ANSWERS, FileSourceParameters, Source, Tables, from_files

_DOWNLOAD = "it is in the package: pip install -e '.[fanoutqa]'"
_PACKAGED = "fanoutqa:data/fanout-final-dev.json"


class FanOutParameters(FileSourceParameters):
    """``tasks.sources.fanoutqa`` in ``conf/``."""

    files: dict[str, str] = Field(
        default_factory=lambda: dict.fromkeys(("train", "validation", "held_out"), _PACKAGED),
        validate_default=True,
    )
    """Split → file. By default the package's 310 questions are divided among the splits."""


def load_fanoutqa(
    path: str | Path, split: str = "train", environment: str = "multihop_qa"
) -> Tables:
    """The table ``tasks`` of one file, and no documents.

    The one accepted answer lists everything (``Ada: 1; Ben: 2``), so an exact match would have to
    guess this wording. The payload keeps the original answer for FanOutQA's own metric,
    ``coverage``.

    Raises:
        TaskFileError: the file is missing or is not JSON, or a row is malformed.
    """
    rows = read_list(Path(path), _DOWNLOAD)
    tasks = [_task(row, split, environment) for row in rows]
    refuse_duplicates(((row.value["id"], row) for row in rows), "id")
    return without_documents(tasks)


def _task(row: Row, split: str, environment: str) -> dict[str, Any]:
    row.require(("id", "question", "decomposition", "answer"))
    accepted = _flat(row.value["answer"])
    if not accepted:
        raise row.wrong("answer", "expected an answer, but it is empty")
    titles, steps = _titles(row)
    categories = row.texts("categories") if "categories" in row.value else []
    payload = {"answer": row.value["answer"], "script": supporting_script(titles, accepted)}
    return task_row(
        f"fanoutqa:{row.text('id')}",
        environment,
        split,
        family=categories[0] if categories else "fanoutqa",
        prompt=row.text("question").strip(),
        answers=[accepted],
        hops=steps,
        payload=payload,
    )


def _titles(row: Row) -> tuple[list[str], int]:
    """The pages of all sub-questions, depth first, and how many sub-questions have one."""
    titles: list[str] = []
    steps = 0
    for step in row.rows("decomposition"):
        if step.value.get("decomposition"):
            deeper, count = _titles(step)
            titles, steps = [*titles, *deeper], steps + count
        elif isinstance(step.value.get("evidence"), dict):
            titles.append(Row(step.value["evidence"], f"{step.where}, evidence").text("title"))
            steps += 1
    return titles, steps


def _flat(value: Any) -> str:
    """An answer of any shape as one string."""
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_flat(each)}" for key, each in value.items())
    if isinstance(value, list):
        return ", ".join(_flat(each) for each in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value).strip()


SOURCE = Source(
    "multihop_qa",
    from_files(lambda path, inputs: load_fanoutqa(path, environment=inputs.environment)),
    FanOutParameters,
    TEXT_ANSWERS,
)
