"""Commands about an experiment that ran.

A stage of it is run again, it is said what made a dataset, or checked that nothing was changed, or
its trajectories are played again.
"""

from __future__ import annotations

import sys
from typing import Any

import click

from agent_r1.cli.errors import user_errors
from agent_r1.cli.project import (
    iteration_of,
    iteration_option,
    of_experiment,
    open_experiment,
    print_lines,
    project_root,
)
from agent_r1.kedro_adapter import params_option


@click.command()
@click.argument("stage")
@iteration_option
@of_experiment
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
    project = project_root()
    if fork and options["downstream"] != "fork":
        raise click.UsageError("--as names a fork: add --downstream fork")
    named = params.pop("experiment", None)
    if named is not None and options["experiment"] not in (None, str(named)):
        raise click.UsageError("--experiment and --params name different experiments")
    with user_errors():
        from agent_r1.cli.lines import rerun_lines
        from agent_r1.experiments.rerun import Request, Rerunner

        request = Request(stage, options["iteration"], options["downstream"], fork, params)
        experiment = options["experiment"] or (str(named) if named is not None else None)
        opened = open_experiment(project, experiment, options["env"])
        if request.iteration is not None:
            iteration_of(opened, request.iteration)
        rerunner = Rerunner(project, experiment, options["env"])
        print_lines(rerun_lines(rerunner.rerun(request)))


rerun.params.append(params_option())


@click.command()
@click.argument("dataset")
@iteration_option
@click.option("--version", metavar="V", help="By default the current one.")
@click.option("--depth", type=click.IntRange(min=0), help="Node runs to go back; default: all.")
@of_experiment
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
    project = project_root()
    with user_errors():
        from agent_r1.cli.lines import lineage_tree, wanted

        opened = open_experiment(project, experiment, env)
        if iteration is not None:
            iteration = iteration_of(opened, iteration)
        name, version = wanted(opened.manifests, dataset, iteration, version)
        print_lines([lineage_tree(opened.manifests, name, version, depth)])


@click.command()
@of_experiment
def verify(experiment: str | None, env: str | None) -> None:
    """Hash everything again, and compare it with what the manifests say.

    Exit code 1, and a line for each difference, if anything was changed, moved or deleted.
    """
    project = project_root()
    with user_errors():
        from agent_r1.cli.lines import verification_lines
        from agent_r1.display.progress import bar
        from agent_r1.lineage.verify import verify as check

        opened = open_experiment(project, experiment, env)
        with bar("verify") as on_progress:
            result = check(opened, on_progress)
        print_lines(verification_lines(opened.name, result))
    if result.findings:
        sys.exit(1)


@click.command()
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
@of_experiment
def replay(iteration: str, stage: str, show: int, experiment: str | None, env: str | None) -> None:
    """Execute the recorded actions again, and compare observations and rewards.

    Exit code 1, and a line for each difference, if anything else happens than is recorded.
    """
    project = project_root()
    with user_errors():
        from agent_r1.cli.lines import replay_lines
        from agent_r1.display.progress import bar
        from agent_r1.experiments.replay import replay as play

        opened = open_experiment(project, experiment, env)
        with bar("replay") as on_progress:
            result = play(
                opened,
                iteration_of(opened, iteration),
                stage,
                lambda done, total, _tokens: on_progress(done, total),
            )
        print_lines(replay_lines(result, show))
    if result.differences:
        sys.exit(1)
