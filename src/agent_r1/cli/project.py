"""What the commands share: the project that they are about, the history of its experiments, their
options, and how they print."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from kedro.framework.startup import ProjectMetadata

from agent_r1.cli.errors import user_errors

if TYPE_CHECKING:
    from agent_r1.lineage import Experiment


def of_experiment(command: Callable[..., None]) -> Callable[..., None]:
    """``--env`` and ``--experiment``, which the command gets opened, in the project's root."""

    @wraps(command)
    def opened(experiment: str | None, env: str | None, **options: Any) -> None:
        project = project_root()
        with user_errors():
            command(open_experiment(project, experiment, env), **options)

    return experiment_options(opened)


def experiment_options(command: Callable[..., None]) -> Callable[..., None]:
    """``--env`` and ``--experiment``, as they are given."""
    command = click.option(
        "--experiment", metavar="NAME", help="The experiment; by default that of conf/."
    )(command)
    return click.option("--env", "-e", help="Kedro's configuration environment.")(command)


iteration_option = click.option(
    "--iteration", "-i", metavar="K", help="Its number, or 'base'; 0 is the warm start."
)


def project_root() -> Path:
    """The project's root, made the working directory: paths in conf/ are relative to it."""
    metadata = click.get_current_context().obj
    project = metadata.project_path if isinstance(metadata, ProjectMetadata) else Path.cwd()
    os.chdir(project)
    return project


def open_experiment(project: Path, name: str | None, env: str | None) -> Experiment:
    """An experiment that has run.

    Raises:
        LineageError: it never ran.
        ParameterError: its name cannot be the name of a folder.
    """
    from agent_r1.configuration.experiment_parameters import ExperimentParameters
    from agent_r1.experiments.experiment import experiment_of
    from agent_r1.experiments.session import Session
    from agent_r1.lineage import LineageError
    from agent_r1.parameters import nearest

    runtime = {"experiment": name} if name else {}
    ExperimentParameters.read(runtime)
    with Session(project, runtime, env, validates=False) as session:
        experiment = experiment_of(session.catalog())
    if not experiment.exists:
        there = [other.name for other in experiment.others()]
        raise LineageError(
            f"experiment '{experiment.name}' has not run here."
            f"{nearest(experiment.name, there)} Run it: kedro run --params "
            f"experiment={experiment.name}"
        )
    return experiment


def iteration_of(experiment: Experiment, iteration: str) -> str:
    """The full name of an iteration that the user named.

    Raises:
        LineageError: nothing of it is committed.
    """
    from agent_r1.lineage import LineageError
    from agent_r1.pipelines.namespaces import full_iteration

    name, there = full_iteration(iteration), experiment.manifests.iterations()
    if name not in there:
        run = f"kedro run --params experiment={experiment.name}"
        more = f",iterations={iteration}" if iteration.isdigit() else ""
        raise LineageError(
            f"experiment '{experiment.name}' has no iteration '{iteration}'. --iteration may be: "
            f"{', '.join(_short(each) for each in there)}. To make it: {run}{more}"
        )
    return name


def _short(iteration: str) -> str:
    """``3`` for ``iter_00003``."""
    number = iteration.removeprefix("iter_")
    return str(int(number)) if number.isdigit() else iteration


def print_lines(lines: list[Any]) -> None:
    from rich.console import Console

    # A tree is cut at the console's width; a file or a pipe has none.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 240)
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)
