"""Which parameters an experiment ran with, and when they were changed.

1. An experiment starts on branch 0: the parameters of its first run.
2. A run with other parameters is refused, unless it asks for a new branch. Then committed results
   stay, and everything still to be made gets the new parameters.
3. ``kedro rerun … --downstream cascade`` (or ``fork``) with other parameters starts a branch at a
   node: that node and everything that depends on it are made again with them.

Branch N is ``branches/<N>.json`` beside the manifests, written once, with a seal. A manifest names
its branch. A run continues the newest branch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from agent_r1.lineage.seal import SEAL, check_seal, sealed
from agent_r1.lineage.store import LineageError
from agent_r1.storage.atomic import strict_json, write_json

IRRELEVANT = frozenset(
    {
        # Where results are, how many there are, what is tracked, and the name of the preset, whose
        # values the other parameters have.
        "experiment", "algorithm", "iterations", "stop", "mlflow", "retention", "evaluation.every",
        # Read only by pipelines that no experiment runs.
        "pretrain", "knowledge_base",
    }
)  # fmt: skip
"""Parameters, and groups of parameters, that do not change any node's result."""

RETIRED = {"tasks.environment": "multihop_qa"}
"""Dotted name of a parameter that no longer exists → the value that meant what is done now. Any
other value is a change. (``tasks.environment`` became ``tasks.sources.NAME.environment``.)"""

ABSENT = "(none)"
"""The value of a parameter that one side does not have."""

Reason = Literal["start", "changes", "rerun", "fork"]


@dataclass(frozen=True, slots=True)
class Branch:
    """The parameters from some point on."""

    index: int
    parameters: Mapping[str, Any]
    """All of them by their dotted names; those of `IRRELEVANT` are not compared."""
    reason: Reason = "start"
    start: str | None = None
    """The node that starts the branch: it and all that depends on it belong to the branch. None:
    all that was not made yet."""
    changes: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    """Dotted name → (value in the branch before, value in this one)."""
    experiment: str | None = None
    """The experiment that this one was forked from."""
    created_at: str = ""
    """ISO 8601, UTC."""

    def differing(self, name: str, values: Any) -> dict[str, tuple[Any, Any]]:
        """How the values of a node's input ``params:…`` differ from this branch's parameters."""
        if name == "parameters":
            return {}  # the report reads all of them, to show them
        prefix = name.removeprefix("params:")
        mine = {key: value for key, value in self.parameters.items() if _below(key, prefix)}
        return differences(mine, flatten({prefix: values}))


class BranchBook:
    """The branches of one experiment on disk."""

    def __init__(self, folder: Path) -> None:
        """``folder`` need not exist yet."""
        self.folder = folder

    def all(self) -> list[Branch]:
        """In order.

        Raises:
            LineageError: one is missing or was edited.
        """
        branches = [self._read(path) for path in sorted(self.folder.glob("*.json"))]
        for index, branch in enumerate(branches):
            if branch.index != index:
                raise LineageError(f"branch {index} is missing in {self.folder}")
        return branches

    def newest(self) -> Branch | None:
        """The branch that a run continues; None before the first."""
        branches = self.all()
        return branches[-1] if branches else None

    def write(self, branch: Branch) -> None:
        """Record a branch, unless it is recorded already.

        Raises:
            LineageError: another branch has this number.
        """
        path = self.path(branch.index)
        if not path.exists():
            write_json(path, sealed(asdict(branch)))
        elif self._read(path) != branch:
            raise LineageError(f"{path} already records another branch")

    def path(self, index: int) -> Path:
        """Where a branch is recorded."""
        return self.folder / f"{index:05d}.json"

    def _read(self, path: Path) -> Branch:
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            check_seal(values)
            del values[SEAL]
            changes = {key: tuple(pair) for key, pair in values["changes"].items()}
            return Branch(**{**values, "changes": changes})
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise LineageError(f"cannot read the branch {path}: {error}") from error


class ChangedParametersError(LineageError):
    """A run has other parameters than its experiment; the message lists them."""


def continued(
    book: BranchBook,
    parameters: Mapping[str, Any],
    experiment: str,
    *,
    allow_changes: bool,
    meaning: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict,
) -> Branch:
    """The branch that a run with these parameters continues or starts.

    Args:
        book: the experiment's branches.
        parameters: what `flatten` gives.
        experiment: its name.
        allow_changes: whether other parameters than the newest branch's start a branch.
        meaning: translates recorded parameters of an older version of the program.

    Raises:
        ChangedParametersError: the parameters differ, and changes are not allowed.
    """
    newest = book.newest()
    if newest is None:
        return start(parameters)
    changes = differences(meaning(newest.parameters), parameters)
    if not changes:
        return newest
    if not allow_changes:
        raise ChangedParametersError(
            f"experiment '{experiment}' was run with other parameters:\n{describe(changes)}\n"
            "Give the recorded values again (--params are not remembered), name another experiment "
            "(--params experiment=NAME), or continue with the new values in a branch: "
            "--allow-changes"
        )
    return Branch(newest.index + 1, parameters, "changes", changes=changes, created_at=now())


def start(parameters: Mapping[str, Any]) -> Branch:
    """The first branch of an experiment."""
    return Branch(0, parameters, created_at=now())


def describe(changes: Mapping[str, tuple[Any, Any]]) -> str:
    """A line per changed parameter."""
    return "\n".join(f"  {key}: {old} -> {new}" for key, (old, new) in changes.items())


def now() -> str:
    """The current time as records have it: ISO 8601, UTC."""
    return datetime.now(UTC).isoformat()


def flatten(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Groups of parameters by dotted names. Lists and empty groups are values. So is a group with a
    dot in one of its names (an environment's import path), because the dot would be ambiguous."""
    flat: dict[str, Any] = {}
    for key, value in parameters.items():
        if isinstance(value, Mapping) and value and not any("." in str(name) for name in value):
            flat |= flatten({f"{key}.{name}": item for name, item in value.items()})
        else:
            flat[key] = json.loads(strict_json(value))
    return flat


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Dotted name → (old, new) where flat parameters differ, without `IRRELEVANT` ones."""
    old, new = without_retired(old), without_retired(new)
    pairs = {key: (old.get(key, ABSENT), new.get(key, ABSENT)) for key in sorted({*old, *new})}
    return {
        key: pair
        for key, pair in pairs.items()
        if pair[0] != pair[1] and not any(_below(key, prefix) for prefix in IRRELEVANT)
    }


def without_retired(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Flat parameters without those `RETIRED` ones that mean what is done now."""
    return {key: value for key, value in flat.items() if RETIRED.get(key, ABSENT) != value}


def nested(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted names → groups, as ``--params`` and ``conf/`` have them."""
    groups: dict[str, Any] = {}
    for key, value in parameters.items():
        *parents, name = key.split(".")
        group = groups
        for parent in parents:
            group = group.setdefault(parent, {})
        group[name] = deepcopy(value)  # an empty group may be filled later
    return groups


def _below(key: str, prefix: str) -> bool:
    return key == prefix or key.startswith(f"{prefix}.")
