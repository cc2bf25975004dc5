"""The parameter group ``tasks``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, SerializeAsAny, field_validator

from agent_r1.parameters import ParameterError
from agent_r1.tasks.choices import TaskChoices
from agent_r1.tasks.registry import find_source
from agent_r1.tasks.source import SourceParameters


class TasksParameters(TaskChoices):
    """The group ``tasks`` of ``conf/``."""

    sources: dict[str, SerializeAsAny[SourceParameters]] = Field(default_factory=dict)
    """Name of a source → its parameters. Several sources are mixed. If empty, the default source
    of the environment is used (`agent_r1.tasks.registry`). A source that is null is off."""

    @field_validator("sources", mode="before")
    @classmethod
    def _read_sources(cls, sources: Any) -> Any:
        if not isinstance(sources, Mapping):
            raise ParameterError("must map the name of each source to its parameters")
        return {
            name: find_source(name).parameters.read(values, name)
            for name, values in sources.items()
            if values is not None
        }
