"""Checks of what the parameters name: environments, sources of tasks, the base model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_r1.parameters import ParameterError, Problem


def check_references(
    parameters: Mapping[str, Any], project: Path, inputs: Collection[str] = ("params:model",)
) -> None:
    """Check what the parameters name, and that the groups go together.

    A name that one group alone needs (the estimator, the objective, a reward term, an environment)
    is checked by that group.

    Args:
        parameters: all of them.
        project: root of the project.
        inputs: what is read by the pipeline that is about to run. Without the group ``model``,
            the base model may be missing: ``pretrain`` makes one.

    Raises:
        ParameterError: a name does not exist or cannot be used, or something that is needed is
            switched off; all problems at once.
    """
    from agent_r1.configuration.conflicts import conflicts, source_conflicts
    from agent_r1.tasks.parameters import TasksParameters
    from agent_r1.tasks.preparation import chosen_sources
    from agent_r1.tasks.registry import find_source
    from agent_r1.training.policy import ModelFolderError, check_model_folder

    sources = chosen_sources(
        TasksParameters(**parameters["tasks"]), parameters["environment"]["name"]
    )
    named = {
        f"tasks.sources.{name}": own.environment or find_source(name).environment
        for name, own in sources.items()
    }
    unknown = [
        *_unusable(named.items()),
        *_unusable(("reward.environments", name) for name in parameters["reward"]["environments"]),
    ]
    if unknown:  # what goes together cannot be said of names that mean nothing
        raise ParameterError(*unknown)
    if problems := [*conflicts(parameters), *source_conflicts(parameters, sources)]:
        raise ParameterError(*problems)
    if not any(f"{name}.".startswith(("params:model.", "parameters.")) for name in inputs):
        return
    try:
        check_model_folder(project / parameters["model"]["path"])
    except ModelFolderError as error:
        raise ParameterError(str(error)) from None


def _unusable(environments: Iterable[tuple[str, str]]) -> Iterator[Problem]:
    """A problem for each pair of a path and an environment's name that is no environment."""
    from agent_r1.environments.registry import environment_class

    for path, name in environments:
        try:
            environment_class(name)
        except ParameterError as error:
            yield from (problem.inside(path, name) for problem in error.problems)


def check_base(parameters: Mapping[str, Any], project: Path) -> None:
    """Check that the base model can act as the parameters want it, and start the MCP servers.

    It takes a second or two, as it reads a tokenizer: for experiments that begin.

    Raises:
        ParameterError: its chat template does not go with ``chat``, its context is too short for
            ``rollout``, or a server does not start.
    """
    from agent_r1.chat import ChatParameters
    from agent_r1.environments import EnvironmentParameters
    from agent_r1.rollout import RolloutParameters
    from agent_r1.rollout.run import check_policy, connect_servers

    rollout, chat = RolloutParameters(**parameters["rollout"]), ChatParameters(**parameters["chat"])
    check_policy(project / parameters["model"]["path"], rollout, chat)
    connect_servers(EnvironmentParameters(**parameters["environment"]))
