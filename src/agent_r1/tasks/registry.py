"""Sources of tasks by the name that stands in ``conf/``.

A new one is a file here with a `Source` in it, and a line below; or, outside the project, an import
path as its name: ``my_package.puzzles:SOURCE``.
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
"""Name → import path; imported when asked for. Of the sources that are made for an environment, the
first one is its default."""


def find_source(name: str) -> Source:
    """The source that a name or an import path (``package.module:NAME``) stands for.

    Raises:
        ParameterError: there is none; the nearest known name is given.
    """
    path = SOURCES.get(name, name)
    if ":" not in path:
        raise ParameterError(
            f"unknown source of tasks '{name}'.{nearest(name, SOURCES)} "
            "One of your own is named by its import path: 'package.module:SOURCE'."
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
        ParameterError: there is none.
    """
    for name in SOURCES:
        if find_source(name).environment == environment:
            return name
    raise ParameterError(
        f"no source of tasks is made for the environment '{environment}': name one in "
        f"tasks.sources, such as tasks.sources.knowledge_base.environment: {environment}"
    )
