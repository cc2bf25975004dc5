"""Sources of tasks by their names in ``conf/``.

To add a source, write a file with a `Source` in this folder and add a line to `SOURCES`. A source
outside the project is named by its import path: ``my_package.puzzles:SOURCE``.
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
"""Name → import path; imported on first use. The first source made for an environment is that
environment's default."""


def find_source(name: str) -> Source:
    """The source with this registered name or import path.

    Raises:
        ParameterError: as in `named_object`.
    """
    return named_object("source of tasks", name, SOURCES, Source)


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
