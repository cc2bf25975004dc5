"""Procedural tasks with their own verifiers, from the package ``reasoning-gym`` (Stojanovski et al.
2025, https://github.com/open-thought/reasoning-gym).

1. The parameters name data sets of the package, each with its settings. They are dealt out evenly,
   and are the families.
2. Splits differ by the seed that a data set is made with: no split has the tasks of another, as far
   as the data set has enough of them.
3. What an answer is worth is for the data set to say (`score_answer`), in [0, 1]; many accept what
   exact match would not. A task names its entry by data set, settings, seed, size and place, and
   the verifier makes it again: an entry may hold what JSON cannot. Another version of the package
   may make another entry, so the task also has the sha256 of the question that it asks.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any

from pydantic import Field

from agent_r1.extras import extra_package
from agent_r1.mdp import EnvironmentFailure
from agent_r1.parameters import ParameterError
from agent_r1.seeding import derive_seed
from agent_r1.storage.hashing import text_sha256
from agent_r1.tasks.rows import task_row, without_documents
from agent_r1.tasks.source import Source, SourceInputs, SourceParameters, Tables

_EXTRA = "reasoning-gym"


class ReasoningGymParameters(SourceParameters):
    """``tasks.sources.reasoning_gym`` in ``conf/``."""

    datasets: dict[str, dict[str, Any]] = Field(
        default_factory=lambda: {"chain_sum": {}, "gsm_symbolic": {}}, min_length=1
    )
    """Data set → its settings, see the package."""


def make_tasks(
    sizes: Mapping[str, int],
    datasets: Mapping[str, Mapping[str, Any]],
    seed: int,
    environment: str = "math",
) -> Tables:
    """The table ``tasks``, and no documents. Tasks that an earlier split has are left out.

    Args:
        sizes: split → tasks.
        datasets: data set → its settings.
        seed: decides the tasks.
        environment: plays them.

    Raises:
        MissingExtraError: the package is not installed.
        ParameterError: there is no such data set, or it has no such setting.
    """
    rows: list[dict[str, Any]] = []
    texts: set[str] = set()
    for split, size in sizes.items():
        for position, (name, settings) in enumerate(datasets.items()):
            count = (size + len(datasets) - 1 - position) // len(datasets)
            made_with = derive_seed(seed, "reasoning_gym", split, name) % 2**31
            for place in range(count):
                verifier = {
                    "dataset": name,
                    "settings": dict(settings),
                    "seed": made_with,
                    "size": count,
                    "place": place,
                }
                entry = _entry(verifier)
                if entry["question"] in texts:
                    continue
                texts.add(entry["question"])
                rows.append(_task(entry, verifier, split, environment))
    return without_documents(rows)


def _task(
    entry: Mapping[str, Any], verifier: dict[str, Any], split: str, environment: str
) -> dict[str, Any]:
    name = verifier["dataset"]
    return task_row(
        f"reasoning_gym:{name}:{split}:{verifier['place']}",
        environment,
        split,
        family=name,
        prompt=entry["question"],
        answers=[] if entry["answer"] is None else [str(entry["answer"])],
        payload={"verifier": verifier | {"question_sha256": text_sha256(entry["question"])}},
    )


def score_answer(verifier: Mapping[str, Any], answer: str) -> float:
    """What the data set says of an answer, in [0, 1].

    Args:
        verifier: what the task's payload holds under this name.
        answer: what the agent said.

    Raises:
        MissingExtraError: the package is not installed.
        EnvironmentFailure: it makes another entry than the one that the task was made of.
    """
    dataset = _dataset_of(verifier)
    entry = dataset[verifier["place"]]
    asked = text_sha256(entry["question"])
    if verifier.get("question_sha256", asked) != asked:
        raise EnvironmentFailure(
            f"this version of reasoning-gym makes other tasks of '{verifier['dataset']}': install "
            "the one that made them, or run prepare_tasks again"
        )
    score = float(dataset.score_answer(answer, entry))
    return min(max(score, 0.0), 1.0)


def _entry(verifier: Mapping[str, Any]) -> dict[str, Any]:
    return _dataset_of(verifier)[verifier["place"]]


def _dataset_of(verifier: Mapping[str, Any]) -> Any:
    settings = json.dumps(verifier["settings"])
    return _dataset(verifier["dataset"], settings, verifier["seed"], verifier["size"])


@functools.lru_cache(64)
def _dataset(name: str, settings: str, seed: int, size: int) -> Any:
    """The data set. An entry is made when it is asked for; some draw a number for each beforehand,
    so the size is not more than what is needed."""
    package = extra_package("reasoning_gym", _EXTRA)
    try:
        return package.create_dataset(name, seed=seed, size=size, **json.loads(settings))
    except (ValueError, TypeError, AssertionError) as error:
        raise ParameterError(f"tasks.sources.reasoning_gym.datasets.{name}: {error}") from error


def _load(inputs: SourceInputs) -> Tables:
    sizes = inputs.tasks.sizes.model_dump()
    return make_tasks(sizes, inputs.own.datasets, inputs.tasks.split_seed, inputs.environment)


SOURCE = Source("math", _load, ReasoningGymParameters)
