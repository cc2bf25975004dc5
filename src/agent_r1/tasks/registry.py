"""Sources of tasks by their name in ``conf/``.

A new one is a file here with a `Source` in it, and a line below; or, outside the project, an import
path as its name: ``my_package.puzzles:SOURCE``.
"""

from __future__ import annotations

from agent_r1.extras import named_object
from agent_r1.parameters import ParameterError
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
    """The source that a name or an import path stands for.

    Raises:
        ParameterError: as `named_object`.
    """
    return named_object("source of tasks", name, SOURCES, Source)


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
