"""Where every result came from: manifests, and the datasets that they commit."""

from agent_r1.lineage.experiment import Experiment
from agent_r1.lineage.manifest import InputRecord, Manifest, OutputRecord
from agent_r1.lineage.store import Committed, LineageError, ManifestStore, iteration_of

__all__ = [
    "Committed",
    "Experiment",
    "InputRecord",
    "LineageError",
    "Manifest",
    "ManifestStore",
    "OutputRecord",
    "iteration_of",
]
