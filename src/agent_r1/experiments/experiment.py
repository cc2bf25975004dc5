"""What a catalog says of its experiment: which one it is, and its parameters."""

from __future__ import annotations

from typing import Any

from kedro.io import CatalogProtocol

from agent_r1.configuration.groups import plain
from agent_r1.datasets import HistoryDataset
from agent_r1.lineage import Experiment
from agent_r1.parameters import ParameterError


def experiment_of(catalog: CatalogProtocol) -> Experiment:
    """The experiment that the catalog's datasets belong to: that of its entry ``history``.

    Raises:
        ParameterError: the catalog has no such entry.
    """
    dataset = catalog.get("history")
    if not isinstance(dataset, HistoryDataset):
        raise ParameterError(
            "the catalog needs an entry 'history' of type agent_r1.datasets.HistoryDataset; see "
            "conf/base/catalog.yml"
        )
    return dataset.experiment


def parameters_of(catalog: CatalogProtocol) -> dict[str, Any]:
    """The parameters of a run, as the configuration loader validated them.

    Raises:
        ParameterError: the experiment's name is not that of the paths.
    """
    parameters = plain(catalog.load("parameters"))
    in_path = experiment_of(catalog).name
    if in_path != parameters["experiment"]:
        raise ParameterError(
            f"parameter 'experiment' is '{parameters['experiment']}', but the catalog's "
            f"paths say '{in_path}': set it in globals.yml or by --params experiment=NAME"
        )
    return parameters
