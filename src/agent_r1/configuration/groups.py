"""The top level of the parameters in ``conf/``: every group, its model, and checks across groups.

Everything here runs before any work starts, so that a misspelt key costs a second and not an hour.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, field_validator

from agent_r1.lineage.branches import flatten, nested, without_retired
from agent_r1.parameters import ParameterError, Parameters, nearest

GROUPS: dict[str, str] = {
    "model": "agent_r1.training.policy:ModelParameters",
    "tasks": "agent_r1.tasks.parameters:TasksParameters",
    "environment": "agent_r1.environments.base:EnvironmentParameters",
    "chat": "agent_r1.chat:ChatParameters",
    "demonstrations": "agent_r1.tasks.demonstrations:DemonstrationParameters",
    "sft": "agent_r1.training.sft:SftParameters",
    "rollout": "agent_r1.rollout:RolloutParameters",
    "reward": "agent_r1.rewards:RewardParameters",
    "logprobs": "agent_r1.training.logprobs:LogprobParameters",
    "advantage": "agent_r1.advantages:AdvantageParameters",
    "update": "agent_r1.training.update:UpdateParameters",
    "evaluation": "agent_r1.pipelines.evaluation.parameters:EvaluationParameters",
    "stop": "agent_r1.configuration.groups:StopParameters",
    "mlflow": "agent_r1.configuration.groups:MlflowParameters",
    "retention": "agent_r1.lineage.retention:RetentionParameters",
    "pretrain": "agent_r1.shipped.pretraining.train:PretrainParameters",
    "knowledge_base": "agent_r1.shipped.knowledge_base.nodes:KnowledgeBaseParameters",
}
"""Group → ``module:model``. Imported when parameters are read, not when the CLI starts."""


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


class ExperimentParameters(Parameters):
    """The parameters that stand at the top level, outside any group."""

    experiment: str = "default"
    """Name; part of every path, so at most 100 letters, digits, ``_`` and ``-``."""
    algorithm: str = "grpo"
    """Name of a preset in ``conf/algorithms``; see `agent_r1.configuration.presets`."""
    seed: int = Field(default=0, ge=0)
    """Every random draw is derived from it."""
    iterations: int = Field(default=18, ge=0)
    """Iterations of RL. 0 ends after SFT."""

    @field_validator("experiment", mode="before")
    @classmethod
    def _name(cls, value: Any) -> Any:
        """``--params experiment=7`` arrives as a number."""
        name = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(
                "a name has at most 100 letters, digits, '_' and '-', and begins with a letter or "
                "a digit"
            )
        return name


class StopParameters(Parameters):
    """``stop`` in ``conf/``: when the driver ends an experiment before its last iteration."""

    exact_match: float | None = Field(default=None, gt=0, le=1)
    """End when the validation split reaches this; null never does."""


class MlflowParameters(Parameters):
    """``mlflow`` in ``conf/``: where runs are tracked."""

    enabled: bool = True
    """False tracks nothing."""
    tracking_uri: str = "sqlite:///mlflow.db"
    """Where runs are stored; a relative sqlite path is below the project."""
    experiment_name: str = "agent-r1"
    """The MLflow experiment, which holds one parent run per experiment of this project."""


class Resolved(BaseModel):
    """Validated parameters, defaults filled in."""

    experiment: ExperimentParameters
    groups: dict[str, dict[str, Any]]
    """Group → plain values."""

    def lookup(self, name: str) -> Any:
        """The value of a Kedro input such as ``params:rollout.temperature`` or ``parameters``."""
        everything = {**self.experiment.model_dump(), **self.groups}
        if name == "parameters":
            return everything
        value: Any = everything
        for part in name.removeprefix("params:").split("."):
            value = value[part]
        return value

    def flat(self) -> dict[str, Any]:
        """All of them by dotted names, as an experiment's branches record them."""
        return flatten(self.lookup("parameters"))


def read_parameters(values: Mapping[str, Any]) -> Resolved:
    """Validate all parameters.

    Args:
        values: the merged content of ``conf/*/parameters*.yml`` and ``--params``.

    Raises:
        ParameterError: an unknown group or key (the nearest known one is named), or a bad value;
            all problems in one message, a line each.
    """
    values = {key: _plain(value) for key, value in values.items()}
    scalars = ExperimentParameters.model_fields
    problems = [
        f"unknown parameter '{key}'.{nearest(key, [*GROUPS, *scalars])}"
        for key in sorted(set(values) - set(GROUPS) - set(scalars))
    ]
    top = {key: value for key, value in values.items() if key in scalars}
    experiment = _read(ExperimentParameters, top, "parameters", problems)
    groups: dict[str, dict[str, Any]] = {}
    for group in GROUPS:
        model = _read(_model(group), values.get(group), group, problems)
        if model is not None:
            groups[group] = _with_options(model).model_dump(mode="json")
    if problems or experiment is None:
        raise ParameterError("\n".join(problems))
    return Resolved(experiment=experiment, groups=groups)


def recorded_parameters(flat: Mapping[str, Any]) -> dict[str, Any]:
    """What an experiment's recorded parameters mean to this version of the program.

    A parameter that is newer than the experiment has its default, which stands for what was done
    before there was a choice; one that is no more is left out if what it said is what is done now.
    Records that cannot be read (something that they name is gone) are given as they are.

    Args:
        flat: by dotted names, as `Resolved.flat` gave them then.
    """
    kept = without_retired(flat)
    try:
        return read_parameters(nested(kept)).flat()
    except ParameterError:
        return kept


def _with_options(group: Parameters) -> Parameters:
    """Of the environment, with the defaults of its own options; any other group as it is."""
    from agent_r1.environments.base import EnvironmentParameters
    from agent_r1.environments.registry import with_defaults

    if not isinstance(group, EnvironmentParameters):
        return group
    try:
        return with_defaults(group)
    except ParameterError:  # `check_references` says so, before any work starts
        return group


def _plain(value: Any) -> Any:
    """Kedro turns a group into its model where a node's annotation says so."""
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value


def _model(group: str) -> type[Parameters]:
    module, _, name = GROUPS[group].partition(":")
    return getattr(import_module(module), name)


def _read(
    model: type[Parameters], values: Any, group: str, problems: list[str]
) -> Parameters | None:
    if values is not None and not isinstance(values, Mapping):
        problems.append(f"parameter '{group}' must be a group of keys, got {values!r}.")
        return None
    try:
        return model.read(values, group)
    except ParameterError as error:
        problems.append(str(error).replace("'parameters.", "'"))
        return None


def check_references(
    parameters: Resolved, project: Path, inputs: Collection[str] = ("params:model",)
) -> None:
    """Check what the parameters name (environments, sources of tasks, the base model), and that
    the groups go together.

    The estimator, the objective, the reward terms and the like are checked by their groups.

    Args:
        parameters: all of them.
        project: root of the project.
        inputs: what is read by the pipeline that is about to run. Without the group ``model``,
            the base model may be missing: ``pretrain`` makes one.

    Raises:
        ParameterError: something is named that does not exist, or cannot be used, or is needed and
            is switched off.
    """
    from agent_r1.configuration.conflicts import conflicts, source_conflicts
    from agent_r1.environments import EnvironmentParameters, check_environment
    from agent_r1.environments.registry import environment_class
    from agent_r1.tasks.parameters import TasksParameters
    from agent_r1.tasks.preparation import chosen_sources
    from agent_r1.tasks.registry import find_source
    from agent_r1.training.policy import ModelFolderError, check_model_folder

    groups = parameters.groups
    check_environment(EnvironmentParameters(**groups["environment"]))
    sources = chosen_sources(TasksParameters(**groups["tasks"]), groups["environment"]["name"])
    for name, source in sources.items():
        try:
            environment_class(source.environment or find_source(name).environment)
        except ParameterError as error:
            raise ParameterError(f"parameter 'tasks.sources.{name}': {error}") from None
    for name in groups["reward"]["environments"]:
        try:
            environment_class(name)
        except ParameterError as error:
            raise ParameterError(f"parameter 'reward.environments': {error}") from None
    if problems := [*conflicts(groups), *source_conflicts(groups, sources)]:
        raise ParameterError("\n".join(problems))
    if not any(f"{name}.".startswith(("params:model.", "parameters.")) for name in inputs):
        return
    try:
        check_model_folder(project / groups["model"]["path"])
    except ModelFolderError as error:
        raise ParameterError(str(error)) from None


def check_base(parameters: Resolved, project: Path) -> None:
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

    groups = parameters.groups
    rollout, chat = RolloutParameters(**groups["rollout"]), ChatParameters(**groups["chat"])
    check_policy(project / groups["model"]["path"], rollout, chat)
    connect_servers(EnvironmentParameters(**groups["environment"]))
