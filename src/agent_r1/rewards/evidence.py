"""Does a tool result contain what the agent cites?

An answer can be right by luck or from memory. This term pays for an answer that can be checked: the
result of a successful tool call in an earlier step of the trajectory contains the cited span, both
normalised as for exact match. Of a result that was cut, only the part that the agent saw counts.

Text that the agent wrote is not evidence, nor is a tool that repeats it: a result does not count if
its call asked for the span, unless the question names the span. Otherwise a guess could become its
own evidence through a look-up, or a program that prints it.

Limit: the term does not check that the passage is about the question. Any common word can be cited,
so use this term only together with ``outcome``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import chain, repeat
from typing import Literal

import numpy as np

from agent_r1.rewards.answers import extract_answer, normalize
from agent_r1.rewards.base import Steps, TermParameters
from agent_r1.rewards.tool_results import results_by_row

_MARKS = re.compile(r"[^\w\s]")
_CITED = re.compile(r"<evidence>(.*?)</evidence>", re.DOTALL)


class EvidenceParameters(TermParameters):
    """``reward.terms.evidence`` in ``conf/``."""

    span: Literal["answer", "evidence"] = "answer"
    """What a result must contain: the answer, or every ``<evidence>…</evidence>`` of the answering
    turn. A turn without ``<evidence>`` earns 0."""


def evidence(steps: Steps, parameters: EvidenceParameters) -> np.ndarray:
    """1 on the answering step if every span was found, 0 elsewhere: once per trajectory.

    Raises:
        SchemaError: a row's ``tool_results`` is not a JSON list of results.
    """
    found: dict[int, list[tuple[str, str]]] = {}
    for row, results in results_by_row(steps, "status", "content"):
        every_asked = chain(_asked(steps.tool_calls[row]), repeat(""))
        found[row] = [
            (_words(_shown(result)), asked)
            for result, asked in zip(results, every_asked, strict=False)
            if result["status"] in ("ok", "oversized")
        ]
    values = np.zeros(len(steps.action_type))
    trajectories = steps.trajectories
    for row in steps.answering_rows():
        owner = trajectories.of_row[row]
        own = trajectories.order[trajectories.offsets[owner] : trajectories.offsets[owner + 1]]
        earlier = own[: list(own).index(row)]
        passages = [pair for place in earlier for pair in found.get(int(place), ())]
        question = _words(steps.prompts[row])
        spans = [_words(span) for span in _spans(steps.action_text[row], parameters.span)]
        values[row] = bool(spans) and all(
            span.strip()
            and any(
                span in passage and (span not in asked or span in question)
                for passage, asked in passages
            )
            for span in spans
        )
    return values


def _shown(result: Mapping[str, str]) -> str:
    """The tool's result without the note that it was cut: the note's numbers are not evidence."""
    content = result["content"]
    return content.rsplit("\n[cut: ", 1)[0] if result["status"] == "oversized" else content


def _words(text: str) -> str:
    """Normalised, with a space at each end so that only whole words match."""
    return f" {normalize(text)} "


def _asked(calls: str) -> list[str]:
    """The words in the arguments of each call of a step."""
    return [_words(_MARKS.sub(" ", str(call["arguments"]))) for call in json.loads(calls)]


def _spans(text: str, kind: str) -> list[str]:
    return [extract_answer(text)] if kind == "answer" else _CITED.findall(text)
