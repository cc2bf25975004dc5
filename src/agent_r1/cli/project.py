"""What the commands share: the project that they are about, the history of its experiments, their
options, and how they print."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from kedro.framework.startup import ProjectMetadata

if TYPE_CHECKING:
    from agent_r1.lineage import Experiment


def of_experiment(command: Callable[..., None]) -> Callable[..., None]:
    """``--env`` and ``--experiment``."""
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
    """
    from agent_r1.experiments.experiment import experiment_of
    from agent_r1.experiments.session import Session
    from agent_r1.lineage import LineageError
    from agent_r1.parameters import nearest

    runtime = {"experiment": name} if name else {}
    with Session(project, runtime, env) as session:
        experiment = experiment_of(session.catalog())
    if not experiment.exists:
        there = [other.name for other in experiment.others()]
        raise LineageError(
            f"experiment '{experiment.name}' has not run here.{nearest(experiment.name, there)}"
        )
    return experiment


def print_lines(lines: list[Any]) -> None:
    from rich.console import Console

    # A tree is cut at the console's width; a file or a pipe has none.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 240)
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)
