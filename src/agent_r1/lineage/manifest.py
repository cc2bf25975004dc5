"""The record of one node run.

A manifest is strict JSON, written once, atomically, after the node's last output is on the disk. It
is the authority: an output that no manifest names is not committed, and is never read. Manifests
form a chain: each input names the manifest that committed it, by path and sha256. So a result can
be followed to the raw data, and an edit on the way shows. Only ``pruned`` changes later, when
retention deletes a checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from agent_r1.lineage.seal import SEAL, check_seal, sealed

FORMAT = 2
"""Raise it when a field is added, is removed, or changes its meaning: reading a manifest compares
its text with what this code writes."""

UNNAMESPACED = "experiment"
"""Folder of the manifests of nodes outside the iterations."""


def iteration_of(name: str) -> str:
    """The folder of a dataset's or node's manifests: ``iter_00003.rewards`` → ``iter_00003``."""
    return name.rpartition(".")[0] or UNNAMESPACED


@dataclass(frozen=True, slots=True)
class InputRecord:
    """One dataset that the node read."""

    dataset: str
    version: str | None
    """None for raw data, which has no versions."""
    sha256: str
    path: str
    """Relative to the project."""
    manifest: str | None = None
    """Path of the manifest that committed it, relative to the manifests' folder; None for raw
    data."""
    manifest_sha256: str | None = None
    """The seal of that manifest."""


@dataclass(frozen=True, slots=True)
class OutputRecord:
    """One dataset that the node wrote."""

    dataset: str
    version: str | None
    """None for a file that every run replaces, such as the report."""
    sha256: str
    path: str
    """Relative to the project."""
    rows: int | None = None
    """None if it is not a table."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The record of one node run."""

    experiment: str
    node: str
    """Full name, such as ``iter_00003.score_rewards``."""
    version: str
    """The Kedro save version of its outputs, which is the id of the Kedro run."""
    inputs: tuple[InputRecord, ...]
    outputs: tuple[OutputRecord, ...]
    parameters: Mapping[str, Any]
    """The parameters that the node read, with defaults filled in."""
    seed: int | None
    """The experiment's seed."""
    code: Mapping[str, Any]
    """Package version, sha256 of the sources, and in a git checkout the commit and whether it is
    dirty."""
    libraries: Mapping[str, str]
    device: str
    started_at: str
    """ISO 8601, UTC."""
    ended_at: str
    seconds: float
    """Wall-clock seconds of computing and saving."""
    environment: str | None = None
    """The Kedro configuration environment (``--env``)."""
    branch: int = 0
    """The branch whose parameters it has; see `agent_r1.lineage.branches`."""
    replaces: str | None = None
    """The node's version that was current when this one was made; None for the first."""
    aside: bool = False
    """Set aside: readable by its version, never loaded by default. A rerun that keeps what is
    downstream sets its result aside if it differs."""
    pruned: tuple[str, ...] = ()
    """Outputs that retention has deleted since; their hashes stay."""
    format: int = FORMAT

    @property
    def iteration(self) -> str:
        """See `iteration_of`."""
        return iteration_of(self.node)

    @property
    def stage(self) -> str:
        """The node's name without its namespace."""
        return self.node.rpartition(".")[2]

    @property
    def place(self) -> str:
        """Its path below the manifests' folder."""
        return f"{self.iteration}/{self.stage}/{self.version}.json"

    def output(self, dataset: str) -> OutputRecord | None:
        """The record of this output, if the node wrote it."""
        return next((record for record in self.outputs if record.dataset == dataset), None)

    @property
    def seal(self) -> str:
        """sha256 of everything in it except ``pruned``; later manifests name this one by it."""
        return self.to_json()[SEAL]

    def to_json(self) -> dict[str, Any]:
        """Plain values for `agent_r1.storage.atomic.strict_json`, with the seal."""
        return sealed(asdict(self), _OPEN)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Manifest:
        """The inverse of `to_json`.

        Raises:
            ValueError: fields are missing or unknown, the format is another one, or the seal does
                not match.
        """
        if not isinstance(values, Mapping):
            raise ValueError(f"a manifest is a JSON object, got {type(values).__name__}")
        if values.get("format") != FORMAT:
            raise ValueError(f"manifest format {values.get('format')!r}; this code reads {FORMAT}")
        if unknown := set(values) - {SEAL, *(known.name for known in fields(cls))}:
            raise ValueError(f"not a manifest: it has the unknown fields {sorted(unknown)}")
        check_seal(values, _OPEN)
        try:
            inputs = tuple(InputRecord(**record) for record in values["inputs"])
            outputs = tuple(OutputRecord(**record) for record in values["outputs"])
            own = {key: value for key, value in values.items() if key != SEAL}
            own |= {"inputs": inputs, "outputs": outputs, "pruned": tuple(values["pruned"])}
            return cls(**own)
        except (TypeError, KeyError) as error:
            raise ValueError(f"not a manifest: {error}") from None


_OPEN = frozenset({"pruned"})
