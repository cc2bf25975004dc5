"""A source of tasks: what it is called with, and what it gives.

1. A `Source` names the environment that plays its tasks, and the function that loads them.
2. It is told its size of each split. It may give fewer tasks where there are no more.
3. Tasks that come from files are given a split by the file that they stand in (`from_files`).
4. A task's payload may hold a ``script``: turns that solve it. A scripted agent plays them for the
   warm start (`agent_r1.tasks.demonstrations`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from pydantic import Field, field_validator

from agent_r1 import schemas, tables
from agent_r1.parameters import Parameters, nearest
from agent_r1.storage.hashing import text_sha256
from agent_r1.tasks.choices import TaskChoices
from agent_r1.tasks.files import TaskFiles
from agent_r1.tasks.splits import in_hash_order

Tables = tuple[pd.DataFrame, pd.DataFrame]
"""``tasks`` and ``documents``."""

TEXT_ANSWERS = ("exact_match", "f1", "substring", "coverage")
NUMBER_ANSWERS = ("numeric", *TEXT_ANSWERS)
SCORED_BY_ENVIRONMENT = ("environment",)
"""What `Source.metrics` may be, by what a task is solved with."""


class SourceParameters(Parameters):
    """``tasks.sources.NAME`` in ``conf/``: what every source has."""

    share: float = Field(default=1.0, gt=0)
    """Its part of every split, relative to the shares of the other sources."""
    environment: str | None = None
    """The environment that plays its tasks; null is the one it was made for."""

    def gives(self, split: str) -> bool:
        """Whether it can have tasks of a split."""
        return split in schemas.SPLITS


@dataclass(frozen=True, slots=True)
class SourceInputs:
    """What a source makes its tasks from."""

    own: Any
    """Its own parameters, of the type that the `Source` says."""
    tasks: TaskChoices
    """The group ``tasks``; ``tasks.sizes`` is what is wanted of this source alone."""
    environment: str
    """What the column ``environment`` of its tasks holds."""
    knowledge_base: tuple[pd.DataFrame, ...]
    """Countries, cities and elements."""
    files: TaskFiles

    def size(self, split: str) -> int:
        """Tasks that are wanted of a split."""
        return getattr(self.tasks.sizes, split)


class Source(NamedTuple):
    """How tasks of one kind are made."""

    environment: str
    """Plays its tasks unless ``tasks.sources.NAME.environment`` says otherwise."""
    load: Callable[[SourceInputs], Tables]
    parameters: type[SourceParameters] = SourceParameters
    metrics: tuple[str, ...] = ()
    """Values of ``outcome.metric`` that can tell a solved task from others where ``environment``
    plays it; empty: not known. With another one every reward would be 0."""


class FileSourceParameters(SourceParameters):
    """``tasks.sources.NAME`` in ``conf/``, for tasks that lie in files."""

    files: dict[str, str] = Field(default_factory=dict, validate_default=True)
    """Split → file, relative to ``data/01_raw``. A file that is named for several splits is dealt
    out among them: first the others take what they want, at most half of it if there is ``train``
    too; that has the rest to take from."""

    @field_validator("files")
    @classmethod
    def _named(cls, files: dict[str, str]) -> dict[str, str]:
        for split in files:
            if split not in schemas.SPLITS:
                raise ValueError(f"unknown split '{split}'.{nearest(split, schemas.SPLITS)}")
        if not files:
            raise ValueError("name a file for each split, such as files: {train: FILE}")
        return files

    def gives(self, split: str) -> bool:
        """The splits that have a file."""
        return split in self.files


def from_files(load: Callable[[Path, SourceInputs], Tables]) -> Callable[[SourceInputs], Tables]:
    """A source that loads each file of ``own.files``.

    Args:
        load: the tables of a whole file, in whatever split.
    """

    def load_all(inputs: SourceInputs) -> Tables:
        by_file: dict[str, list[str]] = {}
        for split in (*schemas.SPLITS[1:], schemas.SPLITS[0]):  # "train" takes what is left
            if split in inputs.own.files:
                by_file.setdefault(inputs.own.files[split], []).append(split)
        every_tasks, every_documents = [], []
        for name, splits in by_file.items():
            tasks, documents = load(inputs.files.find(name), inputs)
            every_tasks.append(_deal(tasks, splits, inputs))
            every_documents.append(documents)
        return (
            tables.conform(pd.concat(every_tasks, ignore_index=True), "tasks"),
            each_page_once(pd.concat(every_documents, ignore_index=True)),
        )

    return load_all


def _deal(tasks: pd.DataFrame, splits: list[str], inputs: SourceInputs) -> pd.DataFrame:
    """Disjoint parts of a file's tasks, one for each split, chosen by the hashes of their ids."""
    order = in_hash_order(tasks["task_id"].tolist(), inputs.tasks.split_seed, "deal")
    wanted = {split: inputs.size(split) for split in splits}
    others = sum(size for split, size in wanted.items() if split != "train")
    room = len(order) // 2 if "train" in wanted else len(order)
    if others > room:  # a small file: everyone gets less
        wanted |= {s: n * room // others for s, n in wanted.items() if s != "train"}
    parts, begin = [], 0
    for split, size in wanted.items():
        end = begin + size
        chosen = tasks[tasks["task_id"].isin(order[begin:end])]
        parts.append(chosen.assign(split=split))
        begin = end
    return pd.concat(parts, ignore_index=True)


def each_page_once(documents: pd.DataFrame) -> pd.DataFrame:
    """The pages without repetitions. Different pages that share an id, such as two paragraphs of
    one article, are told apart by the sha256 of their texts."""
    pages = documents.drop_duplicates(["title", "text"]).reset_index(drop=True)
    twins = pages["document_id"].duplicated()
    ids = [
        f"{name}#{text_sha256(text)[:8]}" if twin else name
        for name, text, twin in zip(pages["document_id"], pages["text"], twins, strict=True)
    ]
    return tables.conform(pages.assign(document_id=ids), "documents")


def merge(by_source: Mapping[str, Tables]) -> Tables:
    """The tables of several sources as one: sources in turn within each split, each page once.

    Families that two sources have (both HotpotQA and 2WikiMultihopQA know a ``comparison``) get the
    source's name in front: they are reported each by itself.
    """
    if len(by_source) == 1:
        return next(iter(by_source.values()))
    frames = []
    families = Counter(each for tasks, _ in by_source.values() for each in set(tasks["family"]))
    for position, (source, (tasks, _)) in enumerate(by_source.items()):
        names = [f"{source}:{each}" if families[each] > 1 else each for each in tasks["family"]]
        tasks = tasks.assign(family=names)
        rank = tasks.groupby("split").cumcount()
        size = tasks.groupby("split")["task_id"].transform("size")
        split = tasks["split"].map(schemas.SPLITS.index)
        frames.append(tasks.assign(_split=split, _rank=(rank + 1) / size, _source=position))
    ordered = pd.concat(frames, ignore_index=True).sort_values(["_split", "_rank", "_source"])
    documents = pd.concat([documents for _, documents in by_source.values()], ignore_index=True)
    documents = each_page_once(documents)
    return (
        tables.conform(ordered.reset_index(drop=True), "tasks"),
        documents,
    )
