"""``kedro run``: the whole experiment, or Kedro's own run of a selection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from agent_r1.cli.errors import user_errors
from agent_r1.cli.project import project_root
from agent_r1.kedro_adapter import run_command

_HELP = """Run the whole experiment: prepare, SFT, iterations, evaluation, report.

An interrupted experiment is finished where it stopped; a finished one is left alone. Name it and
change its parameters with --params, such as --params experiment=NAME,seed=1,iterations=30.

With a selection (--pipelines, --nodes, --tags, ...) this is Kedro's own run: those nodes run, and
read the current committed versions of their inputs.
"""

_WHOLE = frozenset({"env", "conf_source", "params", "config", "allow_changes"})
"""Options that do not select a part of the experiment."""


def _run(*, allow_changes: bool, **options: Any) -> None:
    project = project_root()
    with user_errors():
        if any(value for name, value in options.items() if name not in _WHOLE):
            if allow_changes:
                raise click.UsageError("--allow-changes is for the whole experiment")
            _run_selection(options)
        else:
            _run_experiment(project, options, allow_changes=allow_changes)


def _run_selection(options: dict[str, Any]) -> None:
    from agent_r1.cli.selection import check_selection
    from agent_r1.display.progress import shown

    check_selection(options)
    with shown():
        callback = run_command().callback
        assert callback is not None
        callback(**options)


def _run_experiment(project: Path, options: dict[str, Any], *, allow_changes: bool) -> None:
    from agent_r1.experiments.driver import run_experiment

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
    click.echo(f"Report: {outcome.report}")


_ALLOW = click.Option(
    ["--allow-changes"],
    is_flag=True,
    help="Go on with other parameters than the experiment has: what is committed stays, what is "
    "still to be made has the new ones. Recorded as a branch.",
)
run = click.Command("run", params=[*run_command().params, _ALLOW], callback=_run, help=_HELP)
