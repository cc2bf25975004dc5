"""Questions with their own paragraphs: the code that HotpotQA, 2WikiMultihopQA and MuSiQue share.

Each question comes with ten or twenty paragraphs and needs a few of them. The agent searches either
only these (``pages: own``, the *distractor* setting of the benchmarks) or the paragraphs of all
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
    """``tasks.sources.NAME`` in ``conf/``, for questions with their own paragraphs."""

    pages: Literal["own", "shared"] = "own"
    """What the search tool searches: the paragraphs of this question, or of all questions."""


def supporting_script(titles: Iterable[str], accepted: str) -> list[dict[str, Any]]:
    """The turns of an agent that looks up the pages ``titles`` and then answers correctly."""
    return [*(call("search", query=title) for title in dict.fromkeys(titles)), answer(accepted)]


def documents_of(tasks: list[dict[str, Any]], prefix: str) -> pd.DataFrame:
    """One document per paragraph of the tasks' ``context``.

    MuSiQue has several paragraphs of one page, under the same title. All are kept, as questions
    need different ones.
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
    """A source of questions with their own paragraphs.

    Args:
        load: loads the tables of one file. The split that it gives them is replaced.
        parameters: the class of the source's parameters in ``conf/``.
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
    """The value of ``key``, a list of ``[string, second]`` pairs.

    Args:
        row: the object that has the key.
        key: its name.
        second: type of the second element of each pair.
        about: the expected format, for the error message.

    Raises:
        TaskFileError: the value has another format.
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
    """The value of ``context``, which must be ``[[title, [sentence, …]], …]``.

    Raises:
        TaskFileError: the value has another format.
    """
    about = "[[title, [sentence, …]], …]"
    context = check_pairs(row, "context", list, about)
    if not all(isinstance(sentence, str) for _, sentences in context for sentence in sentences):
        raise row.wrong("context", f"expected {about}")
    return context
