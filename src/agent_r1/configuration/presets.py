"""Algorithms as presets: ``--params algorithm=NAME`` reads ``conf/algorithms/NAME.yml``.

1. The parameters of ``conf/base``;
2. over them the preset's, key by key;
3. over them those of the configuration environment (``conf/local``, or ``--env``);
4. over them ``--params``.

So a preset says what its paper says, and what a user writes has the last word. Kedro has two layers
of files; this module is the one place that adds a third, and a contract test runs against the
installed Kedro.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kedro.config import OmegaConfigLoader
from omegaconf import DictConfig, OmegaConf

from agent_r1.parameters import ParameterError, nearest

FOLDER = "algorithms"
"""Of the presets, in ``conf/``."""


def read_preset(conf: Path, name: str) -> DictConfig:
    """What the preset says: groups of parameters.

    Args:
        conf: the configuration folder.
        name: of the algorithm.

    Raises:
        ParameterError: there is no such preset; the nearest one is named.
    """
    folder = conf / FOLDER
    path = folder / f"{name}.yml"
    if not path.is_file():
        known = [file.stem for file in folder.glob("*.yml")]
        raise ParameterError(f"there is no algorithm '{name}'.{nearest(str(name), known)}")
    loaded = OmegaConf.load(path)
    if not isinstance(loaded, DictConfig):
        raise ParameterError(f"{path} must be groups of parameters")
    return loaded


class PresetConfigLoader(OmegaConfigLoader):
    """Kedro's configuration loader, with the preset between ``base`` and the environment."""

    def _read_raw_config(self, key: str) -> tuple[Any, ...]:
        raw = super()._read_raw_config(key)
        if key == "parameters":
            base, environment = raw[0], raw[1]
            name = self._algorithm(base.values(), environment.values())
            if name is not None:
                self._lay_over(base.values(), read_preset(Path(self.conf_source), name), name)
        return raw

    def _algorithm(
        self, base: Iterable[DictConfig], environment: Iterable[DictConfig]
    ) -> str | None:
        named = [file.get("algorithm") for file in (*base, *environment) if "algorithm" in file]
        asked = (self.runtime_params or {}).get("algorithm")
        return asked if asked is not None else named[-1] if named else None

    def _lay_over(self, base: Iterable[DictConfig], preset: DictConfig, name: str) -> None:
        files = list(base)
        for group, values in preset.items():
            file = next((file for file in files if group in file), None)
            if file is None:
                known = [str(key) for file in files for key in file]
                raise ParameterError(
                    f"algorithm '{name}': unknown group '{group}'.{nearest(str(group), known)}"
                )
            file.merge_with({group: values})
