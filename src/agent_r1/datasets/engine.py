"""The generation engine as a catalog entry: it lives as long as the process."""

from __future__ import annotations

from typing import Any, NoReturn

from kedro.io import AbstractDataset, DatasetError

from agent_r1.extras import named_object
from agent_r1.parameters import ParameterError

_ENGINES: dict[str, Any] = {}
"""The process's engines, by type and options. Engines keep weights and caches between runs."""


class EngineDataset(AbstractDataset):
    """Loads the process's one engine of this type and these options; made on first use.

    Every Kedro run builds a catalog of its own. The engine outlives them, so that an iteration
    starts with a warm one. No result depends on what it keeps: the policy is an input of each node
    that generates.
    """

    _EPHEMERAL = True
    _SINGLE_PROCESS = True

    def __init__(
        self,
        *,
        engine: str = "agent_r1.engines.local.LocalEngine",
        options: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        """
        Args:
            engine: import path of a class that implements `agent_r1.engines.base.Engine`.
            options: keyword arguments of its constructor, such as ``device`` and ``threads``.
            metadata: ignored.
        """
        self._engine = engine
        self._options = dict(options or {})
        self.metadata = metadata

    def load(self) -> Any:
        """The engine.

        Raises:
            DatasetError: there is no such class, or it refuses the options.
        """
        key = f"{self._engine}({sorted(self._options.items())})"
        if key not in _ENGINES:
            try:
                make = named_object("engine", self._engine, {}, type)
            except ParameterError as error:
                raise DatasetError(str(error)) from error
            _ENGINES[key] = make(**self._options)
        return _ENGINES[key]

    def save(self, data: Any) -> NoReturn:
        """Engines are not saved."""
        raise DatasetError("the engine is not a result: no node may return it")

    def _exists(self) -> bool:
        return True

    def _describe(self) -> dict[str, Any]:
        return {"engine": self._engine, "options": self._options}
