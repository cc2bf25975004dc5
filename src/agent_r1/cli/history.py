"""Commands about an experiment that ran.

A stage of it is run again, it is said what made a dataset, or checked that nothing was changed, or
its trajectories are played again.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from agent_r1.cli.errors import user_errors
from agent_r1.cli.project import (
    experiment_options,
    iteration_of,
    iteration_option,
    of_experiment,
    open_experiment,
    print_lines,
    project_root,
)
from agent_r1.kedro_adapter import params_option

if TYPE_CHECKING:
    from agent_r1.lineage import Experiment


@click.command()
@click.argument("stage")
@iteration_option
@experiment_options
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
        print_lines(rerun_lines(Rerunner(opened, options["env"]).rerun(request)))


rerun.params.append(params_option())


@click.command()
@click.argument("dataset")
@iteration_option
@click.option("--version", metavar="V", help="By default the current one.")
@click.option("--depth", type=click.IntRange(min=0), help="Node runs to go back; default: all.")
@of_experiment
def lineage(
    experiment: Experiment,
    dataset: str,
    iteration: str | None,
    version: str | None,
    depth: int | None,
) -> None:
    """Show the tree of what made DATASET, down to the raw data.

    DATASET is a name such as rewards (with --iteration), tasks, or iter_00003.rewards, or the
    beginning of a sha256, such as a policy_version in a table.
    """
    from agent_r1.cli.lines import lineage_tree, wanted

    if iteration is not None:
        iteration = iteration_of(experiment, iteration)
    name, version = wanted(experiment.manifests, dataset, iteration, version)
    print_lines([lineage_tree(experiment.manifests, name, version, depth)])


@click.command()
@of_experiment
def verify(experiment: Experiment) -> None:
    """Hash everything again, and compare it with what the manifests say.

    Exit code 1, and a line for each difference, if anything was changed, moved or deleted.
    """
    from agent_r1.cli.lines import verification_lines
    from agent_r1.display.progress import bar
    from agent_r1.lineage.verify import verify as check

    with bar("verify") as on_progress:
        result = check(experiment, on_progress)
    print_lines(verification_lines(experiment.name, result))
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
def replay(experiment: Experiment, iteration: str, stage: str, show: int) -> None:
    """Execute the recorded actions again, and compare observations and rewards.

    Exit code 1, and a line for each difference, if anything else happens than is recorded.
    """
    from agent_r1.cli.lines import replay_lines
    from agent_r1.display.progress import bar
    from agent_r1.experiments.replay import replay as play

    name = iteration_of(experiment, iteration)
    with bar("replay") as on_progress:
        result = play(experiment, name, stage, lambda done, total, _: on_progress(done, total))
    print_lines(replay_lines(result, show))
    if result.differences:
        sys.exit(1)
