"""The whole experiment: one stage after another in one process, skipping what is committed.

A loop is not a DAG, so the loop is here. The driver decides which nodes of which pipeline run;
no node decides whether it runs.

1. ``prepare_tasks`` → ``base`` → ``demonstrations`` → ``iter_00000`` (SFT).
2. Iterations 1 … N. ``validate_policy`` runs every ``evaluation.every`` iterations and in the last
   one, ``evaluate_policy`` (all splits) in the last one. ``base`` and ``iter_00000`` are always
   evaluated.
3. ``report``.

A node with a manifest is done, unless an input was made again with other content, or a branch with
other parameters reaches the node (`agent_r1.lineage.staleness`). So a run finishes an interrupted
experiment where it stopped, and leaves a finished one alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_r1 import kedro_adapter
from agent_r1.configuration import references
from agent_r1.configuration.groups import recorded_parameters
from agent_r1.display import progress
from agent_r1.experiments.experiment import experiment_of, parameters_of
from agent_r1.experiments.session import Session
from agent_r1.lineage import Experiment, OutputRecord, leftovers
from agent_r1.lineage.attempt import attempt
from agent_r1.lineage.branches import Branch, continued, flatten
from agent_r1.lineage.retention import RetentionParameters, prune
from agent_r1.lineage.staleness import Staleness
from agent_r1.pipelines.namespaces import iteration_name
from agent_r1.storage.hashing import content_sha256
from agent_r1.tracking.mlflow import Tracker

FIRST_STAGES = ("prepare_tasks", "base", "demonstrations", "iter_00000")


@dataclass(frozen=True, slots=True)
class Stage:
    """A pipeline, and which of its nodes the experiment runs."""

    pipeline: str
    without: frozenset[str] = frozenset()
    """Nodes to skip, by their names without namespace."""


@dataclass
class Outcome:
    """What a run of the driver did."""

    experiment: str
    ran: list[str] = field(default_factory=list)
    """Full names of the nodes that ran, in order; empty if nothing was left to do."""
    stopped_at: int | None = None
    """The iteration after which a stop condition ended the experiment early."""
    pruned: list[str] = field(default_factory=list)
    """Checkpoints that retention deleted."""
    report: str = ""
    """Where the HTML report is: relative to the project, or absolute."""


def run_experiment(
    project: Path,
    runtime_params: dict[str, Any],
    env: str | None = None,
    conf_source: str | None = None,
    *,
    allow_changes: bool = False,
) -> Outcome:
    """Run, or finish, an experiment.

    Args:
        project: root of the bootstrapped Kedro project.
        runtime_params: the values of ``--params``; ``experiment`` names the experiment.
        env: Kedro's configuration environment.
        conf_source: another configuration folder than the project's.
        allow_changes: continue with other parameters than the experiment has, in a branch.

    Raises:
        ParameterError: the parameters cannot be used; nothing has run.
        LockedError: another process works on the experiment.
        ChangedParametersError: the experiment was run with other parameters.
        Exception: whatever a node raised; what was committed before stays.
    """
    with Session(project, runtime_params, env, conf_source) as session:
        catalog = session.catalog()
        parameters = parameters_of(catalog)
        references.check_references(parameters, project)
        experiment = experiment_of(catalog)
        with experiment.lock():
            branch = continued(
                experiment.branches,
                flatten(parameters),
                experiment.name,
                allow_changes=allow_changes,
                meaning=recorded_parameters,
            )
            if experiment.manifests.current("base.import_policy") is None:
                references.check_base(parameters, project)
            return Driver(session, experiment, branch).run()


class Driver:
    """Picks the nodes of each Kedro run. The caller holds the experiment's lock."""

    def __init__(self, session: Session, experiment: Experiment, branch: Branch) -> None:
        """``branch`` has the parameters of the session."""
        self._session = session
        self._experiment = experiment
        self._store = experiment.manifests
        self._parameters = parameters = parameters_of(session.catalog())
        self._names = [iteration_name(i) for i in range(1, parameters["iterations"] + 1)]
        """Of the iterations of RL."""
        self._branch = branch
        branches = {each.index: each for each in (*experiment.branches.all(), branch)}
        self._staleness = Staleness(self._store, list(branches.values()))
        self._outcome = Outcome(experiment.name)
        self._scores: dict[tuple[str, str | None], float | None] = {}

    def run(self) -> Outcome:
        """Run everything that is not done, in order; see the module's docstring."""
        updates = (f"{name}.update_policy" for name in self._names)
        with progress.shown() as display, attempt(advances=True, branch=self._branch):
            done = sum(map(bool, map(self._store.current, updates)))
            display.experiment(self._experiment.name, len(self._names), done)
            self._remove_leftovers()
            for stage in self.stages():
                if self._run(stage.pipeline, self._pending(stage)):
                    self._prune()
            self._prune()
            if not self._report_is_current():
                self._run("report", ["build_report"])
            elif not self._outcome.ran:
                self._settle_tracking()
        self._outcome.report = self._report_path()
        return self._outcome

    def stages(self) -> Iterator[Stage]:
        """The stages in order. Take the next one only after the one before has run: its results
        decide whether there is a next iteration."""
        yield from (Stage(name) for name in FIRST_STAGES)
        for index, name in enumerate(self._names, start=1):
            last = index == len(self._names)
            yield Stage(name, without=self._left_out(index, last=last))
            if not last and self._should_stop(name):
                self._outcome.stopped_at = index
                yield Stage(name)  # its evaluation on all splits is still missing
                return

    def _remove_leftovers(self) -> None:
        catalog = self._session.catalog()
        names = {*FIRST_STAGES, iteration_name(1), "report"}
        outputs = {out for name in names for out in self._session.pipeline(name).all_outputs()}
        found = leftovers.uncommitted(self._experiment, leftovers.places(catalog, outputs))
        freed = leftovers.remove(found, self._experiment.project)
        if found:
            progress.current().say(
                f"removed {len(found)} leftovers of an interrupted run ({freed / 1e6:.1f} MB)"
            )

    def _settle_tracking(self) -> None:
        settings = self._parameters["mlflow"]
        if settings["enabled"]:
            Tracker(self._experiment, settings["tracking_uri"]).settle()

    def _left_out(self, index: int, *, last: bool) -> frozenset[str]:
        if last:
            return frozenset()
        every = self._parameters["evaluation"]["every"]
        validated = every and index % every == 0
        return frozenset({"evaluate_policy"} if validated else _EVALUATIONS)

    def _report_path(self) -> str:
        path = kedro_adapter.location(self._session.catalog()["report_html"])
        return self._experiment.relative(path) if path is not None else ""

    def _report_is_current(self) -> bool:
        """Whether the last report read exactly what is committed now, and its files are intact.

        Its files have no versions: a crash may have left some that belong to another report.
        """
        report = self._store.newest("build_report")
        if report is None or not all(self._is_whole(record) for record in report.outputs):
            return False
        read = {(record.dataset, record.version) for record in report.inputs}
        history: Any = self._session.catalog()["history"]
        inputs = (self._experiment.current(name) for name in ("tasks", "demonstrations"))
        now = (*history.committed(), *filter(None, inputs))
        return read == {(found.record.dataset, found.version) for found in now}

    def _is_whole(self, record: OutputRecord) -> bool:
        path = self._experiment.path(record)
        return path.is_file() and content_sha256(path) == record.sha256

    def _should_stop(self, iteration: str) -> bool:
        """Whether a stop condition holds. It reads committed tables, so a resumed experiment stops
        at the same iteration."""
        threshold = self._parameters["stop"]["exact_match"]
        score = self._validation_score(iteration) if threshold else None
        return score is not None and score >= threshold

    def _validation_score(self, iteration: str) -> float | None:
        """Exact match on the validation split; None if it was not evaluated, or not scored."""
        committed = self._experiment.current(f"{iteration}.validation")
        if committed is None:
            return None
        key = (committed.record.dataset, committed.version)
        if key not in self._scores:
            table = self._experiment.table(committed.record)
            whole = table[table["family"].isna()]["exact_match"].dropna()
            self._scores[key] = None if whole.empty else float(whole.min())
        return self._scores[key]

    def _run(self, pipeline: str, nodes: list[str]) -> bool:
        """Run the nodes; whether there were any."""
        if nodes:
            self._session.run(pipeline, nodes)
            self._outcome.ran += nodes
        return bool(nodes)

    def _pending(self, stage: Stage) -> list[str]:
        nodes = self._session.pipeline(stage.pipeline).nodes
        own = (node for node in nodes if node.name.rpartition(".")[2] not in stage.without)
        return self._staleness.pending(own)

    def _prune(self) -> None:
        rules = RetentionParameters(**self._parameters["retention"])
        best = enumerate(self._names if rules.keep_best is not None else (), start=1)
        scores = {index: self._validation_score(name) for index, name in best}
        known = {index: score for index, score in scores.items() if score is not None}
        self._outcome.pruned += prune(self._experiment, rules, known)


_EVALUATIONS = frozenset({"evaluate_policy", "validate_policy"})
