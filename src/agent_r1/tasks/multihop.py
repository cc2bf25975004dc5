"""Multi-hop questions over the knowledge base: the tables `tasks` and `documents`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from agent_r1 import schemas, tables
from agent_r1.tasks.choices import TaskChoices
from agent_r1.tasks.knowledge_base import read_records
from agent_r1.tasks.pages import Page, build_pages
from agent_r1.tasks.questions import FAMILIES, Question, questions
from agent_r1.tasks.rows import task_row
from agent_r1.tasks.source import TEXT_ANSWERS, Source, SourceInputs
from agent_r1.tasks.splits import choose, partition_countries, split_of

_LEVELS = {1: "easy", 2: "medium", 3: "hard"}


def build_tasks(
    countries: pd.DataFrame,
    cities: pd.DataFrame,
    elements: pd.DataFrame,
    parameters: TaskChoices,
    environment: str = "multihop_qa",
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Questions with gold chains, and the corpus that answers them.

    Args:
        countries, cities, elements: the tables of the knowledge base.
        parameters: the group ``tasks``.
        environment: the environment that plays them.

    Returns:
        The tables `tasks` (sorted by split, families interleaved) and `documents` (all pages,
        including those that no split asks for).

    Raises:
        KnowledgeBaseError: a table is malformed. The message names the file, row and key.
    """
    pages = build_pages(
        read_records(countries, "countries"),
        read_records(cities, "cities"),
        read_records(elements, "elements"),
        parameters.max_list_items,
    )
    rows = [
        _task_row(question, split, environment)
        for split, members in _split_questions(pages, parameters).items()
        for question in members
    ]
    documents = [
        {"document_id": page.document_id, "title": page.title, "text": page.text}
        for page in pages.values()
    ]
    return tables.from_rows(rows, "tasks"), tables.from_rows(documents, "documents")


def _split_questions(
    pages: Mapping[str, Page], parameters: TaskChoices
) -> dict[str, list[Question]]:
    seed = parameters.split_seed
    partition = partition_countries(
        [page.title for page in pages.values() if page.kind == "country"],
        parameters.held_out_countries,
        parameters.validation_countries,
        seed,
    )
    candidates: dict[str, list[Question]] = {split: [] for split in schemas.SPLITS}
    for family in FAMILIES:
        for question in questions(family, pages, seed):
            split = split_of(question, partition, parameters.in_domain_fraction, seed)
            if split and len(question.facts[-1].value) <= parameters.max_answer_chars:
                candidates[split].append(question)
    chosen: dict[str, list[Question]] = {}
    for split in schemas.SPLITS:  # "train" comes first
        if split == "in_domain":
            trained_on = set().union(*(_titles(question) for question in chosen["train"]))
            candidates[split] = [q for q in candidates[split] if _titles(q) <= trained_on]
        size = getattr(parameters.sizes, split)
        chosen[split] = choose(candidates[split], size, parameters.one_hop_share, seed)
    return chosen


def _titles(question: Question) -> set[str]:
    return {page.title for page in question.pages}


def _task_row(question: Question, split: str, environment: str) -> dict[str, Any]:
    steps = list(zip(question.pages, question.facts, strict=True))
    hops = question.family.hops
    payload = {
        "chain": [
            {"title": page.title, "label": fact.label, "value": fact.value} for page, fact in steps
        ],
        "entities": [page.title for page in question.pages],
        # As in HotpotQA: [title, index of the sentence]. Here a sentence is a line of the page.
        "supporting_facts": [
            [page.title, list(page.facts).index(fact.label)] for page, fact in steps
        ],
        "type": "single" if hops == 1 else "bridge",
        "level": _LEVELS[hops],
    }
    return task_row(
        question.question_id,
        environment,
        split,
        family=question.family.name,
        prompt=question.text,
        answers=list(question.facts[-1].answers),
        hops=hops,
        payload=payload,
    )


def _load(inputs: SourceInputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    countries, cities, elements = inputs.knowledge_base
    return build_tasks(countries, cities, elements, inputs.tasks, inputs.environment)


SOURCE = Source("multihop_qa", _load, metrics=TEXT_ANSWERS)
