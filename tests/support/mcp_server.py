"""A small MCP server: over stdio, or over streamable HTTP at the port that it is given."""

from __future__ import annotations

import os
import sys

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("small")


@server.tool()
def add(a: int, b: int = 1) -> str:
    """Add two numbers."""
    return str(a + b)


@server.tool()
def pid() -> str:
    """Which process is this?"""
    return str(os.getpid())


@server.tool()
def refuse(why: str) -> str:
    """Fail."""
    raise ToolError(why)


@server.tool()
def die() -> str:
    """End the server."""
    os._exit(1)


@server.tool()
async def hang() -> str:
    """Never answer."""
    await anyio.sleep_forever()
    return "?"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run()
