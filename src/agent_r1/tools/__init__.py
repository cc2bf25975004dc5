"""Tools: plain Python functions that an agent may call, and the runtime that runs the calls.

1. `tool` turns a function or method into a `ToolSpec`: its JSON schema comes from the signature and
   the docstring, so there is one place to read and one to change.
2. `ToolRuntime` runs the calls of one action: together, each with a time limit and a number of
   attempts, results in call order.
3. A function runs in a worker thread, a coroutine on the event loop, an isolated tool in a worker
   process (`agent_r1.tools.processes`), a tool of an MCP server on that server
   (`agent_r1.tools.mcp`).
4. Every outcome is a recorded `ToolResult` with an observation that the agent can act on. A
   failing tool is data, not a crash.
"""

from agent_r1.tools.budget import ToolBudget
from agent_r1.tools.failures import BadArguments
from agent_r1.tools.parameters import BudgetParameters, ToolParameters
from agent_r1.tools.runtime import ToolRuntime
from agent_r1.tools.spec import ToolSpec, tool

__all__ = [
    "BadArguments",
    "BudgetParameters",
    "ToolBudget",
    "ToolParameters",
    "ToolRuntime",
    "ToolSpec",
    "tool",
]
