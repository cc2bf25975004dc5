"""An MCP server over stdio, without the SDK: what it lists and answers is odd in places.

Started with ``broken``, it also lists a tool with an invalid JSON schema.
"""

from __future__ import annotations

import json
import os
import sys


def schema(**argument: object) -> dict:
    return {"type": "object", "properties": {"a": argument}}


TOOLS = {
    "pattern": {"inputSchema": schema(type="string", pattern=r"^\p{Lu}$")},
    "nowhere": {"inputSchema": schema(**{"$ref": "#/$defs/none"})},
    "promise": {
        "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}},
    },
    "page": {"inputSchema": {"type": "object"}},
    "pid": {"inputSchema": {"type": "object"}},
}
if "broken" in sys.argv:
    TOOLS["broken"] = {"inputSchema": schema(type="objekt")}


def text(said: str) -> dict:
    return {"type": "text", "text": said}


CONTENTS = {
    "page": [
        {"type": "resource", "resource": {"uri": "file:///a", "text": "the page"}},
        {"type": "resource", "resource": {"uri": "file:///b", "blob": "AA=="}},
        {"type": "resource_link", "uri": "file:///c", "name": "c"},
        {"type": "image", "data": "AA==", "mimeType": "image/png"},
    ],
    "pid": [text(str(os.getpid()))],
}


def answer(method: str, parameters: dict) -> dict | None:
    if method == "initialize":
        return {
            "protocolVersion": parameters["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "odd", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [{"name": name, **listed} for name, listed in TOOLS.items()]}
    if method == "tools/call":
        name = parameters["name"]
        broken_promise = {"structuredContent": {"n": "no number"}} if name == "promise" else {}
        return {"content": CONTENTS.get(name, [text("called")]), **broken_promise}
    return None


def reply(request: dict) -> dict:
    result = answer(request["method"], request.get("params", {}))
    said = {"result": result} if result else {"error": {"code": -32601, "message": "unknown"}}
    return {"jsonrpc": "2.0", "id": request["id"], **said}


if __name__ == "__main__":
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            print(json.dumps(reply(request)), flush=True)
