"""The project's own commands beside Kedro's.

``kedro run`` without a selection runs the whole experiment (`agent_r1.driver`); with one
(``--pipelines``, ``--nodes``, ``--tags``, …) it is Kedro's own.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click
from kedro.framework.cli.project import run as kedro_run
from kedro.framework.startup import ProjectMetadata

_HELP = """Run the whole experiment: prepare, SFT, iterations, evaluation, report.

An interrupted experiment is finished where it stopped; a finished one is left alone. Name it and
change its parameters with --params, such as --params experiment=NAME,seed=1,iterations=20.

With a selection (--pipelines, --nodes, --tags, ...) this is Kedro's own run: those nodes run, and
read the newest committed versions of their inputs.
"""

_WHOLE = frozenset({"env", "conf_source", "params", "config"})
"""Options that do not select a part of the experiment."""


@click.group(name="kedro")
def cli() -> None:
    """The project's commands; Kedro merges them with its own."""


def _run(**options: Any) -> None:
    metadata = click.get_current_context().obj
    project = metadata.project_path if isinstance(metadata, ProjectMetadata) else Path.cwd()
    os.chdir(project)  # paths in conf/ are relative to the project
    try:
        if any(value for name, value in options.items() if name not in _WHOLE):
            _run_selection(options)
        else:
            _run_experiment(project, options)
    except _user_errors() as error:
        raise click.ClickException(str(error)) from error


def _user_errors() -> tuple[type[Exception], ...]:
    """Errors that the user can mend: their message is all that they need."""
    from kedro.config import MissingConfigException

    from agent_r1.lineage import LineageError
    from agent_r1.parameters import ParameterError

    return (LineageError, MissingConfigException, ParameterError)


def _run_selection(options: dict[str, Any]) -> None:
    from kedro.framework.project import pipelines

    from agent_r1.parameters import ParameterError, nearest
    from agent_r1.progress import shown

    for name in options["pipelines"]:
        if name not in pipelines:
            raise ParameterError(f"there is no pipeline '{name}'.{nearest(name, pipelines)}")
    with shown():
        kedro_run.callback(**options)


def _run_experiment(project: Path, options: dict[str, Any]) -> None:
    from agent_r1.driver import run_experiment

    outcome = run_experiment(project, options["params"], options["env"], options["conf_source"])
    report = Path("data/08_reporting", outcome.experiment, "report.html")
    if not outcome.ran:
        click.echo(f"Experiment '{outcome.experiment}' is finished; nothing to do.")
    if outcome.stopped_at is not None:
        click.echo(f"Stopped after iteration {outcome.stopped_at}: a stop condition was met.")
    click.echo(f"Report: {report}")


cli.add_command(click.Command("run", params=kedro_run.params, callback=_run, help=_HELP))
