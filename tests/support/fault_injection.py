"""Breaks one run of Kedro at one named point, from outside of the package.

A fault is written ``kind:phase:name``. The kinds:

``kill``
    SIGKILL, as by the kernel when memory runs out, or by whoever pulls the plug.
``full``
    From this point on no file grows beyond ``room`` bytes (``full:phase:name:room``), as on a disk
    that is full, and it stays so until the process ends.
``silent``
    Nothing breaks; only what the phase says is done.

The phases, and what ``name`` is there:

=============  =====================================================================================
``before``     of a node: its inputs are loaded, its function is about to run
``staged``     of a checkpoint: the node has written half of it below ``data/.staging``
``writing``    of a dataset: half of its file is written, or for a checkpoint, half of its marker
``saved``      of a node: all its outputs are on the disk, its manifest is not
``manifest``   of a node: half of its manifest is written
``committed``  of a node: its manifest is on the disk, and nothing has happened since
``created``    of a stage (or of the experiment, for the parent): MLflow has its run, nobody knows
``ending``     of a stage: all its nodes are committed, its MLflow run is not ended
``ended``      of a stage: its MLflow run has ended, nobody knows
``shuffled``   of a node: the rows of all tables that it reads come in another order
``averaged``   of ``update``: losses are divided by their micro-batch's weight, not the mini-batch's
=============  =====================================================================================

A fault leaves its own text in the marker file just before it strikes, so that one which was never
reached is told from one which happened.
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from kedro.io import DataCatalog
from kedro.pipeline.node import Node

from agent_r1.datasets.local import LocalDataset
from agent_r1.lineage import ManifestStore
from agent_r1.storage import atomic as persistence

ROOM = 256
"""Bytes that a file may have on the full disk: all that is written here is longer, if not said."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What breaks, and where; see the module's docstring."""

    kind: str
    phase: str
    name: str
    room: int = ROOM

    @classmethod
    def parse(cls, text: str) -> Fault:
        """The inverse of ``str()``."""
        kind, phase, name, *room = text.split(":")
        return cls(kind, phase, name, *map(int, room))

    def __str__(self) -> str:
        text = f"{self.kind}:{self.phase}:{self.name}"
        return text if self.room == ROOM else f"{text}:{self.room}"


Strike = Callable[[], None]
"""Lets the fault happen; returns only where the process survives it."""


def inject(fault: Fault, marker: Path) -> None:
    """Arm ``fault`` in this process; it strikes once, when its point is reached."""

    def strike() -> None:
        marker.write_text(str(fault), encoding="utf-8")
        _KINDS[fault.kind](fault)

    _PHASES[fault.phase](fault, strike)


def _kill(_: Fault) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _fill_the_disk(fault: Fault) -> None:
    # Python ignores SIGXFSZ, so a write that is too long raises OSError.
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (fault.room, most))


def _before(fault: Fault, strike: Strike) -> None:
    run = Node.run

    def struck(self: Node, inputs: dict[str, Any] | None = None) -> dict[str, Any]:
        if self.name == fault.name:
            strike()
        return run(self, inputs)

    Node.run = struck


def _shuffled(fault: Fault, strike: Strike) -> None:
    run = Node.run

    def struck(self: Node, inputs: dict[str, Any] | None = None) -> dict[str, Any]:
        if self.name == fault.name:
            strike()
            inputs = {name: _in_another_order(value) for name, value in inputs.items()}
        return run(self, inputs)

    Node.run = struck


def _in_another_order(value: Any) -> Any:
    if not isinstance(value, pd.DataFrame):
        return value
    return value.sample(frac=1, random_state=0).reset_index(drop=True)


def _averaged(_: Fault, strike: Strike) -> None:
    from agent_r1.training import accumulation

    aggregate = accumulation.aggregate

    def averaged(losses: Any, weights: Any) -> Any:
        strike()
        return aggregate(losses, weights / weights.sum())

    accumulation.aggregate = averaged


def _staged(fault: Fault, strike: Strike) -> None:
    def save(_: DataCatalog, folder: Path) -> None:
        _halve(max(Path(folder).iterdir(), key=lambda file: file.stat().st_size))
        strike()

    _before_saving(fault.name, save)


def _writing(fault: Fault, strike: Strike) -> None:
    save = DataCatalog.save

    def tear(catalog: DataCatalog, data: Any) -> None:
        if fault.kind == "full":
            return strike()
        dataset = catalog[fault.name]
        with _torn_files(strike):
            save(catalog, fault.name, data)
        if isinstance(dataset, LocalDataset):
            raise AssertionError(f"'{fault.name}' was saved, and no half of it was ever seen")
        _halve(Path(str(dataset._filepath)))  # a dataset of another package writes in place
        return strike()

    _before_saving(fault.name, tear)


def _before_saving(name: str, action: Callable[[DataCatalog, Any], None]) -> None:
    save = DataCatalog.save

    def struck(self: DataCatalog, ds_name: str, data: Any) -> None:
        if ds_name == name:
            action(self, data)
        save(self, ds_name, data)

    DataCatalog.save = struck


def _around_the_manifest(fault: Fault, strike: Strike) -> None:
    write = ManifestStore.write

    def struck(self: ManifestStore, manifest: Any) -> Path:
        if manifest.node != fault.name:
            return write(self, manifest)
        if fault.phase == "saved" or fault.kind == "full":
            strike()
        if fault.phase == "manifest":
            with _torn_files(strike):
                return write(self, manifest)
        path = write(self, manifest)
        strike()
        return path

    ManifestStore.write = struck


def _around_a_tracked_run(fault: Fault, strike: Strike) -> None:
    from mlflow.tracking import MlflowClient

    create, terminate = MlflowClient.create_run, MlflowClient.set_terminated

    def created(self: MlflowClient, *arguments: Any, **named: Any) -> Any:
        run = create(self, *arguments, **named)
        if fault.phase == "created" and run.info.run_name == fault.name:
            strike()
        return run

    def terminated(self: MlflowClient, run_id: str, *arguments: Any, **named: Any) -> None:
        mine = self.get_run(run_id).info.run_name == fault.name
        if mine and fault.phase == "ending":
            strike()
        terminate(self, run_id, *arguments, **named)
        if mine and fault.phase == "ended":
            strike()

    MlflowClient.create_run, MlflowClient.set_terminated = created, terminated


@contextmanager
def _torn_files(strike: Strike) -> Iterator[None]:
    """Strikes when a temporary file is written, and leaves half of it."""
    flush = persistence.flush

    def tear(path: Path) -> None:
        if path.suffix == ".part":
            _halve(path)
            strike()
        flush(path)

    persistence.flush = tear
    try:
        yield
    finally:
        persistence.flush = flush


def _halve(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def _do_nothing(_: Fault) -> None:
    return


_KINDS: dict[str, Callable[[Fault], None]] = {
    "kill": _kill,
    "full": _fill_the_disk,
    "silent": _do_nothing,
}

_PHASES: dict[str, Callable[[Fault, Strike], None]] = {
    "before": _before,
    "shuffled": _shuffled,
    "averaged": _averaged,
    "staged": _staged,
    "writing": _writing,
    **dict.fromkeys(("saved", "manifest", "committed"), _around_the_manifest),
    **dict.fromkeys(("created", "ending", "ended"), _around_a_tracked_run),
}
