"""Does what the agent cites stand in what it found?

An answer may be right by luck, or by memory. This term pays for one that can be checked: the cited
span, as it is normalised for exact match, stands in the result of a tool call that succeeded (in
what the agent was shown of it, if it was cut), in an earlier step of the same trajectory. What the
agent wrote itself is no evidence, and neither is a tool that says it after the agent: a result
whose call asked for the span does not count, unless the question names it. Else a guess would be
its own evidence, by a look-up or a program that prints it.

What it does not see: that a passage speaks of something else. Any common word can be cited, so pay
for citations only beside the outcome.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import zip_longest
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
    """What must stand there: the answer itself, or every ``<evidence>…</evidence>`` of the
    answering turn (none is no evidence)."""


def evidence(steps: Steps, parameters: EvidenceParameters) -> np.ndarray:
    """1 on the answering step where the span was found, 0 elsewhere: once per trajectory.

    Raises:
        SchemaError: a row's ``tool_results`` is not a JSON list of results.
    """
    found: dict[int, list[tuple[str, str]]] = {}
    for row, results in results_by_row(steps, "status", "content"):
        found[row] = [
            (_words(_shown(result)), asked)
            for result, asked in zip_longest(results, _asked(steps.tool_calls[row]), fillvalue="")
            if result and result["status"] in ("ok", "oversized")
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
    """What the tool said, without the note that it was cut: its figures are no evidence."""
    content = result["content"]
    return content.rsplit("\n[cut: ", 1)[0] if result["status"] == "oversized" else content


def _words(text: str) -> str:
    """Normalised, with blanks at both ends, so that whole words are found."""
    return f" {normalize(text)} "


def _asked(calls: str) -> list[str]:
    """What each call of a step says in its arguments, word by word."""
    return [_words(_MARKS.sub(" ", str(call["arguments"]))) for call in json.loads(calls)]


def _spans(text: str, kind: str) -> list[str]:
    return [extract_answer(text)] if kind == "answer" else _CITED.findall(text)
