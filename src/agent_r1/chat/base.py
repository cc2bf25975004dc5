"""What a call format is, and how observations become messages."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from pydantic import Field, field_validator

from agent_r1.extras import named_object
from agent_r1.mdp import Action
from agent_r1.parameters import Parameters
from agent_r1.tools import ToolSpec
from agent_r1.tools.unicode import valid_unicode

FORMATS = {
    "hermes": "agent_r1.chat.hermes:HermesFormat",
    "react": "agent_r1.chat.react:ReactFormat",
    "code": "agent_r1.chat.code:CodeFormat",
    "native": "agent_r1.chat.native:NativeFormat",
}
"""Call formats by name; imported on first use."""


class ChatParameters(Parameters):
    """``chat`` in ``conf/``: how the agent's turns are written."""

    format: str = "hermes"
    """A name in `FORMATS`, or the import path of a class: ``my_package.formats:XmlFormat``."""
    system: str = "Answer the question with the help of the tools."
    """The system message. It is trusted: control tokens in it are control tokens. Empty leaves the
    system message to the chat template."""
    render_tools: bool = False
    """Whether the system message also lists the tools' schemas and the call syntax. Pretrained
    chat models need it; a tiny model is fine-tuned on the syntax and saves the tokens. The format
    ``native`` always lists them, in the template's own way."""
    reasoning: Literal["keep", "drop"] = "keep"
    """Whether the agent sees the reasoning (``<think>``) of its earlier turns again."""
    date: str = "2024-07-26"
    """Today's date for templates that print it. The real date would change the prompts every day;
    this one is Llama 3.1's default."""
    template_arguments: dict[str, Any] = Field(default_factory=dict)
    """Variables for the chat template, such as ``reasoning_effort: low`` for gpt-oss."""

    @field_validator("format")
    @classmethod
    def _known(cls, name: str) -> str:
        named_object("chat format", name, FORMATS, type)
        return name

    @field_validator("date")
    @classmethod
    def _is_date(cls, date: str) -> str:
        datetime.date.fromisoformat(date)
        return date


class ChatFormat(Protocol):
    """Writes and reads the turns of one agent, in token ids."""

    stop_token_ids: tuple[int, ...]
    """Sampling one of these ends an action. The first is the template's own end of turn."""

    def prompt_ids(
        self, observation: Mapping[str, Any] | str, tools: Sequence[ToolSpec]
    ) -> list[int]:
        """The context before the first action: system, first observation, assistant header."""
        ...

    def observation_ids(
        self, observation: Mapping[str, Any] | Sequence[str] | str, action_token_ids: Sequence[int]
    ) -> list[int]:
        """The ids to append after an action: the end of its turn, unless the action sampled it, the
        observation, and the next assistant header. All of them are context."""
        ...

    def parse(
        self,
        token_ids: Sequence[int],
        finish_reason: Literal["stop", "length"],
        tools: Sequence[ToolSpec] = (),
    ) -> Action:
        """Read an action; never fails. With ``length`` it is an unread `ActionType.CUT`.

        Args:
            token_ids: the sampled ids.
            finish_reason: why sampling ended.
            tools: the agent's tools, for formats that do not write the names of arguments.
        """
        ...

    def render_action(
        self, action: Action, thought: str = "", tools: Sequence[ToolSpec] = ()
    ) -> list[int]:
        """The ids that a policy would sample for this action, including the stop token unless the
        action is cut. For scripted agents.

        Args:
            action: its ``text`` is the whole turn; if that is empty, its calls or its answer are.
            thought: text before the calls or the answer.
            tools: the agent's tools.

        Raises:
            ValueError: the format cannot express the action.
        """
        ...

    def forgotten(self, action_token_ids: Sequence[int]) -> list[tuple[int, int]]:
        """The tokens of an action that later actions do not see, as ``[begin, end)`` positions.

        With ``chat.reasoning: drop`` these are its reasoning, otherwise the list is empty.
        """
        ...


def observation_messages(observation: Mapping[str, Any] | Sequence[str] | str) -> list[str]:
    """The messages of an observation: one for each result of parallel tool calls.

    A mapping whose only value is a list of strings gives one message per string. Any other mapping
    gives one message: its only value, or ``key: value`` lines.
    """
    if isinstance(observation, str):
        return [valid_unicode(observation)]
    if not isinstance(observation, Mapping):
        return [valid_unicode(text) for text in observation]
    values = list(observation.values())
    if len(values) == 1 and isinstance(values[0], list | tuple) and values[0]:
        return [valid_unicode(str(text)) for text in values[0]]
    if len(values) == 1:
        return [valid_unicode(str(values[0]))]
    return [valid_unicode("\n".join(f"{key}: {value}" for key, value in observation.items()))]


def observation_text(observation: Mapping[str, Any] | Sequence[str] | str) -> str:
    """An observation as one text: its messages, separated by empty lines."""
    return "\n\n".join(observation_messages(observation))
