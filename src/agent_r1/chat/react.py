"""ReAct text: ``Thought: …``, then ``Action: tool[input]`` or ``Action: finish[answer]``.

S. Yao et al., "ReAct: Synergizing Reasoning and Acting in Language Models" (2023),
https://arxiv.org/abs/2210.03629.

1. A label (``Thought:``, ``Action:``) starts a line. Its text goes to the next label or the end of
   the turn.
2. If a tool takes exactly one argument, a string, the text in an action's brackets is that argument
   itself: ``search[France]``. Any other tool takes a JSON object there:
   ``travel[{"to": "Paris", "days": 3}]``; empty brackets mean that there are no arguments.
3. Several actions in one turn are parallel calls. ``finish`` gives the answer, and must be the only
   action.
4. Results come back in one message, a line ``Observation: …`` per call. A turn that writes an
   observation itself is malformed: the agent must not invent what the tools say.

Text after an action's brackets, other than a thought, also makes the turn malformed. A raw argument
cannot begin or end with whitespace, or hold a label at the beginning of a line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agent_r1.chat.call_json import Malformed, check_json, read_value, skip_whitespace, write_value
from agent_r1.chat.encoding import Layout
from agent_r1.chat.reasoning import after_reasoning
from agent_r1.chat.turns import TextFormat
from agent_r1.mdp import Action, ActionType, ToolCall
from agent_r1.parameters import ParameterError
from agent_r1.tools import ToolSpec

FINISH = "finish"
_LABEL = re.compile(r"^(Thought|Action|Observation):", re.MULTILINE)
_UNNAMED = "input"
"""The argument's name in a call of an unknown tool: the call fails anyway."""


class ReactFormat(TextFormat):
    """See `agent_r1.chat.turns.ChatFormat`."""

    name = "react"
    # Plain text has no tool messages: the environment speaks as the user.
    roles = ("user", "tool")
    instructions = """You can use these tools:
{tools}

In each turn, first think, then act:
Thought: what you know, and what to do next
Action: tool[input]

You are then told what came of it, as "Observation: …". When you know the answer:
Thought: why it is the answer
Action: finish[answer]"""

    def describe(self, tools: Sequence[ToolSpec]) -> str:
        """A line per tool: how it is written, and what it does."""
        lines = []
        for spec in tools:
            argument = _only_argument(spec)
            schema = argument or write_value(spec.parameters.get("properties", {}))
            lines.append(f"{spec.name}[{schema}]: {spec.description}")
        return "\n".join(lines)

    def observations(self, messages: list[str]) -> list[str]:
        """One message for all results."""
        return ["\n".join(f"Observation: {text}" for text in messages)]

    def _opening(self, tools: Sequence[ToolSpec]) -> tuple[Layout, list[str]]:
        if any(spec.name == FINISH for spec in tools):  # whether they are described or not
            raise ParameterError(
                f"a tool is called '{FINISH}', which gives the answer in the format react: "
                "rename it with @tool(name=…), or choose another chat.format"
            )
        return super()._opening(tools)

    def read(self, text: str, tools: Sequence[ToolSpec] = ()) -> Action:
        """See `parse_turn`."""
        return parse_turn(text, {spec.name: _only_argument(spec) for spec in tools})

    def write(self, action: Action, thought: str = "", tools: Sequence[ToolSpec] = ()) -> list[str]:
        """The thought and the actions, one line each."""
        arguments = {spec.name: _only_argument(spec) for spec in tools}
        return [(f"Thought: {thought.strip()}\n" if thought.strip() else "")
                + write_turn(action, arguments)]  # fmt: skip


def _only_argument(spec: ToolSpec) -> str | None:
    """The name of the tool's argument, if it has exactly one and that is a string."""
    properties = spec.parameters.get("properties", {})
    if len(properties) != 1:
        return None
    [(name, schema)] = properties.items()
    return name if schema.get("type") == "string" else None


def write_turn(action: Action, arguments: Mapping[str, str | None]) -> str:
    """The text of a turn from its calls or its answer; ``arguments`` as for `parse_turn`."""
    if action.type is ActionType.ANSWER:
        return f"Action: {FINISH}[{action.answer}]"
    lines = []
    for call in action.tool_calls:
        only = arguments.get(call.name, _UNNAMED)
        if only is not None and list(call.arguments) == [only]:
            inside = call.arguments[only]
        else:
            inside = write_value(call.arguments)
        lines.append(f"Action: {call.name}[{inside}]")
    return "\n".join(lines)


def parse_turn(text: str, arguments: Mapping[str, str | None] | None = None) -> Action:
    """Read a whole turn (without its stop token); never fails.

    Args:
        arguments: tool → the name of its only argument; None for a tool that takes JSON.
    """
    pieces = _LABEL.split(after_reasoning(text))
    labelled = list(zip(pieces[1::2], pieces[2::2], strict=True))
    try:
        if any(label == "Observation" for label, _ in labelled):
            raise Malformed("observations come from the tools: end your turn after the action")
        actions = [content.strip() for label, content in labelled if label == "Action"]
        if not actions:
            raise Malformed("no 'Action: tool[input]' and no 'Action: finish[answer]'")
        read = [_read_action(content, arguments or {}) for content in actions]
        answers = [one for one in read if isinstance(one, str)]
        if len(answers) > 1:
            raise Malformed("more than one answer")
        if answers and len(read) > 1:
            raise Malformed("a tool call and an answer in one turn")
    except Malformed as error:
        return Action(ActionType.MALFORMED, text, error=f"could not parse: {error}")
    if answers:
        return Action(ActionType.ANSWER, text, answer=answers[0])
    calls = tuple(one for one in read if isinstance(one, ToolCall))
    return Action(ActionType.TOOL_CALL, text, tool_calls=calls)


def _read_action(content: str, arguments: Mapping[str, str | None]) -> ToolCall | str:
    """A call, or the answer."""
    name, bracket, inside = content.partition("[")
    name = name.rstrip()
    if not bracket or not name or "\n" in name:
        raise Malformed("the action is not 'tool[input]'")
    if not inside.endswith("]"):
        raise Malformed("the action does not end with ']'")
    inside = inside[:-1].strip()
    if name == FINISH:
        return inside
    only = arguments.get(name, None if inside[:1] in ("", "{") else _UNNAMED)
    if only is not None:
        return ToolCall(name, {only: inside})
    return ToolCall(name, _read_arguments(inside, name))


def _read_arguments(inside: str, name: str) -> dict:
    if not inside:
        return {}
    value, end = read_value(inside)
    if not isinstance(value, dict) or skip_whitespace(inside, end) < len(inside):
        raise Malformed(f"'{name[:30]}' takes one JSON object in its brackets")
    check_json(value)
    return value
