"""Does what the agent cites stand in what it found?

An answer may be right by luck, or by memory. This term pays for one that can be checked: the cited
span, as it is normalised for exact match, stands in the result of a tool call that succeeded, in an
earlier step of the same trajectory. What the agent wrote itself is no evidence.
"""

from __future__ import annotations

import re
from typing import Literal

import numpy as np

from agent_r1.rewards.answers import extract_answer, normalize
from agent_r1.rewards.base import Steps, TermParameters
from agent_r1.rewards.tool_results import results_by_row

_CITED = re.compile(r"<evidence>(.*?)</evidence>", re.DOTALL)


class EvidenceParameters(TermParameters):
    """``reward.terms.evidence`` in ``conf/``."""

    span: Literal["answer", "evidence"] = "answer"
    """What must stand there: the answer itself, or every ``<evidence>…</evidence>`` of the
    answering turn (none is no evidence)."""


def evidence(steps: Steps, parameters: EvidenceParameters) -> np.ndarray:
    """1 on the answering step where the span was found, 0 elsewhere: once per trajectory.

    Raises:
        SchemaError: a row's ``tool_results`` is not a JSON list of results.
    """
    found: dict[int, list[str]] = {}
    for row, results in results_by_row(steps, "status", "content"):
        texts = [f" {normalize(r['content'])} " for r in results if r["status"] == "ok"]
        found[row] = texts
    values = np.zeros(len(steps.action_type))
    trajectories = steps.trajectories
    for row in steps.answering_rows():
        owner = trajectories.of_row[row]
        own = trajectories.order[trajectories.offsets[owner] : trajectories.offsets[owner + 1]]
        earlier = own[: list(own).index(row)]
        passages = [text for place in earlier for text in found.get(int(place), ())]
        spans = [normalize(span) for span in _spans(steps.action_text[row], parameters.span)]
        values[row] = bool(spans) and all(
            span and any(f" {span} " in passage for passage in passages) for span in spans
        )
    return values


def _spans(text: str, kind: str) -> list[str]:
    return [extract_answer(text)] if kind == "answer" else _CITED.findall(text)
