"""Two runs of the same node: whether their results are equal, and what else differs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agent_r1.lineage.branches import differences
from agent_r1.lineage.manifest import Manifest
from agent_r1.lineage.recorder import VOLATILE


@dataclass(frozen=True, slots=True)
class Output:
    """One result of the stage, then and now."""

    dataset: str
    before: str | None
    """sha256; None if the stage did not write this dataset then."""
    after: str
    volatile: bool
    """A table of wall-clock times, which always differs."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two runs of a node have in common."""

    outputs: tuple[Output, ...]
    surroundings: dict[str, tuple[Any, Any]]
    """Code, libraries and device, where they differ: name → (then, now)."""

    @property
    def same_bytes(self) -> bool:
        """Whether all results are equal, except wall-clock times and datasets that are new."""
        return all(
            output.before in (None, output.after) for output in self.outputs if not output.volatile
        )


def compare(before: Manifest, after: Manifest) -> Comparison:
    """Compare a run of a node with one before it."""
    outputs = tuple(
        Output(
            record.dataset,
            old.sha256 if (old := before.output(record.dataset)) else None,
            record.sha256,
            record.dataset.rpartition(".")[2] in VOLATILE,
        )
        for record in after.outputs
    )
    return Comparison(outputs, differences(_surroundings(before), _surroundings(after)))


def _surroundings(manifest: Manifest) -> dict[str, Any]:
    """What can change a result besides inputs and parameters."""
    own = {"code": manifest.code["source_sha256"][:12], "device": manifest.device}
    return own | dict(manifest.libraries)
