"""What one group of parameters needs of another.

Each row of `CONFLICTS` is valid group by group. Yet it would fail only when the first update is
due, or it trains nothing and looks well, or something that was asked for has no effect. A row says
when that is so, and what to do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from agent_r1.advantages.registry import ESTIMATORS, Estimator, estimator
from agent_r1.losses.base import Objective
from agent_r1.losses.registry import objective
from agent_r1.parameters import Problem
from agent_r1.schemas import SPLITS
from agent_r1.tasks.registry import find_source
from agent_r1.tasks.source import SourceParameters

_NAME = re.compile(r"\{(.+?)\}")


class Chosen(NamedTuple):
    """All parameters, and what the names among them stand for."""

    groups: Mapping[str, Mapping[str, Any]]
    """Group → plain values, defaults filled in."""
    estimator: Estimator
    objective: Objective

    def value(self, name: str) -> Any:
        """What stands under a dotted name."""
        value: Any = self.groups
        for part in name.split("."):
            value = value[part]
        return value


class Conflict(NamedTuple):
    """Parameters that do not go together."""

    applies: Callable[[Chosen], bool]
    what: str
    """``{dotted.name}`` stands for the value."""
    remedy: str
    """What to set, as an imperative."""


def _needs_reference(name: str, applies: Callable[[Chosen], bool]) -> Conflict:
    return Conflict(
        lambda chosen: not chosen.value("logprobs.reference") and applies(chosen),
        f"{name} is {{{name}}}, which compares with the reference policy",
        "set logprobs.reference to true",
    )


def _with_critic(chosen: Chosen) -> bool:
    return chosen.value("update.critic.backbone") != "none"


def _whitens(chosen: Chosen) -> bool:
    asked = chosen.value("advantage.whiten")
    return chosen.estimator.whitens if asked is None else asked


def _single(chosen: Chosen) -> bool:
    return chosen.value("rollout.group_size") == 1


def _without_terms(chosen: Chosen) -> bool:
    environments = chosen.value("reward.environments").values()
    return not any([chosen.value("reward.terms"), *(each["terms"] for each in environments)])


_WITH_RETURNS = ", ".join(name for name, known in ESTIMATORS.items() if known.has_returns)
_WITHOUT_GROUPS = ", ".join(name for name, known in ESTIMATORS.items() if not known.compares)

CONFLICTS = (
    Conflict(
        lambda chosen: chosen.estimator.needs_values and not _with_critic(chosen),
        "advantage.estimator is {advantage.estimator}, and without a critic the value of every "
        "state is 0",
        "set update.critic.backbone to own or shared, and logprobs.values to true",
    ),
    Conflict(
        lambda chosen: chosen.estimator.needs_values and not chosen.value("logprobs.values"),
        "advantage.estimator is {advantage.estimator}, which reads the critic's values",
        "set logprobs.values to true",
    ),
    Conflict(
        lambda chosen: _with_critic(chosen) and not chosen.value("logprobs.values"),
        "update.critic.backbone is {update.critic.backbone}, and the critic learns from its own "
        "values",
        "set logprobs.values to true",
    ),
    Conflict(
        lambda chosen: _with_critic(chosen) and not chosen.estimator.has_returns,
        "update.critic.backbone is {update.critic.backbone}, but advantage.estimator "
        "{advantage.estimator} has no returns that a critic could learn",
        f"set advantage.estimator to one of {_WITH_RETURNS}, or update.critic.backbone to none",
    ),
    _needs_reference("advantage.kl_coef", lambda chosen: chosen.value("advantage.kl_coef") > 0),
    _needs_reference("update.kl_coef", lambda chosen: chosen.value("update.kl_coef") > 0),
    _needs_reference("update.objective", lambda chosen: chosen.objective.needs_reference),
    Conflict(
        lambda chosen: (
            chosen.value("advantage.kl_coef") > 0 and chosen.objective.trains_on == "pairs"
        ),
        "advantage.kl_coef is {advantage.kl_coef}, but update.objective {update.objective} reads "
        "preferences, which are made of the rewards without the KL",
        "set advantage.kl_coef to 0 (update.beta is what holds the policy to the reference)",
    ),
    Conflict(
        lambda chosen: chosen.value("advantage.whiten_by") != "batch" and not _whitens(chosen),
        "advantage.whiten_by is {advantage.whiten_by}, but nothing is whitened",
        "set advantage.whiten to true, or advantage.whiten_by to batch",
    ),
    Conflict(
        lambda chosen: _single(chosen) and chosen.estimator.compares,
        "rollout.group_size is 1, but advantage.estimator {advantage.estimator} compares the "
        "trajectories of a group, so every advantage would be 0",
        f"set rollout.group_size to 2 or more, or advantage.estimator to one of {_WITHOUT_GROUPS}",
    ),
    Conflict(
        lambda chosen: _single(chosen) and chosen.objective.trains_on != "advantages",
        "rollout.group_size is 1, but update.objective {update.objective} chooses among the "
        "trajectories of a group",
        "set rollout.group_size to 2 or more",
    ),
    Conflict(
        lambda chosen: (
            chosen.value("update.strategy") == "deepspeed"
            and chosen.value("model.dtype") != "float32"
        ),
        "model.dtype is {model.dtype}, and update.strategy deepspeed trains in float32",
        "set model.dtype to float32, or update.strategy to torch",
    ),
    Conflict(
        _without_terms,
        "reward.terms is empty, so every reward would be 0",
        "give it a term, such as outcome",
    ),
    Conflict(
        lambda chosen: chosen.value("sft.enabled") and not chosen.value("demonstrations.count"),
        "demonstrations.count is 0, so the warm start has nothing to imitate",
        "set sft.enabled to false, or demonstrations.count to 1 or more",
    ),
    Conflict(
        lambda chosen: chosen.value("stop.exact_match") and not chosen.value("evaluation.every"),
        "stop.exact_match is {stop.exact_match}, but evaluation.every is 0, so nothing is measured "
        "before the last iteration",
        "set evaluation.every to 1 or more",
    ),
)
"""What is refused before any work starts."""


def conflicts(groups: Mapping[str, Mapping[str, Any]]) -> list[Problem]:
    """A problem for each row of `CONFLICTS` that applies to validated parameters."""
    chosen = Chosen(
        groups,
        estimator(groups["advantage"]["estimator"]),
        objective(groups["update"]["objective"]),
    )
    return [
        Problem(_NAME.sub(lambda name: str(chosen.value(name[1])), row.what), remedy=row.remedy)
        for row in CONFLICTS
        if row.applies(chosen)
    ]


def source_conflicts(
    groups: Mapping[str, Mapping[str, Any]], sources: Mapping[str, SourceParameters]
) -> list[Problem]:
    """A problem for each split that is played and has no tasks, and for each source whose tasks
    could never be rewarded.

    Args:
        groups: all parameters, validated.
        sources: what the tasks are made by (`agent_r1.tasks.preparation.chosen_sources`).
    """
    return [*_empty_splits(groups, sources), *_blind_metrics(groups["reward"], sources)]


def _empty_splits(
    groups: Mapping[str, Mapping[str, Any]], sources: Mapping[str, SourceParameters]
) -> Iterator[Problem]:
    played = {"train": "training plays", "validation": "validate_policy plays"}
    played |= dict.fromkeys(groups["evaluation"]["splits"], "evaluation.splits names")
    for split, who in played.items():
        if not groups["tasks"]["sizes"][split]:
            yield Problem(
                f"{who} the split '{split}', but tasks.sizes.{split} is 0",
                remedy="set it to 1 or more",
            )
        elif not any(own.gives(split) for own in sources.values()):
            splits = {name: ", ".join(_splits(own)) for name, own in sources.items()}
            have = (f"{name} has {those or 'none'}" for name, those in splits.items())
            yield Problem(
                f"{who} the split '{split}', but no source of tasks has it ({'; '.join(have)})",
                remedy="give it a file or a source"
                + (", or take it out of evaluation.splits" if who.startswith("eval") else ""),
            )


def _splits(own: SourceParameters) -> list[str]:
    return [split for split in SPLITS if own.gives(split)]


def _blind_metrics(
    reward: Mapping[str, Any], sources: Mapping[str, SourceParameters]
) -> Iterator[Problem]:
    for name, own in sources.items():
        source = find_source(name)
        if own.environment not in (None, source.environment) or not source.metrics:
            continue
        path = f"reward.environments.{source.environment}"
        special = reward["environments"].get(source.environment)
        outcome = (special or reward)["terms"].get("outcome")
        if outcome is None or outcome["metric"] in source.metrics:
            continue
        if "environment" in source.metrics and "environment" in (special or reward)["terms"]:
            continue
        place = f"{path if special else 'reward'}.terms.outcome.metric"
        alone = "" if special or len(sources) == 1 else f", or for these tasks alone {path}.terms"
        yield Problem(
            f"{place} is {outcome['metric']}, which cannot tell whether a task of '{name}' is "
            "solved",
            remedy=f"set it to {' or '.join(source.metrics)}{alone}",
        )
