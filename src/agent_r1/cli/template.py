"""``kedro check-template``: what a chat template can do."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from agent_r1.cli.errors import user_errors
from agent_r1.cli.project import print_lines, project_root


@click.command("check-template")
@click.argument("folder", metavar="[MODEL_FOLDER]", required=False)
@click.option("--env", "-e", help="Kedro's configuration environment.")
def check_template(folder: str | None, env: str | None) -> None:
    """Say what the chat template of a model can do, and which chat formats work with it.

    MODEL_FOLDER has the tokenizer; by default it is model.path of conf/. Exit code 1 if the
    configured chat.format cannot be used.
    """
    folder = str(Path(folder).absolute()) if folder else None
    project = project_root()
    with user_errors():
        from agent_r1.chat import ChatParameters
        from agent_r1.chat.inspection import inspect_template
        from agent_r1.cli.lines import template_lines
        from agent_r1.experiments.experiment import parameters_of
        from agent_r1.experiments.session import Session

        with Session(project, {}, env) as session:
            groups = parameters_of(session.catalog())
        parameters = ChatParameters(**groups["chat"])
        result = inspect_template(folder or groups["model"]["path"], parameters)
        print_lines(template_lines(result, parameters.format))
    if result.refusals[parameters.format] is not None:
        sys.exit(1)
