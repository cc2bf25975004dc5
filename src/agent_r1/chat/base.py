"""How the agent's turns are configured, and how observations become messages."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field, field_validator

from agent_r1.extras import named_object
from agent_r1.parameters import Parameters
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
