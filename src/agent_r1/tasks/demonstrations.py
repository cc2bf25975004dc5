"""What a scripted agent does with a task: right, or wrong in one way.

A task whose payload has a script (`agent_r1.tasks.script`) is played by it. One with a gold chain
is looked up: the right way looks up the first entity, reads the fact that leads on, looks that up,
and so on, and answers with the last fact. Before it acts on a page it says what it read there
("capital: Lima"): naming the fact that is asked for, finding it and acting on it are easier one by
one, and whoever audits a trajectory sees where it went wrong. A wrong episode makes exactly one
mistake; along a chain:

* **early**: it answers a hop too early, with a fact that only leads on;
* **attribute**: it answers with another line of the right page;
* **entity**: it looks up another entity on the way, and goes on from that one's page.

The mistakes are on purpose. Demonstrations are to teach the format and to leave habits for
reinforcement learning to weed out; from a policy that only knows the right way (or only a wrong
one), all attempts at a task earn the same, and there is nothing to prefer.
"""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from pydantic import Field, field_validator

from agent_r1.errors import UserError
from agent_r1.mdp import Action, ActionType, ToolCall
from agent_r1.parameters import Parameters
from agent_r1.tasks.script import ScriptFormatError, Turn, choose_script
from agent_r1.tasks.splits import in_hash_order

MISTAKES = ("early", "attribute", "entity")

_DRAWS = 20
"""Tries to find a wrong entity from whose page another answer follows (many use the euro)."""


class DemonstrationParameters(Parameters):
    """The group ``demonstrations`` of ``conf/``."""

    count: int = Field(default=400, ge=0)
    """Episodes; 0 for tasks without gold chains, which goes with ``sft.enabled: false``."""
    error_rate: float = Field(default=0.5, ge=0, le=1)
    """Probability that an episode makes its one mistake."""
    tool: str = "search"
    """The tool that looks a title up."""
    argument: str = "query"
    """The argument of the tool that takes the title."""
    thought: str = "{label}: {value}\n"
    """What is said about the page that was just read, before acting on it; empty: nothing."""

    @field_validator("thought")
    @classmethod
    def _is_template(cls, thought: str) -> str:
        try:
            thought.format(label="", value="")
        except (KeyError, IndexError, ValueError) as error:
            raise ValueError("may hold {label} and {value}, and other braces doubled") from error
        return thought


@dataclass(frozen=True, slots=True)
class Hop:
    """One fact of a gold chain, or of the chain that a mistake leads along."""

    title: str
    label: str
    value: str


class DemonstrationError(UserError, ValueError):
    """A task cannot be demonstrated; the message names it."""


class Encyclopedia:
    """The corpus as facts, and the titles that a demonstration may mention."""

    def __init__(self, documents: pd.DataFrame, titles: Collection[str]):
        """
        Args:
            documents: pages of ``label: value`` lines.
            titles: entities of the training tasks; no other title gets into a demonstration, not
                even by mistake, so that what is held out stays unseen.
        """
        self._facts = {
            title: dict(line.split(": ", 1) for line in text.split("\n") if ": " in line)
            for title, text in zip(documents["title"], documents["text"], strict=True)
        }
        self._allowed = set(titles)
        self._with_label: dict[str, list[str]] = {}

    def value(self, title: str, label: str) -> str | None:
        """What the page says, or None."""
        return self._facts.get(title, {}).get(label)

    def others(self, hop: Hop) -> list[Hop]:
        """The page's other lines, as far as they may be mentioned."""
        facts = self._facts.get(hop.title, {})
        return [
            Hop(hop.title, label, value)
            for label, value in facts.items()
            if label != hop.label and self._may_mention(value)
        ]

    def entities_with(self, label: str) -> list[str]:
        """Titles that may be mentioned whose pages have that label, sorted."""
        if label not in self._with_label:
            titles = (title for title in self._allowed if self.value(title, label) is not None)
            self._with_label[label] = sorted(titles)
        return self._with_label[label]

    def _may_mention(self, value: str) -> bool:
        named = {part for part in (value, *value.split(", ")) if part in self._facts}
        return named <= self._allowed

    def may_mention(self, hops: Sequence[Hop]) -> bool:
        """Whether nothing that is held out comes up on the way."""
        return all(self._may_mention(hop.title) and self._may_mention(hop.value) for hop in hops)


def choose_tasks(tasks: pd.DataFrame, count: int, seed: int) -> list[tuple[dict[str, Any], int]]:
    """``count`` training tasks with their sample index, families in turn.

    Where there are fewer tasks than episodes, they are gone through again.

    Raises:
        DemonstrationError: there is no training task.
    """
    train = {task["task_id"]: task for task in tasks.to_dict("records") if task["split"] == "train"}
    if not train:
        raise DemonstrationError("the tasks have no split 'train' to demonstrate")
    ranks: dict[str, int] = {}
    ordered = []
    for task_id in in_hash_order(train, seed, "build_demonstrations"):
        family = train[task_id]["family"]
        ranks[family] = ranks.get(family, -1) + 1
        ordered.append((ranks[family], family, task_id))
    ids = [task_id for _, _, task_id in sorted(ordered)]
    return [(train[ids[i % len(ids)]], i // len(ids)) for i in range(count)]


def training_entities(tasks: pd.DataFrame) -> set[str]:
    """Every entity that a chain of a training task passes; tasks without one have none."""
    train = tasks[tasks["split"] == "train"]
    payloads = map(json.loads, train["payload"].tolist())
    return {step["title"] for payload in payloads for step in payload.get("chain") or ()}


def gold_chain(task: Mapping[str, Any]) -> list[Hop]:
    """The facts that answer the task, in order.

    Raises:
        DemonstrationError: the task's payload has none.
    """
    chain = json.loads(task["payload"]).get("chain")
    if not chain:
        raise DemonstrationError(
            f"task '{task['task_id']}' has neither a script nor a gold chain in its payload, so no "
            "scripted agent can solve it; start RL without a warm start: demonstrations.count 0, "
            "sft.enabled false"
        )
    return [Hop(step["title"], step["label"], step["value"]) for step in chain]


def write_script(
    task: Mapping[str, Any],
    encyclopedia: Encyclopedia,
    parameters: DemonstrationParameters,
    seed: int,
) -> list[Turn]:
    """The turns of one episode: its script, or look-ups and an answer.

    Args:
        task: a row of the tasks table.
        encyclopedia: the corpus.
        parameters: the group ``demonstrations``.
        seed: of this episode; decides whether and how it errs.

    Raises:
        DemonstrationError: the task has neither a script nor a chain, or a malformed one.
    """
    draw = random.Random(seed)
    payload = json.loads(task["payload"])
    if "script" in payload:
        try:
            return choose_script(payload, parameters.error_rate, draw)
        except ScriptFormatError as error:
            raise DemonstrationError(f"the script of task '{task['task_id']}': {error}") from None
    hops = gold_chain(task)
    if draw.random() < parameters.error_rate:
        hops = _err(hops, set(task["answers"]), encyclopedia, draw)
    calls = [ToolCall(parameters.tool, {parameters.argument: hop.title}) for hop in hops]
    actions = [Action(ActionType.TOOL_CALL, "", tool_calls=(call,)) for call in calls]
    actions.append(Action(ActionType.ANSWER, "", answer=hops[-1].value))
    read = [parameters.thought.format(label=hop.label, value=hop.value) for hop in hops]
    return [Turn(*turn) for turn in zip(["", *read], actions, strict=True)]


def _err(
    hops: list[Hop], accepted: set[str], encyclopedia: Encyclopedia, draw: random.Random
) -> list[Hop]:
    """The hops that are made; the last one says the wrong answer.

    A mistake that this task does not allow (one hop has no earlier one) gives way to another.
    """
    for mistake in draw.sample(MISTAKES, len(MISTAKES)):
        if mistake == "early" and len(hops) > 1 and hops[-2].value not in accepted:
            return hops[:-1]
        if mistake == "attribute":
            wrong = [hop for hop in encyclopedia.others(hops[-1]) if hop.value not in accepted]
            if wrong:
                return [*hops[:-1], draw.choice(wrong)]
        if mistake == "entity":
            detour = _detour(hops, accepted, encyclopedia, draw)
            if detour:
                return detour
    raise DemonstrationError(f"no mistake can be made from '{hops[0].title}' to '{hops[-1].value}'")


def _detour(
    hops: list[Hop], accepted: set[str], encyclopedia: Encyclopedia, draw: random.Random
) -> list[Hop] | None:
    """The chain with another entity at one place, and what follows from that one's page."""
    for _ in range(_DRAWS):
        place = draw.randrange(len(hops))
        others = encyclopedia.entities_with(hops[place].label)
        title: str | None = draw.choice(others) if others else None
        detour = hops[:place]
        for hop in hops[place:]:
            value = title and encyclopedia.value(title, hop.label)
            if not value:
                break
            detour.append(Hop(title, hop.label, value))
            title = value
        complete = len(detour) == len(hops) and detour[place].title != hops[place].title
        if complete and detour[-1].value not in accepted and encyclopedia.may_mention(detour):
            return detour
    return None
