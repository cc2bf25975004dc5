"""One stage again, and what happens to everything that was made from its old result.

1. The stage reads exactly the versions that its current manifest names, with the experiment's
   recorded parameters and ``--params`` over them.
2. ``keep``: what is downstream stays. A result that differs is set aside (`Manifest.aside`).
3. ``cascade``: the result becomes the experiment's, and everything that depends on it is made
   again, to the last iteration. With other parameters this is a branch of the experiment.
4. ``fork``: the same in a new experiment, which shares everything else by reference. The old
   experiment stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Literal

from kedro.pipeline import Pipeline
from kedro.pipeline.node import Node
from omegaconf import OmegaConf

from agent_r1.configuration.groups import recorded_parameters
from agent_r1.configuration.presets import read_preset
from agent_r1.display import progress
from agent_r1.experiments.driver import FIRST_STAGES, Driver, Outcome
from agent_r1.experiments.experiment import experiment_of, parameters_of
from agent_r1.experiments.rerun_checks import check_changes, check_inputs, warn_of_kept_readers
from agent_r1.experiments.session import Session
from agent_r1.lineage import Experiment, LineageError, Manifest
from agent_r1.lineage.attempt import attempt
from agent_r1.lineage.branches import Branch, differences, flatten, nested, now
from agent_r1.lineage.comparison import Comparison, compare
from agent_r1.lineage.staleness import dependents
from agent_r1.parameters import ParameterError, nearest
from agent_r1.pipelines.namespaces import full_iteration, iteration_name
from agent_r1.tracking.run_record import committed_by

Downstream = Literal["keep", "cascade", "fork"]


@dataclass
class Rerun:
    """What a rerun did."""

    experiment: str
    """Where the new result is; for a fork, the new experiment."""
    node: str
    version: str
    """The version of the new result."""
    replaces: str
    """The version that was current before."""
    comparison: Comparison
    """The new result compared with that version."""
    changes: dict[str, tuple[Any, Any]]
    """Parameters that changed: dotted name → (then, now)."""
    downstream: list[str] = field(default_factory=list)
    """Nodes that depend on the old result and were kept."""
    outcome: Outcome | None = None
    """What was made again downstream; None for ``keep``."""

    @property
    def same_bytes(self) -> bool:
        """Whether only wall-clock times differ."""
        return self.comparison.same_bytes


@dataclass(frozen=True, slots=True)
class Request:
    """What to run again, and how."""

    stage: str
    """A node's name without its namespace, such as ``score_rewards``."""
    iteration: str | None = None
    """``3``, ``iter_00003`` or ``base``; None for a stage outside the iterations."""
    downstream: Downstream = "keep"
    fork: str | None = None
    """Name of the new experiment; None makes one up."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """Nested parameters, as ``--params`` gives them."""


class Rerunner:
    """Runs stages of one experiment again."""

    def __init__(self, experiment: Experiment, env: str | None = None) -> None:
        """``env`` is Kedro's configuration environment."""
        self._experiment = experiment
        self._project = experiment.project
        self._store = experiment.manifests
        self._env = env

    def rerun(self, request: Request) -> Rerun:
        """Run a stage again.

        Raises:
            ParameterError: there is no such stage, or a parameter is invalid.
            LineageError: the stage never ran, or an input is gone or was changed.
            LockedError: another process works on the experiment.
        """
        pipeline, node = self._find(request)
        manifest = self._store.newest(node.name)
        if manifest is None:
            raise LineageError(
                f"{node.name} has not run in experiment '{self._experiment.name}': kedro run "
                f"--params experiment={self._experiment.name}"
            )
        check_inputs(self._experiment, manifest)
        if request.downstream == "fork":
            return self._fork(request, pipeline, node, manifest)
        advances = request.downstream == "cascade"
        with self._running(request, manifest) as (session, _, branch, changes):
            if advances:
                warn_of_kept_readers(session.pipeline(pipeline), node, changes)
            with attempt(advances=advances, branch=branch), progress.shown():
                version = session.run(pipeline, [node.name], _pins(node, manifest))
            (after,) = committed_by(self._store, [node.name], version)
            result = _result(manifest, after, changes)
            if advances:
                result.outcome = Driver(session, self._experiment, branch).run()
            else:
                result.downstream = self._committed_dependents(node)
        return result

    def _find(self, request: Request) -> tuple[str, Node]:
        """The pipeline and the node of a stage."""
        if request.iteration is None:
            names = ["prepare_tasks", "demonstrations", "report"]
        else:
            names = [full_iteration(request.iteration)]
        nodes: dict[str, tuple[str, Node]] = {}
        with Session(self._project, {}, self._env) as session:
            for name in names:
                try:
                    pipeline = session.pipeline(name)
                except KeyError:
                    raise ParameterError(
                        f"there is no iteration '{name}': give its number, or 'base'"
                    ) from None
                nodes |= {each.name.rpartition(".")[2]: (name, each) for each in pipeline.nodes}
        if request.stage not in nodes:
            where = "outside the iterations (see --iteration)"
            where = f"in {names[0]}" if request.iteration is not None else where
            raise ParameterError(
                f"there is no stage '{request.stage}' {where}.{nearest(request.stage, nodes)}"
            )
        return nodes[request.stage]

    @contextmanager
    def _running(
        self, request: Request, manifest: Manifest, fork: str | None = None
    ) -> Iterator[tuple[Session, Experiment, Branch, dict[str, tuple[Any, Any]]]]:
        """A session with the recorded parameters and the requested ones over them, the experiment
        that it works on (locked), its branch, and the parameters that changed."""
        branches = self._experiment.branches.all()
        keep = request.downstream == "keep"
        base = branches[manifest.branch] if keep else branches[-1]
        recorded, asked = recorded_parameters(base.parameters), self._asked(request.overrides)
        runtime = nested({**recorded, "iterations": self._newest_iteration(), **asked})
        runtime["experiment"] = fork or self._experiment.name
        with Session(self._project, runtime, self._env) as session:
            catalog = session.catalog()
            flat, target = flatten(parameters_of(catalog)), experiment_of(catalog)
            if fork and target.exists:
                raise ParameterError(f"there is an experiment '{fork}' already; name another")
            changes = differences(recorded, flat)
            check_changes(changes, asked)
            branch, start = base, (len(branches), flat)
            if fork:
                origin = self._experiment.name
                branch = Branch(*start, "fork", manifest.node, changes, origin, now())
            elif changes and not keep:
                branch = Branch(*start, "rerun", manifest.node, changes, created_at=now())
            with target.lock():
                yield session, target, branch, changes

    def _asked(self, overrides: Mapping[str, Any]) -> dict[str, Any]:
        """The values of ``--params`` by dotted names, over those of the preset it may name."""
        preset: Any = {}
        if "algorithm" in overrides:
            conf = self._project / "conf"
            preset = OmegaConf.to_container(read_preset(conf, overrides["algorithm"]))
        return flatten(preset) | flatten(overrides)

    def _newest_iteration(self) -> int:
        names = (name for name in self._store.iterations() if name.startswith("iter_"))
        return max((int(name.removeprefix("iter_")) for name in names), default=0)

    def _stages(self, session: Session) -> list[Pipeline]:
        names = (iteration_name(index) for index in range(1, self._newest_iteration() + 1))
        return [session.pipeline(name) for name in (*FIRST_STAGES, *names)]

    def _committed_dependents(self, node: Node) -> list[str]:
        with Session(self._project, {}, self._env) as session:
            names = dependents(node.name, [each.nodes for each in self._stages(session)])
        return [name for name in names if self._store.current(name) is not None]

    def _fork(self, request: Request, pipeline: str, node: Node, manifest: Manifest) -> Rerun:
        name = request.fork or self._free_name()
        with self._running(request, manifest, name) as (session, fork, branch, changes):
            warn_of_kept_readers(session.pipeline(pipeline), node, changes)
            # Branches first: after a crash, a run makes what is missing with these.
            for each in (*self._experiment.branches.all(), branch):
                fork.branches.write(each)
            self._share(session, node, fork)
            outcome = Driver(session, fork, branch).run()
        after = fork.manifests.newest(node.name)
        assert after is not None
        result = _result(manifest, after, changes)
        result.outcome = outcome
        return result

    def _share(self, session: Session, node: Node, fork: Experiment) -> None:
        """Adopt everything that does not depend on the node, and what it was made from."""
        stages = self._stages(session)
        names = [each.name for stage in stages for each in stage.nodes]
        made_again = {node.name, *dependents(node.name, [stage.nodes for stage in stages])}
        todo = [self._store.current(name) for name in names if name not in made_again]
        adopted: set[Path] = set()
        while todo:
            path = todo.pop()
            if path is None or path in adopted:
                continue
            adopted.add(path)
            for record in self._store.read(path).inputs:
                if record.manifest is not None:
                    todo.append(self._store.root / record.manifest)
        for path in sorted(adopted):
            fork.manifests.adopt(path, self._store.root)

    def _free_name(self) -> str:
        names = (f"{self._experiment.name}-fork{number}" for number in count(1))
        return next(name for name in names if not self._experiment.folder.with_name(name).exists())


def _result(before: Manifest, after: Manifest, changes: dict[str, tuple[Any, Any]]) -> Rerun:
    return Rerun(
        after.experiment,
        after.node,
        after.version,
        before.version,
        compare(before, after),
        changes,
    )


def _pins(node: Node, manifest: Manifest) -> dict[str, str]:
    """Input → the version that was read. The report's tables of iterations are not inputs of the
    node, so a rerun of the report reads the current ones."""
    return {
        record.dataset: record.version
        for record in manifest.inputs
        if record.version is not None and record.dataset in node.inputs
    }
