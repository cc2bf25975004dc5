"""Questions that bring their own paragraphs: what HotpotQA, 2WikiMultihopQA and MuSiQue share.

Ten or twenty paragraphs come with each question, a few of which it needs. The agent searches either
these alone (``pages: own``, the setting that the benchmarks call *distractor*), or those of all
questions together (``pages: shared``), which is harder and closer to a real corpus.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from agent_r1 import tables
from agent_r1.tasks.files import Row
from agent_r1.tasks.script import answer, call
from agent_r1.tasks.source import (
    TEXT_ANSWERS,
    FileSourceParameters,
    Source,
    SourceInputs,
    Tables,
    each_page_once,
    from_files,
)


class ParagraphParameters(FileSourceParameters):
    """``tasks.sources.NAME`` in ``conf/``, for questions with paragraphs."""

    pages: Literal["own", "shared"] = "own"
    """What the search tool reads: the paragraphs of the question, or of all questions."""


def supporting_script(titles: Iterable[str], accepted: str) -> list[dict[str, Any]]:
    """The turns of an agent that knows which pages to look up, and the answer."""
    return [*(call("search", query=title) for title in dict.fromkeys(titles)), answer(accepted)]


def documents_of(tasks: list[dict[str, Any]], prefix: str) -> pd.DataFrame:
    """One document per paragraph of the tasks' ``context``.

    MuSiQue has several paragraphs of one page, under the same title. All are kept: each may be the
    one that a question needs.
    """
    pages: dict[tuple[str, str], None] = {}
    for task in tasks:
        for title, sentences in json.loads(task["payload"])["context"]:
            pages[title, "".join(sentences).strip()] = None
    rows = [
        {"document_id": f"{prefix}:{title}", "title": title, "text": text} for title, text in pages
    ]
    return each_page_once(tables.from_rows(rows, "documents"))


def paragraph_source(
    load: Callable[[Path, SourceInputs], Tables],
    parameters: type[ParagraphParameters] = ParagraphParameters,
) -> Source:
    """The source of such questions.

    Args:
        load: the tables of a file, in whatever split.
        parameters: what can be said about it in ``conf/``.
    """

    def load_file(path: Path, inputs: SourceInputs) -> Tables:
        tasks, documents = load(path, inputs)
        if inputs.own.pages == "own":
            return tasks, tables.empty("documents")
        payloads = [json.loads(text) for text in tasks["payload"]]
        for payload in payloads:
            del payload["context"]
        texts = [json.dumps(payload, ensure_ascii=False) for payload in payloads]
        return tables.conform(tasks.assign(payload=texts), "tasks"), documents

    return Source("multihop_qa", from_files(load_file), parameters, TEXT_ANSWERS)


def check_pairs(row: Row, key: str, second: type, about: str) -> list[list[Any]]:
    """The value of ``key`` if it is ``[[text, second], …]``.

    Raises:
        TaskFileError: it is not.
    """
    value = row.value[key]
    good = isinstance(value, list) and all(
        isinstance(pair, list)
        and len(pair) == 2
        and isinstance(pair[0], str)
        and isinstance(pair[1], second)
        for pair in value
    )
    if not good:
        raise row.wrong(key, f"expected {about}")
    return value


def check_context(row: Row) -> list[list[Any]]:
    """``context`` if it is ``[[title, [sentence, …]], …]``.

    Raises:
        TaskFileError: it is not.
    """
    about = "[[title, [sentence, …]], …]"
    context = check_pairs(row, "context", list, about)
    if not all(isinstance(sentence, str) for _, sentences in context for sentence in sentences):
        raise row.wrong("context", f"expected {about}")
    return context
