"""The turns that a scripted agent plays for a task: a correct episode, or one with one mistake.

1. A task whose payload has a script (`agent_r1.tasks.script`) is played by that script.
2. A task with a gold chain is played by looking it up: search the first entity, read the fact that
   leads on, search its value, and so on. The last fact is the answer.
3. Before the agent acts on a page, it writes what it read there ("capital: Lima"). Naming the
   fact, finding it and acting on it are easier one by one, and a reader of the trajectory sees
   where it went wrong.
4. A wrong episode makes exactly one mistake. Along a chain, that is one of:

   * **early**: it answers one hop too early, with a fact that only leads on;
   * **attribute**: it answers with another line of the right page;
   * **entity**: it looks up a wrong entity on the way and continues from that page.

The mistakes are deliberate. Demonstrations teach the format and leave bad habits for reinforcement
learning to remove. If a policy only knew the right way (or only a wrong one), all attempts at a
task would earn the same reward, and the advantages would be zero.
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
"""Attempts to find a wrong entity that leads to another answer (many countries use the euro)."""


class DemonstrationParameters(Parameters):
    """The group ``demonstrations`` of ``conf/``."""

    count: int = Field(default=400, ge=0)
    """Episodes. Set 0 for tasks without scripts or gold chains, with ``sft.enabled: false``."""
    error_rate: float = Field(default=0.5, ge=0, le=1)
    """Probability that an episode makes its one mistake."""
    tool: str = "search"
    """Name of the tool that looks up a title."""
    argument: str = "query"
    """Name of the tool's argument that takes the title."""
    thought: str = "{label}: {value}\n"
    """Text that the agent writes about the page it just read, before it acts; empty for none."""

    @field_validator("thought")
    @classmethod
    def _is_template(cls, thought: str) -> str:
        try:
            thought.format(label="", value="")
        except (KeyError, IndexError, ValueError) as error:
            raise ValueError("may hold {label} and {value}; double all other braces") from error
        return thought


@dataclass(frozen=True, slots=True)
class Hop:
    """One fact of a gold chain, or of the chain that an episode with a mistake follows."""

    title: str
    label: str
    value: str


class DemonstrationError(UserError, ValueError):
    """A task cannot be demonstrated. The message names the task."""


class Encyclopedia:
    """The facts of the corpus, and the titles that a demonstration may mention."""

    def __init__(self, documents: pd.DataFrame, titles: Collection[str]):
        """
        Args:
            documents: pages of ``label: value`` lines.
            titles: entities of the training tasks. No other title occurs in a demonstration, not
                even in one with a mistake, so held-out entities stay unseen.
        """
        self._facts = {
            title: dict(line.split(": ", 1) for line in text.split("\n") if ": " in line)
            for title, text in zip(documents["title"], documents["text"], strict=True)
        }
        self._allowed = set(titles)
        self._with_label: dict[str, list[str]] = {}

    def value(self, title: str, label: str) -> str | None:
        """The value on the page ``title``; None if there is no such page or line."""
        return self._facts.get(title, {}).get(label)

    def others(self, hop: Hop) -> list[Hop]:
        """The other lines of the hop's page that a demonstration may mention."""
        facts = self._facts.get(hop.title, {})
        return [
            Hop(hop.title, label, value)
            for label, value in facts.items()
            if label != hop.label and self._may_mention(value)
        ]

    def entities_with(self, label: str) -> list[str]:
        """Titles that may be mentioned and whose pages have this label, sorted."""
        if label not in self._with_label:
            titles = (title for title in self._allowed if self.value(title, label) is not None)
            self._with_label[label] = sorted(titles)
        return self._with_label[label]

    def _may_mention(self, value: str) -> bool:
        named = {part for part in (value, *value.split(", ")) if part in self._facts}
        return named <= self._allowed

    def may_mention(self, hops: Sequence[Hop]) -> bool:
        """Whether no hop names a held-out entity."""
        return all(self._may_mention(hop.title) and self._may_mention(hop.value) for hop in hops)


def choose_tasks(tasks: pd.DataFrame, count: int, seed: int) -> list[tuple[dict[str, Any], int]]:
    """``count`` training tasks with their sample indices, alternating between families.

    If there are fewer tasks than episodes, tasks repeat with the next sample index.

    Raises:
        DemonstrationError: there are no training tasks.
    """
    rows: list[dict[str, Any]] = tasks.to_dict("records", into=dict)
    train = {task["task_id"]: task for task in rows if task["split"] == "train"}
    if not train:
        raise DemonstrationError("no task is in the split 'train', so none can be demonstrated")
    ranks: dict[str, int] = {}
    ordered = []
    for task_id in in_hash_order(train, seed, "build_demonstrations"):
        family = train[task_id]["family"]
        ranks[family] = ranks.get(family, -1) + 1
        ordered.append((ranks[family], family, task_id))
    ids = [task_id for _, _, task_id in sorted(ordered)]
    return [(train[ids[i % len(ids)]], i // len(ids)) for i in range(count)]


def training_entities(tasks: pd.DataFrame) -> set[str]:
    """Every entity in the gold chains of the training tasks; tasks without a chain add none."""
    train = tasks[tasks["split"] == "train"]
    payloads = map(json.loads, train["payload"].tolist())
    return {step["title"] for payload in payloads for step in payload.get("chain") or ()}


def gold_chain(task: Mapping[str, Any]) -> list[Hop]:
    """The facts that answer the task, in order.

    Raises:
        DemonstrationError: the task's payload has no gold chain.
    """
    chain = json.loads(task["payload"]).get("chain")
    if not chain:
        raise DemonstrationError(
            f"task '{task['task_id']}' has neither a script nor a gold chain in its payload, so no "
            "scripted agent can solve it. Start RL without a warm start: set demonstrations.count "
            "to 0 and sft.enabled to false"
        )
    return [Hop(step["title"], step["label"], step["value"]) for step in chain]


def write_script(
    task: Mapping[str, Any],
    encyclopedia: Encyclopedia,
    parameters: DemonstrationParameters,
    seed: int,
) -> list[Turn]:
    """The turns of one episode: those of the task's script, or look-ups and an answer.

    Args:
        task: a row of the tasks table.
        encyclopedia: the corpus.
        parameters: the group ``demonstrations``.
        seed: of this episode; decides whether it makes a mistake, and which.

    Raises:
        DemonstrationError: the task has neither a script nor a gold chain, or its script is
            malformed.
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
    """The hops of an episode with one mistake; the value of the last one is the wrong answer.

    If a task does not allow a mistake (one hop cannot be answered early), another one is used.
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
    raise DemonstrationError(f"no mistake is possible from '{hops[0].title}' to '{hops[-1].value}'")


def _detour(
    hops: list[Hop], accepted: set[str], encyclopedia: Encyclopedia, draw: random.Random
) -> list[Hop] | None:
    """The chain with a wrong entity at one place, continued from that entity's page."""
    for _ in range(_DRAWS):
        place = draw.randrange(len(hops))
        others = encyclopedia.entities_with(hops[place].label)
        title = draw.choice(others) if others else ""
        detour = hops[:place]
        for hop in hops[place:]:
            value = encyclopedia.value(title, hop.label)
            if not value:
                break
            detour.append(Hop(title, hop.label, value))
            title = value
        complete = len(detour) == len(hops) and detour[place].title != hops[place].title
        if complete and detour[-1].value not in accepted and encyclopedia.may_mention(detour):
            return detour
    return None
