"""A short but real experiment in a throw-away project: the real nodes on the real base model.

Two iterations, so that an update also starts from the state that another one left.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from agent_r1.lineage import Manifest, ManifestStore
from agent_r1.storage.hashing import content_sha256
from tests.support import REPOSITORY
from tests.support.forked_runs import TIMEOUT, Ended, ForkedRuns

PARAMETERS = """\
iterations: 2
model: {threads: 1}
tasks: {sizes: {train: 40, validation: 4, in_domain: 4, held_out: 4, ood: 4}}
demonstrations: {count: 4}
sft: {steps: 2, batch_size: 2}
rollout: {tasks_per_iteration: 2, group_size: 2}
# Too little is learned here to be rewarded; the entropy moves the policy all the same.
update: {entropy_coef: 0.1, mini_batch_trajectories: 2, warmup_steps: 0}
evaluation: {every: 0, samples: 1, max_tasks_per_split: 1, validation_tasks: 1}
"""
"""``conf/faults/parameters.yml``: as little as every node can work on."""

_TRAINED = ("policy", "critic", "trainer_state", "controllers", "update_metrics")
_STEPS = {
    "generate_rollouts": ("rollouts", "rollout_timings", "sampled_groups"),
    "compute_logprobs": ("logprobs",),
    "score_rewards": ("rewards",),
    "build_preferences": ("preferences",),
    "compute_advantages": ("advantages",),
    "update_policy": _TRAINED,
}
_EVALUATE = {"evaluate_policy": ("evaluation", "evaluation_rollouts", "evaluation_rewards")}
_VALIDATE = {"validate_policy": ("validation", "validation_rollouts", "validation_rewards")}


def _within(namespace: str, nodes: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    return {
        f"{namespace}.{node}": tuple(f"{namespace}.{output}" for output in outputs)
        for node, outputs in nodes.items()
    }


NODES: dict[str, tuple[str, ...]] = {
    "prepare_tasks": ("tasks", "documents"),
    **_within("base", {"import_policy": ("policy",), **_EVALUATE}),
    "build_demonstrations": ("demonstrations",),
    **_within("iter_00000", {"train_sft": _TRAINED, **_EVALUATE, **_VALIDATE}),
    **_within("iter_00001", _STEPS),
    **_within("iter_00002", {**_STEPS, **_EVALUATE, **_VALIDATE}),
    "build_report": ("learning_curves_figure", "report_html", "summary"),
}
"""Node → its outputs, both in the order in which an undisturbed experiment makes them."""

WITH_TIMES = ("rollout_timings", "summary", "report_html")
"""Datasets that hold wall-clock times: two runs never give the same bytes."""

_VERSION = re.compile(r"\d{4}-\d\d-\d\dT\d\d\.\d\d\.\d\d\.\d{3}Z")
"""A folder that Kedro's versioning made."""


class SmallExperiments:
    """Experiments of one project, by name."""

    def __init__(self, project: Path, forked: ForkedRuns) -> None:
        """
        Args:
            project: what `make_project` made.
            forked: runs whatever is broken, or only continues what was.
        """
        self.project = project
        self._forked = forked

    def run(
        self, experiment: str, fault: str | None = None, selection: Sequence[str] = ()
    ) -> Ended:
        """``kedro run [selection]`` of the experiment, broken by ``fault``; in a fork."""
        return self._forked.run(self.project, [*_arguments(experiment), *selection], fault)

    def run_alone(self, experiment: str, fault: str | None = None) -> Ended:
        """The same in a process that starts from nothing; without a fault, ``kedro`` itself."""
        marker = self.project / "struck"
        marker.unlink(missing_ok=True)
        with_fault = ("-m", "tests.support.run_with_fault", fault, str(marker))
        done = subprocess.run(
            [sys.executable, *(with_fault if fault else ("-m", "kedro")), *_arguments(experiment)],
            cwd=self.project,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
        struck = marker.read_text(encoding="utf-8") if marker.exists() else None
        return Ended(done.returncode, done.stdout, struck)

    def command(self, *arguments: str, fault: str | None = None, env: str = "faults") -> Ended:
        """``kedro <arguments> --env <env>``, broken by ``fault``; in a fork."""
        return self._forked.run(self.project, [*arguments, "--env", env], fault)

    def store(self, experiment: str) -> ManifestStore:
        """The manifests of the experiment."""
        return ManifestStore(self.project / "data/08_reporting" / experiment / "manifests")

    def hashes(self, experiment: str) -> dict[str, str]:
        """Dataset → sha256 of its newest committed version, of all that holds no times."""
        return {
            record.dataset: record.sha256
            for _, manifest in self.store(experiment).all()
            if not manifest.aside
            for record in manifest.outputs
            if record.dataset.rpartition(".")[2] not in WITH_TIMES
        }

    def wrongly_committed(self, experiment: str) -> list[str]:
        """Outputs that are not on the disk as their manifest says."""
        return [
            f"{record.dataset} of {manifest.version}"
            for manifest, outputs in self._committed(experiment)
            for record in outputs
            if not (path := self.project / record.path).exists()
            or content_sha256(path) != record.sha256
        ]

    def _committed(self, experiment: str) -> Iterator[tuple[Manifest, list]]:
        store = self.store(experiment)
        for path, manifest in store.all():
            newest = path == store.paths(manifest.node)[0]
            # What has no versions is replaced by the next run.
            yield manifest, [r for r in manifest.outputs if r.version is not None or newest]

    def uncommitted(self, experiment: str) -> list[str]:
        """Folders of versions that no manifest names, relative to the project."""
        committed = {
            str(Path(record.path).parent)
            for _, manifest in self.store(experiment).all()
            for record in manifest.outputs
        }
        folders = self.project.glob(f"data/*/{experiment}/**/")
        versions = (f.relative_to(self.project) for f in folders if _VERSION.fullmatch(f.name))
        return sorted(str(version) for version in versions if str(version) not in committed)

    def half_written(self, experiment: str) -> list[str]:
        """Temporary files of the experiment."""
        return sorted(map(str, self.project.glob(f"data/*/{experiment}/**/*.part")))

    def staged(self) -> list[str]:
        """What waits below ``data/.staging`` to be adopted, of any experiment."""
        return sorted(map(str, self.project.glob("data/.staging/*")))


def make_project(folder: Path) -> Path:
    """The repository's project, with `PARAMETERS` as its environment ``faults``."""
    for name in ("pyproject.toml", ".telemetry"):
        shutil.copy(REPOSITORY / name, folder)
    for name in ("base", "algorithms"):
        shutil.copytree(REPOSITORY / "conf" / name, folder / "conf" / name)
    shutil.copy(REPOSITORY / "conf/logging.yml", folder / "conf")
    (folder / "conf/faults").mkdir()
    (folder / "conf/faults/parameters.yml").write_text(PARAMETERS, encoding="utf-8")
    (folder / "src").mkdir()  # Kedro wants one; the package comes from PYTHONPATH
    (folder / "data").mkdir()
    (folder / "data/01_raw").symlink_to(REPOSITORY / "data/01_raw")
    return folder


def environment() -> dict[str, str]:
    """Environment variables of a run: this repository's package, and nothing that a fork or
    another number of threads would change."""
    inherited = filter(None, [os.environ.get("PYTHONPATH")])
    paths = [str(REPOSITORY / "src"), str(REPOSITORY), *inherited]
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(paths),
        "COLUMNS": "300",  # messages are read by line
        "NO_COLOR": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "GOMP_SPINCOUNT": "0",
        "JE_ARROW_MALLOC_CONF": "background_thread:false",  # a thread from the import on
        "TOKENIZERS_PARALLELISM": "false",
    }


def _arguments(experiment: str) -> list[str]:
    return ["run", "--env", "faults", "--params", f"experiment={experiment}"]
