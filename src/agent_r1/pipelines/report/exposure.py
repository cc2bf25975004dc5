"""Which evaluated entities the policy met in training: none, where they are held out."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import pandas as pd

_MARKUP = re.compile(r"<[^<>]*>")


@dataclass(frozen=True, slots=True)
class Exposure:
    """The entities of one family of a split."""

    family: str
    questions: int
    entities: int
    in_training: int
    """Of them, entities of a training task's chain."""
    in_demonstrations: int
    """Of them, what a demonstration looks up, thinks or answers."""


def measure_exposure(
    tasks: pd.DataFrame, demonstrations: pd.DataFrame, split: str = "held_out"
) -> list[Exposure]:
    """A row per family of ``split``, by name.

    Args:
        tasks: the table `tasks`; payloads name their ``entities``.
        demonstrations: the table `rollouts` of the warm start.
        split: the split whose entities are counted.
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
    """Arguments of tool calls, and what turns say: answers, and thoughts with their parts."""
    texts: set[str] = set()
    for turn in demonstrations["action_text"]:
        for line in _MARKUP.sub("\n", turn).split("\n"):
            for said in (line, line.partition(": ")[2]):  # "capital: Lima" mentions Lima
                texts |= {said.strip(), *said.split(", ")}
    for calls in demonstrations["tool_calls"]:
        for call in json.loads(calls):
            texts |= {value for value in call["arguments"].values() if isinstance(value, str)}
    return texts
