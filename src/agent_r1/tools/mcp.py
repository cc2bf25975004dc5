"""The tools of MCP servers (Model Context Protocol), over stdio or streamable HTTP.

1. `connect` opens a server's session once; all trajectories, iterations and event loops of the
   program share it. Sessions live on one event loop, in its own thread.
2. The tools are those that the server lists, with its names, descriptions and schemas. Arguments
   are validated here, so that a mistake does not cost a call.
3. Time limit, attempts and concurrency of a call are those of any tool. If the server reports an
   error or cannot be reached, the call fails. The next attempt reopens a lost session.
4. At the end of the program, or by `close_servers`, sessions are closed and stdio servers stopped.

Needs the extra ``mcp`` (the package ``mcp``).
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import json
import logging
import os
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel

from agent_r1.extras import extra_package
from agent_r1.parameters import ParameterError
from agent_r1.tools.failures import BadArguments, RemoteFailure, reason, short
from agent_r1.tools.parameters import McpParameters
from agent_r1.tools.spec import ToolSpec

logger = logging.getLogger(__name__)

T = TypeVar("T")

CLOSE_S = 10.0
"""Seconds that a server may take to end."""

_servers: dict[tuple[str, str], McpServer] = {}
_connecting = threading.Lock()


def connect(name: str, parameters: McpParameters) -> McpServer:
    """A server with an open session; the same name and parameters give the same object.

    Raises:
        MissingExtraError: the package ``mcp`` is not installed.
        ParameterError: the server did not start, lacks a tool that ``parameters`` name, or has
            one with an invalid schema.
    """
    key = (name, parameters.model_dump_json())
    with _connecting:
        if key not in _servers:
            server = McpServer(name, parameters)
            server.open()
            _servers[key] = server
        return _servers[key]


def close_servers() -> None:
    """Close all sessions; `connect` opens new ones."""
    with _connecting:
        servers = list(_servers.values())
        _servers.clear()
    for server in servers:
        server.close()


atexit.register(close_servers)


@dataclass(frozen=True, eq=False)
class McpTool(ToolSpec):
    """A tool whose schema is the server's own."""

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """See `ToolSpec.validate`."""
        import jsonschema  # comes with the extra

        validator = jsonschema.validators.validator_for(self.parameters)(self.parameters)
        try:
            error = jsonschema.exceptions.best_match(validator.iter_errors(dict(arguments)))
        except Exception:  # such as a dangling reference, or a pattern of another dialect
            logger.debug("the schema of '%s' cannot be followed", self.name, exc_info=True)
            return dict(arguments)  # the server validates them, too
        if error is not None:
            path = ".".join(map(str, error.absolute_path))
            raise BadArguments(f"argument '{path}': {error.message}" if path else error.message)
        return dict(arguments)


class McpServer:
    """A server and its session."""

    def __init__(self, name: str, parameters: McpParameters):
        self._name = name
        self._parameters = parameters
        self._session: asyncio.Future[Any] | None = None
        self._closing = asyncio.Event()
        self._served: asyncio.Task[None] | None = None
        self.tools: tuple[ToolSpec, ...] = ()
        """The server's tools; filled by `open`."""

    def open(self) -> None:
        """Open the session and list the tools.

        Raises:
            MissingExtraError, ParameterError: see `connect`.
        """
        extra_package("mcp", "mcp")
        try:
            client = _submit(self._client()).result()
            listed = _submit(_list_tools(client)).result(self._parameters.start_timeout_s)
        except (Exception, SystemExit) as error:
            self.close()
            raise ParameterError(
                f"the MCP server '{self._name}' ({self._parameters.address}) did not start: "
                f"{reason(_innermost(error))}. Check it in environment.options.mcp.{self._name}"
            ) from error
        known = {tool.name: tool for tool in listed}
        wanted = self._parameters.tools
        missing = sorted(set(wanted or ()) - set(known))
        if missing:
            self.close()
            raise ParameterError(
                f"the MCP server '{self._name}' has no tool '{missing[0]}'. "
                f"Known: {', '.join(sorted(known))}."
            )
        chosen = [known[name] for name in (known if wanted is None else wanted)]
        for tool in chosen:
            self._check_schema(tool)
        self.tools = tuple(self._spec(tool) for tool in chosen)

    def close(self) -> None:
        """End the session; a stdio server ends with it."""
        with contextlib.suppress(Exception):
            _submit(self._end()).result(CLOSE_S)

    def _check_schema(self, listed: Any) -> None:
        import jsonschema

        try:
            # Formats are not checked: a pattern of another dialect is the server's own business.
            jsonschema.validators.validator_for(listed.input_schema).check_schema(
                listed.input_schema, format_checker=jsonschema.FormatChecker(formats=())
            )
        except jsonschema.SchemaError as error:
            self.close()
            raise ParameterError(
                f"the MCP server '{self._name}' has a tool '{listed.name}' with an invalid JSON "
                f"schema: {short(error.message)}. List the tools you want in its `tools`, without "
                "this one."
            ) from None

    def _spec(self, listed: Any) -> ToolSpec:
        async def call(**arguments: Any) -> str:
            # On the caller's loop; cancelling it there cancels the request here.
            return await asyncio.wrap_future(_submit(self._request(listed.name, arguments)))

        return McpTool(
            name=listed.name,
            description=listed.description or "",
            parameters=listed.input_schema,
            function=call,
            arguments=BaseModel,  # unused: `McpTool` validates with the server's schema
            is_method=False,
        )

    async def _request(self, name: str, arguments: dict[str, Any]) -> str:
        session = None
        try:
            client = await self._client()
            session = self._session
            result = await client.call_tool(name, arguments)
        except Exception as error:
            # Another call may have opened a new session in the meantime.
            if session is self._session and self._lost(error):
                await self._end()
            raise RemoteFailure(f"the MCP server failed: {reason(_innermost(error))}") from error
        text = _text(result)
        if result.is_error:
            raise RemoteFailure(text)
        return text

    def _lost(self, error: Exception) -> bool:
        """Whether the session can no longer be used."""
        from mcp import MCPError
        from mcp.types import CONNECTION_CLOSED, INVALID_REQUEST

        if not isinstance(error, MCPError):
            # The client raises these for a result that does not fit the tool's own schema.
            return not isinstance(error, RuntimeError | ValueError)
        # A restarted server does not know the session; servers report that in different ways.
        unknown = error.code == INVALID_REQUEST or "session" in error.message.lower()
        return error.code == CONNECTION_CLOSED or (bool(self._parameters.url) and unknown)

    async def _client(self) -> Any:
        """The open client. This and everything below runs on the servers' own loop."""
        if self._session is None or self._served is None or self._served.done():
            self._session = asyncio.get_running_loop().create_future()
            self._closing = asyncio.Event()
            self._served = asyncio.create_task(self._serve(self._session, self._closing))
        waiting = asyncio.shield(self._session)
        return await asyncio.wait_for(waiting, self._parameters.start_timeout_s)

    async def _serve(self, session: asyncio.Future[Any], closing: asyncio.Event) -> None:
        """Hold the session open. Its task groups require that one task enters and leaves it."""
        from mcp import Client

        try:
            async with Client(self._target()) as client:
                session.set_result(client)
                await closing.wait()
        except BaseException as error:
            if not session.done():
                session.set_exception(error)
                session.exception()  # marks it as retrieved, even if nobody waits
            if isinstance(error, asyncio.CancelledError):
                raise

    async def _end(self) -> None:
        served, self._served, self._session = self._served, None, None
        self._closing.set()
        if served is not None:
            done, _ = await asyncio.wait({served}, timeout=CLOSE_S / 2)
            if not done:
                served.cancel()

    def _target(self) -> Any:
        from mcp import StdioServerParameters

        if self._parameters.url:
            return self._parameters.url
        command, *arguments = self._parameters.command
        passed = {name: os.environ[name] for name in self._parameters.pass_environment}
        return StdioServerParameters(command=command, args=arguments, env=passed)


async def _list_tools(client: Any) -> list[Any]:
    page = await client.list_tools()
    tools = list(page.tools)
    while page.next_cursor:
        page = await client.list_tools(cursor=page.next_cursor)
        tools += page.tools
    return tools


def _text(result: Any) -> str:
    """A result as text; a part that is not text becomes a note."""
    parts = [_part(part) for part in result.content]
    if not parts and result.structured_content is not None:
        return json.dumps(result.structured_content, ensure_ascii=False)
    return "\n".join(parts)


def _part(part: Any) -> str:
    if part.type == "resource":
        part = part.resource
        return getattr(part, "text", f"[resource {part.uri}]")
    if part.type == "resource_link":
        return f"[resource_link {part.uri}]"
    return part.text if part.type == "text" else f"[{part.type}]"


def _innermost(error: BaseException) -> BaseException:
    """The first exception of a group: the actual cause."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


_loop: asyncio.AbstractEventLoop | None = None
_starting = threading.Lock()


def _submit(work: Coroutine[Any, Any, T]) -> Future[T]:
    """Run on the servers' loop; the first call starts it."""
    global _loop
    with _starting:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="agent-r1-mcp", daemon=True).start()
    return asyncio.run_coroutine_threadsafe(work, _loop)
