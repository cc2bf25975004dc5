"""The project's own commands beside Kedro's.

``kedro run`` without a selection runs the whole experiment (`agent_r1.driver`); with one
(``--pipelines``, ``--nodes``, ``--tags``, …) it is Kedro's own. The others look at an experiment
that ran, or run a part of it again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from kedro.framework.cli.project import run as kedro_run
from kedro.framework.startup import ProjectMetadata

from agent_r1.user_errors import UserErrors

_HELP = """Run the whole experiment: prepare, SFT, iterations, evaluation, report.

An interrupted experiment is finished where it stopped; a finished one is left alone. Name it and
change its parameters with --params, such as --params experiment=NAME,seed=1,iterations=30.

With a selection (--pipelines, --nodes, --tags, ...) this is Kedro's own run: those nodes run, and
read the current committed versions of their inputs.
"""

_WHOLE = frozenset({"env", "conf_source", "params", "config", "allow_changes"})
"""Options that do not select a part of the experiment."""

_KEDROS = {option.name: option for option in kedro_run.params}


@click.group(name="kedro")
def cli() -> None:
    """The project's commands; Kedro merges them with its own."""


# ------------------------------------------------------------------------------------------- run


def _run(*, allow_changes: bool, **options: Any) -> None:
    project = _project()
    with UserErrors():
        if any(value for name, value in options.items() if name not in _WHOLE):
            if allow_changes:
                raise click.UsageError("--allow-changes is for the whole experiment")
            _run_selection(options)
        else:
            _run_experiment(project, options, allow_changes=allow_changes)


def _run_selection(options: dict[str, Any]) -> None:
    from kedro.framework.project import pipelines

    from agent_r1.parameters import ParameterError, nearest
    from agent_r1.progress import shown

    for name in options["pipelines"]:
        if name not in pipelines:
            raise ParameterError(f"there is no pipeline '{name}'.{nearest(name, pipelines)}")
    with shown():
        kedro_run.callback(**options)


def _run_experiment(project: Path, options: dict[str, Any], *, allow_changes: bool) -> None:
    from agent_r1.driver import run_experiment

    outcome = run_experiment(
        project,
        options["params"],
        options["env"],
        options["conf_source"],
        allow_changes=allow_changes,
    )
    if not outcome.ran:
        click.echo(f"Experiment '{outcome.experiment}' is finished; nothing to do.")
    if outcome.stopped_at is not None:
        click.echo(f"Stopped after iteration {outcome.stopped_at}: a stop condition was met.")
    click.echo(f"Report: {Path('data/08_reporting', outcome.experiment, 'report.html')}")


_ALLOW = click.Option(
    ["--allow-changes"],
    is_flag=True,
    help="Go on with other parameters than the experiment has: what is committed stays, what is "
    "still to be made has the new ones. Recorded as a branch.",
)
cli.add_command(click.Command("run", params=[*kedro_run.params, _ALLOW], callback=_run, help=_HELP))


# ---------------------------------------------------------------------------- options of the rest


def _of_experiment(command: Callable[..., None]) -> Callable[..., None]:
    """``--env`` and ``--experiment``."""
    command = click.option(
        "--experiment", metavar="NAME", help="The experiment; by default that of conf/."
    )(command)
    return click.option("--env", "-e", help="Kedro's configuration environment.")(command)


_ITERATION = click.option(
    "--iteration", "-i", metavar="K", help="Its number, or 'base'; 0 is the warm start."
)


# ----------------------------------------------------------------------------------------- rerun


@cli.command()
@click.argument("stage")
@_ITERATION
@_of_experiment
@click.option(
    "--downstream",
    type=click.Choice(["keep", "cascade", "fork"]),
    default="keep",
    show_default=True,
    help="What was made from the old result: stays; is made again; is made again in a new "
    "experiment that shares the rest.",
)
@click.option("--as", "fork", metavar="NAME", help="Name of the new experiment of a fork.")
def rerun(stage: str, fork: str | None, params: dict[str, Any], **options: Any) -> None:
    """Run one STAGE again, such as score_rewards, with the inputs that it had.

    The parameters are those that are recorded, with --params over them. A result that differs from
    the experiment's is kept beside it, unless --downstream says otherwise.
    """
    project = _project()
    if fork and options["downstream"] != "fork":
        raise click.UsageError("--as names a fork: add --downstream fork")
    named = params.pop("experiment", None)
    if named is not None and options["experiment"] not in (None, str(named)):
        raise click.UsageError("--experiment and --params name different experiments")
    with UserErrors():
        from agent_r1.reporting import rerun_lines
        from agent_r1.rerun import Request, Rerunner

        request = Request(stage, options["iteration"], options["downstream"], fork, params)
        experiment = options["experiment"] or (str(named) if named is not None else None)
        rerunner = Rerunner(project, experiment, options["env"])
        _print(rerun_lines(rerunner.rerun(request)))


rerun.params.append(_KEDROS["params"])


# ------------------------------------------------------------------------------- lineage, verify


@cli.command()
@click.argument("dataset")
@_ITERATION
@click.option("--version", metavar="V", help="By default the current one.")
@click.option("--depth", type=click.IntRange(min=0), help="Node runs to go back; default: all.")
@_of_experiment
def lineage(
    dataset: str,
    iteration: str | None,
    version: str | None,
    depth: int | None,
    experiment: str | None,
    env: str | None,
) -> None:
    """Show the tree of what made DATASET, down to the raw data.

    DATASET is a name such as rewards (with --iteration), tasks, or iter_00003.rewards, or the
    beginning of a sha256, such as a policy_version in a table.
    """
    project = _project()
    with UserErrors():
        from agent_r1.reporting import lineage_tree, wanted

        history = _history(project, experiment, env)
        name, version = wanted(history.store, dataset, iteration, version)
        _print([lineage_tree(history.store, name, version, depth)])


@cli.command()
@_of_experiment
def verify(experiment: str | None, env: str | None) -> None:
    """Hash everything again, and compare it with what the manifests say.

    Exit code 1, and a line for each difference, if anything was changed, moved or deleted.
    """
    project = _project()
    with UserErrors():
        from agent_r1.lineage.verify import verify as check
        from agent_r1.progress import bar
        from agent_r1.reporting import verification_lines

        history = _history(project, experiment, env)
        with bar("verify") as on_progress:
            result = check(project, history.store, history.book, on_progress)
        _print(verification_lines(history.filepath.parent.name, result))
    if result.findings:
        sys.exit(1)


# ---------------------------------------------------------------------------------------- replay


@cli.command()
@click.option("--iteration", "-i", metavar="K", required=True, help="Its number, or 'base'.")
@click.option(
    "--stage",
    type=click.Choice(["generate_rollouts", "validate_policy", "evaluate_policy"]),
    default="generate_rollouts",
    show_default=True,
    help="Whose trajectories.",
)
@click.option(
    "--show", type=click.IntRange(min=1), default=20, show_default=True, help="Differences at most."
)
@_of_experiment
def replay(iteration: str, stage: str, show: int, experiment: str | None, env: str | None) -> None:
    """Execute the recorded actions again, and compare observations and rewards.

    Exit code 1, and a line for each difference, if anything else happens than is recorded.
    """
    project = _project()
    with UserErrors():
        from agent_r1.pipelines.namespaces import full_iteration
        from agent_r1.progress import bar
        from agent_r1.replay import replay as play
        from agent_r1.reporting import replay_lines

        history = _history(project, experiment, env)
        with bar("replay") as on_progress:
            result = play(
                project,
                history.store,
                full_iteration(iteration),
                stage,
                lambda done, total, _tokens: on_progress(done, total),
            )
        _print(replay_lines(result, show))
    if result.differences:
        sys.exit(1)


# -------------------------------------------------------------------------------- check-template


@cli.command("check-template")
@click.argument("folder", metavar="[MODEL_FOLDER]", required=False)
@click.option("--env", "-e", help="Kedro's configuration environment.")
def check_template(folder: str | None, env: str | None) -> None:
    """Say what the chat template of a model can do, and which chat formats work with it.

    MODEL_FOLDER has the tokenizer; by default it is model.path of conf/. Exit code 1 if the
    configured chat.format cannot be used.
    """
    folder = str(Path(folder).absolute()) if folder else None
    project = _project()
    with UserErrors():
        from agent_r1.chat import ChatParameters
        from agent_r1.chat.inspection import inspect_template
        from agent_r1.experiment import resolved_parameters
        from agent_r1.kedro_session import Session
        from agent_r1.reporting import template_lines

        with Session(project, {}, env) as session:
            groups = resolved_parameters(session.catalog()).groups
        parameters = ChatParameters.read(groups["chat"], "chat")
        result = inspect_template(folder or groups["model"]["path"], parameters)
        _print(template_lines(result, parameters.format))
    if result.refusals[parameters.format] is not None:
        sys.exit(1)


# ---------------------------------------------------------------------------------------- shared


def _project() -> Path:
    """The project's root, made the working directory: paths in conf/ are relative to it."""
    metadata = click.get_current_context().obj
    project = metadata.project_path if isinstance(metadata, ProjectMetadata) else Path.cwd()
    os.chdir(project)
    return project


def _history(project: Path, experiment: str | None, env: str | None) -> Any:
    """The catalog's entry that knows the manifests.

    Raises:
        LineageError: the experiment never ran.
    """
    from agent_r1.experiment import history_of
    from agent_r1.kedro_session import Session
    from agent_r1.lineage import LineageError
    from agent_r1.parameters import nearest

    runtime = {"experiment": experiment} if experiment else {}
    with Session(project, runtime, env) as session:
        history = history_of(session.catalog())
    folder = history.filepath.parent
    if not history.filepath.is_dir():
        there = [each.parent.name for each in folder.parent.glob("*/manifests")]
        raise LineageError(
            f"experiment '{folder.name}' has not run here.{nearest(folder.name, there)}"
        )
    return history


def _print(lines: list[Any]) -> None:
    from rich.console import Console

    # A tree is cut at the console's width; a file or a pipe has none.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 240)
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)
