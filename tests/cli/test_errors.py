"""Errors that the user can mend are one message."""

from __future__ import annotations

import click
import pytest

from agent_r1.cli.errors import UserErrors
from agent_r1.rollout import BrokenEnvironmentError
from agent_r1.tasks.demonstrations import DemonstrationError
from agent_r1.tasks.files import TaskFileError
from agent_r1.tasks.knowledge_base import KnowledgeBaseError


@pytest.mark.parametrize(
    "error", [TaskFileError, KnowledgeBaseError, DemonstrationError, BrokenEnvironmentError]
)
def test_a_wrong_file_or_a_broken_environment_is_one_message(error):
    with pytest.raises(click.ClickException, match="row 7"), UserErrors():
        raise error("hotpot.json: row 7")


def test_a_fault_of_the_program_stays_one():
    with pytest.raises(ZeroDivisionError), UserErrors():
        _ = 1 / 0
