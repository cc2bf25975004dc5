"""The error for a package that is not installed says how to install it."""

from __future__ import annotations

import sys

import pytest

from agent_r1.environments import environment_class
from agent_r1.extras import MissingExtraError, extra_file, extra_package
from agent_r1.parameters import ParameterError
from agent_r1.tools.mcp import connect
from agent_r1.tools.parameters import McpParameters


def test_a_package():
    with pytest.raises(MissingExtraError, match=r"'no_such_package'.*pip install -e '\.\[own\]'"):
        extra_package("no_such_package.part", "own")


def test_a_file_of_a_package():
    with pytest.raises(MissingExtraError, match=r"'no_such_package'.*pip install -e '\.\[own\]'"):
        extra_file("no_such_package", "data.json", "own")


def test_gymnasium(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    monkeypatch.delitem(sys.modules, "agent_r1.environments.gymnasium", raising=False)
    with pytest.raises(ParameterError, match=r"pip install -e '\.\[gymnasium\]'"):
        environment_class("gymnasium")


def test_mcp(monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp", None)
    at = McpParameters.read({"url": "http://localhost"}, "environment.options.mcp.missing")
    with pytest.raises(MissingExtraError, match=r"pip install -e '\.\[mcp\]'"):
        connect("missing", at)
