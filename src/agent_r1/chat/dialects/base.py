"""What a dialect is: how a family of chat templates writes tool calls."""

from __future__ import annotations

from typing import Any

from agent_r1.chat.call_json import Malformed
from agent_r1.chat.encoding import marked
from agent_r1.chat.hermes import answer_blocks
from agent_r1.chat.reasoning import END_OF_THINKING, THINKING, Spans, after_reasoning, think_spans
from agent_r1.mdp import Action, ActionType, ToolCall


class Dialect:
    """Reads and writes turns. `NativeTemplate` proves that a template agrees."""

    name: str
    markup: tuple[str, ...]
    """Its own tags; each is a control token if the tokenizer has one for it."""
    ends: tuple[str, ...] = ()
    """Control tokens that end a turn, besides the one that the template writes after a call."""
    answer_end: str | None = None
    """The control token that ends an answer; None if it is the same as after a call."""
    parallel = False
    """Whether a turn may hold several calls."""
    thought = ""
    """A thought that a template of this dialect writes beside a call; empty if it never does."""

    def message(self, action: Action, thought: str = "") -> dict[str, Any]:
        """The action as a message for the template."""
        raise NotImplementedError

    def write(self, action: Action, thought: str = "") -> list[str]:
        """The action as the template writes it, tags as `Markup`."""
        raise NotImplementedError

    def read(self, text: str) -> Action:
        """A whole turn (without its stop token); never fails."""
        raise NotImplementedError

    def reasoning(self, text: str) -> Spans:
        """The characters of a turn that are reasoning: up to the last ``</think>``."""
        return think_spans(text)


def assistant_message(action: Action, content: str) -> dict[str, Any]:
    """An assistant message with the action's calls, as templates take it."""
    calls = [
        {"type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in action.tool_calls
    ]
    if not calls:
        return {"role": "assistant", "content": content + (action.answer or "")}
    return {"role": "assistant", "content": content, "tool_calls": calls}


def spoken_answer(text: str) -> str:
    """The answer in a turn without calls: its ``<answer>`` block, or all that is not reasoning.

    Raises:
        Malformed: the turn is empty.
    """
    said = after_reasoning(text)
    blocks = answer_blocks(said)
    answer = blocks[-1] if blocks else said.strip()
    if not answer and not blocks:
        raise Malformed("the turn says nothing")
    return answer


def thinking(thought: str) -> list[str]:
    """A thought, the tags of reasoning in it as `Markup`."""
    return marked(thought, (THINKING, END_OF_THINKING))


def write_answer(action: Action, thought: str) -> list[str]:
    """The answer; in an ``<answer>`` block if there is text before it."""
    answer = action.answer or ""
    if answer and not after_reasoning(thought).strip():
        return [*thinking(thought), answer]
    return [*thinking(thought), f"<answer>{answer}</answer>"]


def malformed(text: str, error: Malformed) -> Action:
    """The action of a turn that cannot be read."""
    return Action(ActionType.MALFORMED, text, error=f"could not parse: {error}")


def answered(text: str, answer: str) -> Action:
    """The action of a turn with an answer."""
    return Action(ActionType.ANSWER, text, answer=answer)


def called(text: str, *calls: ToolCall) -> Action:
    """The action of a turn with calls."""
    return Action(ActionType.TOOL_CALL, text, tool_calls=calls)
