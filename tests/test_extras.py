"""Errors for packages that are not installed and objects that do not exist say what to do."""

from __future__ import annotations

import sys

import pytest

from agent_r1.advantages.registry import ESTIMATORS, estimator
from agent_r1.chat import ChatParameters
from agent_r1.environments import environment_class
from agent_r1.extras import MissingExtraError, extra_file, extra_package, named_object
from agent_r1.losses.registry import OBJECTIVES, objective
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


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Writes a user's module, which is forgotten in the end. Gives its file."""

    def write(text):
        (tmp_path / "own_things.py").write_text(text)
        return tmp_path / "own_things.py"

    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_things", raising=False)
    yield write
    sys.modules.pop("own_things", None)


@pytest.mark.parametrize("path", ["own_things:Outer.NAME", "own_things:NAME", "own_things.NAME"])
def test_an_object_by_its_import_path(module, path):
    module("NAME = 7\nclass Outer:\n    NAME = 7\n")
    assert named_object("number", path, {"six": 6}, int) == 7


@pytest.mark.parametrize("known", [{"six": 6}, {"six": "own_things:SIX"}])
def test_an_object_by_its_name(module, known):
    module("SIX = 6\n")
    assert named_object("number", "six", known, int) == 6


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x = 1\ndef f(:\n", "invalid syntax ({file}, line 2)"),
        ("import no_such_module\n", "No module named 'no_such_module' ({file}, line 1)"),
        ("from agent_r1.mdp import Nothing\n", "({file}, line 1)"),
        ("\n\nNAME = nothing\n", "NameError: name 'nothing' is not defined ({file}, line 3)"),
        ("OTHER = 1\n", "AttributeError: module 'own_things' has no attribute 'NAME'"),
    ],
)
def test_a_module_that_cannot_be_imported_is_one_message_with_its_line(module, text, reason):
    file = module(text)
    with pytest.raises(ParameterError) as caught:
        named_object("number", "own_things:NAME", {}, int)
    message = str(caught.value)
    assert message.startswith("number 'own_things:NAME' cannot be imported: ")
    assert message.endswith(reason.format(file=file))
    assert "\n" not in message


def test_an_object_of_another_class(module):
    module("NAME = 'seven'\n")
    with pytest.raises(ParameterError, match="number 'own_things:NAME' is not a int: 'seven'"):
        named_object("number", "own_things:NAME", {}, int)


def test_an_unknown_name():
    expected = (
        r"unknown number 'sixx'. Did you mean 'six'\? Known: six. Name an object of your own "
        "by its import path: 'package.module:NAME'."
    )
    with pytest.raises(ParameterError, match=expected):
        named_object("number", "sixx", {"six": 6}, int)


def test_estimators_objectives_and_formats_of_another_package(module):
    module(
        "from agent_r1.advantages.registry import ESTIMATORS\n"
        "from agent_r1.losses.registry import OBJECTIVES\n"
        "from agent_r1.chat.hermes import HermesFormat\n"
        "MEAN, CLIP = ESTIMATORS['grpo'], OBJECTIVES['ppo_clip']\n"
    )
    assert estimator("own_things:MEAN") is ESTIMATORS["grpo"]
    assert objective("own_things:CLIP") is OBJECTIVES["ppo_clip"]
    assert ChatParameters(format="own_things:HermesFormat").format == "own_things:HermesFormat"
