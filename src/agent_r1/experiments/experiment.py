"""What a catalog says of its experiment: its parameters, and where its history is."""

from __future__ import annotations

from kedro.io import CatalogProtocol

from agent_r1.configuration.groups import Resolved, read_parameters
from agent_r1.datasets import HistoryDataset
from agent_r1.parameters import ParameterError


def resolved_parameters(catalog: CatalogProtocol) -> Resolved:
    """The validated parameters of a run.

    Raises:
        ParameterError: see `read_parameters`; or the experiment's name is not that of the paths.
    """
    resolved = read_parameters(catalog.load("parameters"))
    in_path = history_of(catalog).filepath.parent.name
    if in_path != resolved.experiment.experiment:
        raise ParameterError(
            f"parameter 'experiment' is '{resolved.experiment.experiment}', but the catalog's "
            f"paths say '{in_path}': set it in globals.yml or by --params experiment=NAME"
        )
    return resolved


def history_of(catalog: CatalogProtocol) -> HistoryDataset:
    """The catalog's entry that knows where the manifests are."""
    dataset = catalog.get("history")
    if not isinstance(dataset, HistoryDataset):
        raise ParameterError("the catalog has no entry 'history' of type HistoryDataset")
    return dataset
