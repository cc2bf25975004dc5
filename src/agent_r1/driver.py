"""The whole experiment: one stage after another in one process, finishing what is not committed.

A loop is not a DAG, so the loop is here. The driver decides which nodes of which pipeline run;
no node decides whether it runs.

1. ``prepare_tasks`` → ``base`` → ``demonstrations`` → ``iter_00000`` (SFT).
2. Iterations 1 … N. ``validate_policy`` every ``evaluation.every`` iterations and on the last,
   ``evaluate_policy`` (all splits) on the last only; of ``base`` and ``iter_00000`` always.
3. ``report``.

A node whose manifest is there is done, unless something that it reads was made anew in this run.
So an interrupted experiment is finished where it stopped, and a finished one is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_r1 import parameter_groups, progress
from agent_r1.datasets import HistoryDataset
from agent_r1.hooks import history_of, resolved_parameters
from agent_r1.kedro_session import Session
from agent_r1.parameter_groups import Resolved
from agent_r1.pipelines.namespaces import iteration_name

FIRST_STAGES = ("prepare_tasks", "base", "demonstrations", "iter_00000")


@dataclass(frozen=True, slots=True)
class Stage:
    """A pipeline, and which of its nodes belong to the experiment."""

    pipeline: str
    without: frozenset[str] = frozenset()
    """Nodes that are left out, by their names without namespace."""


@dataclass
class Outcome:
    """What a run of the driver did."""

    experiment: str
    ran: list[str] = field(default_factory=list)
    """Full names of the nodes that ran, in order; empty if everything was there."""
    stopped_at: int | None = None
    """The iteration after which a stop condition ended the experiment early."""


def run_experiment(
    project: Path,
    runtime_params: dict[str, Any],
    env: str | None = None,
    conf_source: str | None = None,
) -> Outcome:
    """Run, or finish, an experiment.

    Args:
        project: root of the bootstrapped Kedro project.
        runtime_params: what ``--params`` says; ``experiment`` names the experiment.
        env: Kedro's configuration environment.
        conf_source: another configuration folder than the project's.

    Raises:
        ParameterError: the parameters cannot be used; nothing has run.
        Exception: whatever a node raised; what was committed before stays.
    """
    with Session(project, runtime_params, env, conf_source) as session:
        catalog = session.catalog()
        parameters = resolved_parameters(catalog)
        parameter_groups.check_references(parameters, project)
        driver = Driver(session, history_of(catalog), parameters)
        with progress.shown() as display:
            display.experiment(
                parameters.experiment.experiment,
                parameters.experiment.iterations,
                driver.completed_iterations(),
            )
            return driver.run()


class Driver:
    """Picks the nodes of each Kedro run."""

    def __init__(self, session: Session, history: HistoryDataset, parameters: Resolved) -> None:
        self._session = session
        self._history = history
        self._store = history.store
        self._parameters = parameters
        self._iterations = parameters.experiment.iterations
        self._changed: set[str] = set()
        self._outcome = Outcome(parameters.experiment.experiment)

    def run(self) -> Outcome:
        """Everything that is pending, in order; see the module's docstring."""
        for stage in self._stages():
            self._run(stage)
        self._run(Stage("report"), rerun=not self._report_is_current())
        return self._outcome

    def completed_iterations(self) -> int:
        """Iterations of RL whose policy is committed."""
        names = (iteration_name(index) for index in range(1, self._iterations + 1))
        return sum(bool(self._store.paths(f"{name}.update_policy")) for name in names)

    def _stages(self) -> Iterator[Stage]:
        yield from (Stage(name) for name in FIRST_STAGES)
        for index in range(1, self._iterations + 1):
            name = iteration_name(index)
            last = index == self._iterations
            yield Stage(name, without=self._left_out(index, last=last))
            if not last and self._should_stop(name):
                self._outcome.stopped_at = index
                yield Stage(name)  # its evaluation on all splits is still missing
                return

    def _left_out(self, index: int, *, last: bool) -> frozenset[str]:
        if last:
            return frozenset()
        every = self._parameters.groups["evaluation"]["every"]
        validated = every and index % every == 0
        return frozenset({"evaluate_policy"} if validated else _EVALUATIONS)

    def _report_is_current(self) -> bool:
        """Whether the last report read exactly what is committed now."""
        report = self._store.newest("build_report")
        if report is None:
            return False
        read = {(record.dataset, record.version) for record in report.inputs}
        now = {(found.record.dataset, found.version) for found in self._history.committed()}
        inputs = (self._store.committed(name) for name in ("tasks", "demonstrations"))
        return read == now | {(i.record.dataset, i.version) for i in inputs if i is not None}

    def _should_stop(self, iteration: str) -> bool:
        """Stop conditions read committed tables, so a resumed experiment stops where it did."""
        threshold = self._parameters.groups["stop"]["exact_match"]
        committed = threshold and self._store.committed(f"{iteration}.validation")
        if not committed:
            return False
        table = self._session.load(f"{iteration}.validation", committed.version)
        whole = table[table["family"].isna()]
        return bool((whole["exact_match"].astype(float) >= threshold).all())

    def _run(self, stage: Stage, *, rerun: bool = False) -> None:
        nodes = self._pending(stage, rerun=rerun)
        if nodes:
            self._session.run(stage.pipeline, nodes)
            self._outcome.ran += nodes

    def _pending(self, stage: Stage, *, rerun: bool) -> list[str]:
        """Nodes without a manifest, and those that read what is made anew, in running order."""
        pending = []
        for node in self._session.pipeline(stage.pipeline).nodes:
            if node.name.rpartition(".")[2] in stage.without:
                continue
            stale = rerun or not self._changed.isdisjoint(node.inputs)
            if stale or not self._store.paths(node.name):
                pending.append(node.name)
                self._changed.update(node.outputs)
        return pending


_EVALUATIONS = frozenset({"evaluate_policy", "validate_policy"})
