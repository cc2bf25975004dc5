"""Finds out by trying what a model's chat template can do, to help choose a ``chat.format``.

1. Can conversations be extended turn by turn (`agent_r1.chat.template`), and in which formats?
2. Is the end of a turn a token that the model was trained to stop at: the tokenizer's own end of
   text, or named in ``generation_config.json``?
3. Does the template render tools, and calls in a known dialect?
4. What happens to the reasoning in earlier turns, and are its tags single tokens?
5. Does the prompt depend on the date?
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerFast

from agent_r1.chat.base import FORMATS, ChatParameters
from agent_r1.chat.native import NativeFormat
from agent_r1.chat.native_template import renders_tools
from agent_r1.chat.reasoning import END_OF_THINKING, THINKING
from agent_r1.chat.rendering import ChatTemplateError, Renderer, conversation, message
from agent_r1.chat.template import REASONED
from agent_r1.chat.tokenizer import load_tokenizer
from agent_r1.chat.turns import ChatFormat, TextFormat
from agent_r1.extras import named_object
from agent_r1.mdp import Action, ActionType, ToolCall
from agent_r1.parameters import ParameterError

_THOUGHT, _SAID = "One thought.", "Plain words."
_ACTS = {
    "tool": Action(ActionType.TOOL_CALL, "", tool_calls=(ToolCall("lookup", {}),)),
    "user": Action(ActionType.ANSWER, "", answer=_SAID),
}
"""Role of a message → the action that it follows."""


@dataclass(frozen=True, slots=True)
class Trait:
    """An answer to one of the questions."""

    question: str
    answer: str
    good: bool = True
    """False if something does not work, or not as expected."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """The findings about a model folder."""

    findings: list[Trait]
    refusals: dict[str, str | None]
    """Format → why it cannot be used; None if it can."""


def inspect_template(folder: Path | str, parameters: ChatParameters) -> Inspection:
    """Try every format on the tokenizer of a model folder.

    Args:
        folder: a Hugging Face folder.
        parameters: the group ``chat``; its ``format`` is replaced by each.

    Raises:
        ParameterError: the folder is missing, has no tokenizer with a chat template, or has a
            ``generation_config.json`` that cannot be read.
    """
    tokenizer = load_tokenizer(folder)
    try:
        renderer = Renderer(tokenizer, parameters.date, parameters.template_arguments)
    except ChatTemplateError:
        raise
    except ValueError as error:  # from the tokenizer: it is not safe with any format
        return Inspection([], dict.fromkeys(FORMATS, str(error)))
    formats, refusals = _try_formats(tokenizer, parameters)
    findings = [_turns(formats, refusals)]
    findings += [_stop(next(iter(formats.values())), tokenizer, Path(folder))] if formats else []
    findings += [_tools(renderer, formats), _reasoning(renderer, formats), _tags(renderer)]
    if renderer.dated:
        findings.append(Trait("date", f"in the prompt; fixed at chat.date, {parameters.date}"))
    return Inspection(findings, refusals)


def _try_formats(
    tokenizer: PreTrainedTokenizerFast, parameters: ChatParameters
) -> tuple[dict[str, ChatFormat], dict[str, str | None]]:
    formats: dict[str, ChatFormat] = {}
    refusals: dict[str, str | None] = {}
    for name in FORMATS:
        try:
            formats[name] = _make(tokenizer, parameters, format=name)
            refusals[name] = None
        except ValueError as error:
            refusals[name] = f"{error}{_remedy(name, parameters, tokenizer)}"
    return formats, refusals


def _make(
    tokenizer: PreTrainedTokenizerFast, parameters: ChatParameters, **changes: Any
) -> ChatFormat:
    changed = parameters.model_copy(update=changes)
    return named_object("chat format", changed.format, FORMATS, type)(changed, tokenizer)


def _remedy(name: str, parameters: ChatParameters, tokenizer: PreTrainedTokenizerFast) -> str:
    """A clause for a refusal, if the format works when reasoning is dropped, or kept."""
    other = "drop" if parameters.reasoning == "keep" else "keep"
    try:
        _make(tokenizer, parameters, format=name, reasoning=other)
    except ValueError:
        return ""
    return f"; it works with chat.reasoning: {other}"


def _turns(formats: dict[str, ChatFormat], refusals: dict[str, str | None]) -> Trait:
    question = "extended turn by turn"
    if not formats:
        return Trait(question, f"no: {refusals['hermes']}", good=False)
    texts = [format_ for format_ in formats.values() if isinstance(format_, TextFormat)]
    if not texts:
        return Trait(question, "with the template's own tool calls only")
    template = texts[0].template
    answer = f"yes; observations have the role '{template.observation_role}'"
    if template.always_reasons:
        return Trait(question, f"{answer}, if every turn has reasoning", good=False)
    return Trait(question, answer)


def _stop(format_: ChatFormat, tokenizer: PreTrainedTokenizerFast, folder: Path) -> Trait:
    stop = format_.stop_token_ids[0]
    trained = {tokenizer.eos_token_id} | _configured_ends(folder)
    name = tokenizer.convert_ids_to_tokens(stop)
    if stop in trained:
        return Trait("stop token", f"{name}, an end of text of this model")
    return Trait(
        "stop token",
        f"{name} is neither the tokenizer's eos_token nor in generation_config.json: a base model "
        "must learn it, and other servers will not stop there",
        good=False,
    )


def _configured_ends(folder: Path) -> set[int]:
    """``eos_token_id`` of ``generation_config.json``, one or several.

    Raises:
        ParameterError: the file cannot be read.
    """
    path = folder / "generation_config.json"
    if not path.is_file():
        return set()
    try:
        configuration = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ParameterError(f"'{path}' is not valid JSON ({error})") from None
    if not isinstance(configuration, dict):
        raise ParameterError(f"'{path}' is not a JSON object")
    ends = configuration.get("eos_token_id", [])
    return set(ends) if isinstance(ends, list) else {ends}


def _tools(renderer: Renderer, formats: dict[str, ChatFormat]) -> Trait:
    native = formats.get("native")
    if isinstance(native, NativeFormat):
        return Trait("tools rendered", f"yes; calls in the dialect '{native.dialect.name}'")
    try:
        rendered = renders_tools(renderer)
    except ChatTemplateError as error:
        return Trait("tools rendered", str(error), good=False)
    if rendered:
        return Trait("tools rendered", "yes, but no known dialect of calls", good=False)
    return Trait("tools rendered", "no: set chat.render_tools: true", good=False)


def _reasoning(renderer: Renderer, formats: dict[str, ChatFormat]) -> Trait:
    after = {role: _kept(renderer, role, formats.get("native")) for role in _ACTS}
    answer = "; ".join(f"{became} before a {role} message" for role, became in after.items())
    return Trait("reasoning of earlier turns", answer)


def _kept(renderer: Renderer, role: str, native: ChatFormat | None) -> str:
    turn, written = message("assistant", REASONED + _SAID), REASONED + _SAID
    if isinstance(native, NativeFormat) and native.dialect.name == "harmony":  # has channels
        turn = native.dialect.message(_ACTS[role], _THOUGHT)
        written = "".join(native.dialect.write(_ACTS[role], _THOUGHT))
    try:
        rendered = renderer.render([*conversation("", "question"), turn, message(role, "next")])
    except ChatTemplateError:
        return "cannot be rendered"
    if written in rendered:
        return "kept"
    return "rewritten" if _THOUGHT in rendered else "removed"


def _tags(renderer: Renderer) -> Trait:
    own = all(renderer.encoder.control(tag) is not None for tag in (THINKING, END_OF_THINKING))
    return Trait("<think> and </think>", "single tokens" if own else "ordinary text")
