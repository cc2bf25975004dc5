"""Algorithms as presets: ``--params algorithm=NAME`` reads ``conf/algorithms/NAME.yml``.

1. The parameters of ``conf/base``;
2. over them the preset's, key by key;
3. over them those of the configuration environment (``conf/local``, or ``--env``);
4. over them ``--params``.

So a preset says what its paper says, and what a user writes has the last word. Kedro has two layers
of files; `agent_r1.configuration.loader` adds the third.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

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


def chosen_algorithm(files: Iterable[DictConfig]) -> str | None:
    """The name that the last of these parameters files gives; None if none does."""
    named = [file.get("algorithm") for file in files if "algorithm" in file]
    return named[-1] if named else None


def lay_over(base: Sequence[DictConfig], preset: DictConfig, name: str) -> None:
    """Put a preset's keys over those of the base files, in place.

    Args:
        base: the parameters files of ``conf/base``.
        preset: groups of parameters.
        name: of the algorithm.

    Raises:
        ParameterError: the preset has a group that no base file has; the nearest one is named.
    """
    for group in map(str, preset):
        file = next((file for file in base if group in file), None)
        if file is None:
            known = [str(key) for file in base for key in file]
            raise ParameterError(
                f"algorithm '{name}': unknown group '{group}'.{nearest(group, known)}"
            )
        file.merge_with({group: preset[group]})
