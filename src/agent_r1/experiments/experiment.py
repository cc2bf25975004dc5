"""What a catalog says of its experiment: which one it is, and its parameters."""

from __future__ import annotations

from kedro.io import CatalogProtocol

from agent_r1.configuration.groups import Resolved
from agent_r1.datasets import HistoryDataset
from agent_r1.lineage import Experiment
from agent_r1.parameters import ParameterError


def experiment_of(catalog: CatalogProtocol) -> Experiment:
    """The experiment that the catalog's datasets belong to: that of its entry ``history``.

    Raises:
        ParameterError: the catalog has no such entry.
    """
    return history_of(catalog).experiment


def history_of(catalog: CatalogProtocol) -> HistoryDataset:
    """The catalog's entry ``history``, which the report reads.

    Raises:
        ParameterError: there is no such entry.
    """
    dataset = catalog.get("history")
    if not isinstance(dataset, HistoryDataset):
        raise ParameterError(
            "the catalog needs an entry 'history' of type agent_r1.datasets.HistoryDataset; see "
            "conf/base/catalog.yml"
        )
    return dataset


def resolved_parameters(catalog: CatalogProtocol) -> Resolved:
    """The parameters of a run, as the configuration loader validated them.

    Raises:
        ParameterError: the experiment's name is not that of the paths.
    """
    resolved = Resolved.of(catalog.load("parameters"))
    in_path = experiment_of(catalog).name
    if in_path != resolved.experiment.experiment:
        raise ParameterError(
            f"parameter 'experiment' is '{resolved.experiment.experiment}', but the catalog's "
            f"paths say '{in_path}': set it in globals.yml or by --params experiment=NAME"
        )
    return resolved
