"""Splits: first entities are divided, then questions, then families are balanced.

1. Countries, with all of their cities, are divided into three partitions: ``train``,
   ``validation`` and ``held_out``.
2. A question belongs to a partition if *every* entity of its chain does. A question that mixes
   partitions is dropped. Questions of the partition ``train`` are divided again, into ``train`` and
   the unseen questions of ``in_domain``.
3. Families that are not trained on are the split ``ood``: three hops (about training entities, so
   that only the kind of question is new) and the chemical elements.
4. Each split takes the same number of questions from each of its families, if they have enough.

Hashes of names and ``tasks.split_seed`` decide everything. So the splits do not depend on the
experiment's seed, and a new question does not move another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from agent_r1.parameters import ParameterError
from agent_r1.seeding import derive_seed
from agent_r1.tasks.pages import Page
from agent_r1.tasks.questions import Question

Partition = Literal["train", "validation", "held_out"]


def in_hash_order(names: Iterable[str], seed: int, use: str) -> list[str]:
    """``names`` in an order that depends on nothing but the names, ``seed`` and ``use``."""
    return sorted(names, key=lambda name: (derive_seed(seed, use, name), name))


def partition_countries(
    countries: Sequence[str], held_out: int, validation: int, seed: int
) -> dict[str, Partition]:
    """The partition of each country: ``train`` unless it is in one of the other two.

    Raises:
        ParameterError: no country is left to train on.
    """
    if held_out + validation >= len(countries):
        raise ParameterError(
            f"tasks.held_out_countries ({held_out}) and tasks.validation_countries ({validation}) "
            f"leave no country to train on: there are {len(countries)}"
        )
    order = in_hash_order(countries, seed, "partition")
    partition: dict[str, Partition] = dict.fromkeys(order, "train")
    partition |= dict.fromkeys(order[:held_out], "held_out")
    partition |= dict.fromkeys(order[held_out : held_out + validation], "validation")
    return partition


def split_of(
    question: Question,
    partition: Mapping[str, Partition],
    in_domain_fraction: float,
    seed: int,
) -> str | None:
    """The split of a question; None if its chain mixes partitions."""
    partitions = {_partition(page, partition) for page in question.pages} - {None}
    if not question.family.trained:
        trained = question.family.start == "element" or partitions == {"train"}
        return "ood" if trained else None
    if len(partitions) != 1:
        return None
    (only,) = partitions
    if only != "train":
        return only
    draw = derive_seed(seed, "in_domain", question.question_id) / 2**63
    return "in_domain" if draw < in_domain_fraction else "train"


def _partition(page: Page, partition: Mapping[str, Partition]) -> Partition | None:
    return None if page.country is None else partition[page.country]


def balance(available: Mapping[str, int], total: int) -> dict[str, int]:
    """How many questions to take from each family, as evenly as possible.

    >>> balance({"a": 10, "b": 2, "c": 10}, 12)
    {'a': 5, 'b': 2, 'c': 5}
    """
    taken = dict.fromkeys(available, 0)
    left = min(total, sum(available.values()))
    while left:
        open_families = [name for name in available if taken[name] < available[name]]
        share = max(1, left // len(open_families))
        for name in open_families:
            step = min(share, available[name] - taken[name], left)
            taken[name] += step
            left -= step
    return taken


def choose(
    questions: Sequence[Question], size: int, one_hop_share: float, seed: int
) -> list[Question]:
    """``size`` questions of one split: even over families, ``one_hop_share`` of them one-hop.

    The families are interleaved, so every prefix of the list is balanced too.
    """
    by_id = {question.question_id: question for question in questions}
    by_family: dict[str, list[Question]] = {}
    for question_id in in_hash_order(by_id, seed, "choose"):
        question = by_id[question_id]
        by_family.setdefault(question.family.name, []).append(question)
    is_one_hop = {name: members[0].family.hops == 1 for name, members in by_family.items()}
    one_hop = {n: len(q) for n, q in by_family.items() if is_one_hop[n]}
    more_hops = {n: len(q) for n, q in by_family.items() if not is_one_hop[n]}
    one_hop_size = min(round(size * one_hop_share), sum(one_hop.values()))
    quota = balance(one_hop, one_hop_size) | balance(more_hops, size - one_hop_size)
    ranked = [
        (rank / quota[name], name, question)
        for name, members in by_family.items()
        for rank, question in enumerate(members[: quota[name]])
    ]
    return [question for _, _, question in sorted(ranked, key=lambda item: item[:2])]
