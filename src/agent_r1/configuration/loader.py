"""How the project reads ``conf/``: Kedro's loader, presets, validation, and complete entries.

1. An algorithm's preset goes between ``conf/base`` and the environment; see
   `agent_r1.configuration.presets`.
2. The merged parameters are validated (`agent_r1.configuration.groups`), and Kedro gets the result.
   So all problems are in one message, before Kedro makes any group into its model; and the defaults
   are filled in, so that a node reads what its manifest records.
3. Each catalog entry of the project's own datasets gets its name and its experiment, which is that
   of the entry ``history``. So an entry that moves a layer, such as in ``conf/local/catalog.yml``,
   needs no key for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from agent_r1.configuration.groups import read_parameters
from agent_r1.configuration.presets import chosen_algorithm, lay_over, read_preset
from agent_r1.kedro_adapter import LayeredConfigLoader

_OWN = "agent_r1.datasets."


class ProjectConfigLoader(LayeredConfigLoader):
    """The loader that ``settings.py`` names."""

    validates: bool = True
    """Whether ``parameters`` are validated. A command that only reads what is committed does not
    need it, and the models take seconds to import."""

    def __getitem__(self, key: str) -> dict[str, Any]:
        """
        Raises:
            ParameterError: a parameter is unknown or has a bad value.
        """
        values = super().__getitem__(key)
        if key == "parameters" and self.validates:
            return read_parameters(values)
        return values

    def lay_over_base(self, base: Sequence[DictConfig], environment: Sequence[DictConfig]) -> None:
        """The parameters of ``conf/base`` with the preset of the chosen algorithm over them.

        Raises:
            ParameterError: there is no such preset, or it has an unknown group.
        """
        asked = (self.runtime_params or {}).get("algorithm")
        name = asked if asked is not None else chosen_algorithm([*base, *environment])
        if name is not None:
            lay_over(base, read_preset(Path(self.conf_source), name), name)

    def complete_catalog(self, entries: Mapping[str, Any]) -> dict[str, Any]:
        """The entries with ``experiment``, and ``name`` where there are versions."""
        history = entries.get("history")
        if not isinstance(history, Mapping) or "filepath" not in history:
            return dict(entries)
        # Kedro makes the values of keys called `path` and `filepath` absolute, at any depth.
        experiment = {"path": ".", "filepath": history["filepath"]}
        return {name: _complete(name, entry, experiment) for name, entry in entries.items()}


def _complete(name: str, entry: Any, experiment: Mapping[str, str]) -> Any:
    if not isinstance(entry, Mapping) or not str(entry.get("type", "")).startswith(_OWN):
        return entry
    if name == "history":
        return {"experiment": dict(experiment), **entry}
    if entry.get("versioned"):
        return {"experiment": dict(experiment), "name": name, **entry}
    return entry
