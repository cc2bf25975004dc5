"""An error that the user can fix is one message; a fault of the program keeps its traceback."""

from __future__ import annotations

import errno

import click
import pytest
from kedro.config import MissingConfigException
from kedro.io.core import DatasetError

from agent_r1 import errors
from agent_r1.cli.errors import user_errors
from agent_r1.engines.base import UnsupportedModelError
from agent_r1.errors import UserError
from agent_r1.extras import MissingExtraError
from agent_r1.lineage.lock import LockedError
from agent_r1.schemas import SchemaError
from agent_r1.tasks.files import TaskFileError
from agent_r1.tools.sandbox import SandboxUnavailable
from agent_r1.training.critic import CriticError


@pytest.mark.parametrize(
    "error",
    [
        CriticError,
        DatasetError,
        LockedError,
        MissingExtraError,
        SandboxUnavailable,
        SchemaError,
        TaskFileError,
        UnsupportedModelError,
        UserError,
    ],
)
def test_an_error_that_the_user_can_fix_is_one_message(error):
    with pytest.raises(click.ClickException) as caught, user_errors():
        raise error("hotpot.json: row 7")
    assert caught.value.message == "hotpot.json: row 7"


def test_a_missing_folder_of_conf_says_what_names_it():
    with pytest.raises(click.ClickException, match=r"conf/nope\. --env names"), user_errors():
        raise MissingConfigException("there is no conf/nope")


def test_of_an_error_that_kedro_wrapped_the_users_message_is_printed():
    with pytest.raises(click.ClickException) as caught, user_errors():
        raise DatasetError("Failed while saving") from SchemaError("table 'rewards': row 7")
    assert caught.value.message == "table 'rewards': row 7"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_disk_that_accepts_no_file_is_one_message(number):
    with pytest.raises(click.ClickException, match="data/05_model_input"), user_errors():
        raise OSError(number, "cannot write", "data/05_model_input/tasks")


def test_a_fault_of_the_program_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError), user_errors():
        _ = 1 / 0
    with pytest.raises(DatasetError), user_errors():
        raise DatasetError("Failed while loading") from KeyError("x")


def test_a_long_message_keeps_its_beginning_and_its_remedy():
    with pytest.raises(click.ClickException) as caught, user_errors():
        raise UserError("\n".join(["other parameters:", *map(str, range(20)), "the remedy"]))
    lines = caught.value.message.splitlines()
    assert lines[:3] == ["other parameters:", "0", "1"]
    assert lines[-2:] == ["  … and 12 more lines", "the remedy"]
    assert len(lines) == 11


def test_the_node_that_failed_follows_the_message():
    error = SchemaError("row 7")
    error.add_note("Node: iter_00001.update_policy")
    with pytest.raises(click.ClickException) as caught, user_errors():
        raise error
    assert caught.value.message == "row 7\nNode: iter_00001.update_policy"


def test_a_syntax_error_in_an_own_module_names_its_line():
    with pytest.raises(click.ClickException, match=r"games\.py, line 3: not valid"), user_errors():
        raise SyntaxError("invalid syntax", ("games.py", 3, 1, "def", 3, 4))


def test_a_syntax_error_in_this_package_is_a_fault_of_the_program():
    with pytest.raises(SyntaxError), user_errors():
        raise SyntaxError("invalid syntax", (errors.__file__, 3, 1, "def", 3, 4))
