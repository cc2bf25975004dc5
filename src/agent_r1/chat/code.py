"""Code blocks: the agent acts by writing Python, and answers in ``<answer>…</answer>``.

X. Wang et al., "Executable Code Actions Elicit Better LLM Agents" (CodeAct, 2024),
https://arxiv.org/abs/2402.01030.

1. A turn holds one block, from a line `` ```python `` (or ``py``, or nothing) to a line `` ``` ``.
   Blocks in other languages are ordinary text.
2. For environments that execute code themselves, the block is the action's ``code``. For those that
   offer a tool, it is also one call of the tool whose only argument is ``code`` (of ``python`` if
   there is no such tool).
3. ``<answer>…</answer>`` outside of a block is the answer. So is a block that contains only
   ``final_answer(…)`` with a literal. A value that is not computed yet must be run and read first.

A turn is malformed if it has neither a block nor an answer, more than one block, a block that is
not closed, or an answer beside a block (it was written before the output was known).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from agent_r1.chat.call_json import Malformed
from agent_r1.chat.hermes import ANSWER, END_ANSWER, read_answer
from agent_r1.chat.reasoning import after_reasoning
from agent_r1.chat.turns import TextFormat
from agent_r1.mdp import Action, ActionType, ToolCall
from agent_r1.tools import ToolSpec
from agent_r1.tools.unicode import valid_unicode

FENCE = "```"
_OPENED = ("```python", "```py", FENCE)
ARGUMENT = "code"
TOOL = "python"


class CodeFormat(TextFormat):
    """See `agent_r1.chat.turns.ChatFormat`."""

    name = "code"
    markup = (ANSWER, END_ANSWER)
    instructions = """You act by writing Python. In each turn, write one block of code:
```python
print(6 * 7)
```
It is executed, and you are told what it printed. What the environment offers:
{tools}
When you know the answer, write no code: <answer>42</answer>"""

    def read(self, text: str, tools: Sequence[ToolSpec] = ()) -> Action:
        """See `parse_turn`."""
        return parse_turn(text, code_tool(tools))

    def write(self, action: Action, thought: str = "", tools: Sequence[ToolSpec] = ()) -> list[str]:
        """The thought, then the block or the answer."""
        said = thought.rstrip("\n") + "\n" if thought.strip() else ""
        written = write_turn(action)
        return self._marked(said + written) if action.answer is not None else [said + written]


def code_tool(tools: Sequence[ToolSpec]) -> str:
    """The name of the tool whose only argument is the code."""
    takers = (t.name for t in tools if list(t.parameters.get("properties", {})) == [ARGUMENT])
    return next(takers, TOOL)


def write_turn(action: Action) -> str:
    """The text of a turn from its code or its answer."""
    if action.type is ActionType.ANSWER:
        return f"{ANSWER}{action.answer}{END_ANSWER}"
    codes = [call.arguments.get(ARGUMENT) for call in action.tool_calls] or [action.code]
    return "\n".join(f"```python\n{code}\n{FENCE}" for code in codes if code is not None)


def parse_turn(text: str, tool: str = TOOL) -> Action:
    """Read a whole turn (without its stop token); never fails. The code is a call of ``tool``."""
    try:
        blocks, rest = _blocks(after_reasoning(text))
        if len(blocks) > 1:
            raise Malformed("more than one block of code: write one, and read its output first")
        answer = read_answer(rest)
        if blocks and answer is not None:
            raise Malformed("code and an answer in one turn")
        if not blocks and answer is None:
            raise Malformed("no block of code (```python) and no answer (<answer>)")
    except Malformed as error:
        return Action(ActionType.MALFORMED, text, error=f"could not parse: {error}")
    code = blocks[0] if blocks else None
    if code is not None and (answer := final_answer(code)) is None:
        call = ToolCall(tool, {ARGUMENT: code})
        return Action(ActionType.TOOL_CALL, text, tool_calls=(call,), code=code)
    return Action(ActionType.ANSWER, text, answer=answer)


def _blocks(text: str) -> tuple[list[str], str]:
    """The blocks of Python, and the text outside all blocks."""
    blocks: list[str] = []
    rest: list[str] = []
    inside: list[str] | None = None
    python = False
    for line in text.split("\n"):
        if inside is None and line.lstrip().startswith(FENCE):
            inside, python = [], line.strip() in _OPENED
        elif inside is None:
            rest.append(line)
        elif line.rstrip() == FENCE:
            blocks += ["\n".join(inside)] if python else []
            inside = None
        else:
            inside.append(line)
    if inside is not None:
        raise Malformed("the block of code is not closed with ```")
    return blocks, "\n".join(rest)


def final_answer(code: str) -> str | None:
    """The literal in ``final_answer(…)``, if the code is nothing else; otherwise None."""
    try:
        [statement] = ast.parse(code).body
        match statement:
            case ast.Expr(ast.Call(ast.Name("final_answer"), [value], [])):
                answer = str(ast.literal_eval(value)).strip()
                return answer if valid_unicode(answer) == answer else None
    except (SyntaxError, ValueError, RecursionError, MemoryError, TypeError):
        return None  # still code: running it says what is wrong
    return None
