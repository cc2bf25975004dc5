"""Sources of tasks by their names in ``conf/``.

To add a source, write a file with a `Source` in this folder and add a line to `SOURCES`. A source
outside the project is named by its import path: ``my_package.puzzles:SOURCE``.
"""

from __future__ import annotations

import pkgutil

from agent_r1.parameters import ParameterError, nearest
from agent_r1.tasks.source import Source

SOURCES: dict[str, str] = {
    "knowledge_base": "agent_r1.tasks.multihop:SOURCE",
    "hotpotqa": "agent_r1.tasks.hotpotqa:SOURCE",
    "2wikimultihopqa": "agent_r1.tasks.two_wiki:SOURCE",
    "musique": "agent_r1.tasks.musique:SOURCE",
    "fanoutqa": "agent_r1.tasks.fanoutqa:SOURCE",
    "wikipedia": "agent_r1.tasks.wikipedia:SOURCE",
    "word_problems": "agent_r1.tasks.word_problems:SOURCE",
    "gsm8k": "agent_r1.tasks.gsm8k:SOURCE",
    "reasoning_gym": "agent_r1.tasks.reasoning_gym:SOURCE",
    "functions": "agent_r1.tasks.functions:SOURCE",
    "humaneval": "agent_r1.tasks.humaneval:SOURCE",
    "mbpp": "agent_r1.tasks.mbpp:SOURCE",
    "textworld": "agent_r1.tasks.textworld:SOURCE",
}
"""Name → import path; imported on first use. The first source made for an environment is that
environment's default."""


def find_source(name: str) -> Source:
    """The source with this name or import path (``package.module:NAME``).

    Raises:
        ParameterError: the source does not exist. The message gives the nearest known name.
    """
    path = SOURCES.get(name, name)
    if ":" not in path:
        raise ParameterError(
            f"unknown source of tasks '{name}'.{nearest(name, SOURCES)} "
            "Name a source of your own by its import path: 'package.module:SOURCE'."
        )
    try:
        found = pkgutil.resolve_name(path)
    except (ImportError, AttributeError, ValueError) as error:
        raise ParameterError(f"source of tasks '{name}' cannot be imported: {error}") from error
    if not isinstance(found, Source):
        raise ParameterError(f"source of tasks '{name}' is not a Source: {found!r}")
    return found


def default_source(environment: str) -> str:
    """The name of the first source that is made for an environment.

    Raises:
        ParameterError: no source is made for it.
    """
    for name in SOURCES:
        if find_source(name).environment == environment:
            return name
    raise ParameterError(
        f"the environment '{environment}' has no default source of tasks. Name one in "
        f"tasks.sources, such as tasks.sources.knowledge_base.environment: {environment}"
    )
