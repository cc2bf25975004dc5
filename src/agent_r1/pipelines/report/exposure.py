"""Count the evaluated entities that occurred in training: 0 for held-out ones."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import pandas as pd

_MARKUP = re.compile(r"<[^<>]*>")


@dataclass(frozen=True, slots=True)
class Exposure:
    """The entities in the questions of one family of a split."""

    family: str
    questions: int
    entities: int
    in_training: int
    """How many of them are in a training task's chain."""
    in_demonstrations: int
    """How many of them occur in a demonstration's tool calls, thoughts or answers."""


def measure_exposure(
    tasks: pd.DataFrame, demonstrations: pd.DataFrame, split: str = "held_out"
) -> list[Exposure]:
    """One row per family of ``split``, sorted by name.

    Args:
        tasks: the table `tasks`; payloads name their ``entities``.
        demonstrations: the table `rollouts` of the warm start.
        split: the split to count entities of.
    """
    entities = [set(json.loads(text).get("entities", ())) for text in tasks["payload"]]
    table = pd.DataFrame(
        {"split": tasks["split"].tolist(), "family": tasks["family"].tolist(), "entities": entities}
    )
    trained = _union(table.loc[table["split"] == "train", "entities"])
    demonstrated = _mentioned(demonstrations)
    rows = []
    for family, members in table[table["split"] == split].groupby("family"):
        met = _union(members["entities"])
        rows.append(
            Exposure(
                family=str(family),
                questions=len(members),
                entities=len(met),
                in_training=len(met & trained),
                in_demonstrations=len(met & demonstrated),
            )
        )
    return rows


def _union(sets: pd.Series) -> set[str]:
    return set().union(*sets)


def _mentioned(demonstrations: pd.DataFrame) -> set[str]:
    """All texts of tool arguments, answers, and thoughts and their parts."""
    texts: set[str] = set()
    for turn in demonstrations["action_text"]:
        for line in _MARKUP.sub("\n", turn).split("\n"):
            for said in (line, line.partition(": ")[2]):  # "capital: Lima" mentions Lima
                texts |= {said.strip(), *said.split(", ")}
    for calls in demonstrations["tool_calls"]:
        for call in json.loads(calls):
            texts |= {value for value in call["arguments"].values() if isinstance(value, str)}
    return texts
