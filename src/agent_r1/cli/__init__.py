"""The project's own commands beside Kedro's.

``kedro run`` without a selection runs the whole experiment (`agent_r1.experiments.driver`); with
one (``--pipelines``, ``--nodes``, ``--tags``, …) it is Kedro's own. The others look at an
experiment that ran, or run a part of it again.
"""

from __future__ import annotations

import click

from agent_r1.cli.history import lineage, replay, rerun, verify
from agent_r1.cli.run import run
from agent_r1.cli.template import check_template


@click.group(name="kedro")
def cli() -> None:
    """The project's commands; Kedro merges them with its own."""


for command in (run, rerun, lineage, verify, replay, check_template):
    cli.add_command(command)
