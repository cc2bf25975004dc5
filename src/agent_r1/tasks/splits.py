"""Who is trained on what: entities are split first, then questions, then families are balanced.

1. Countries are dealt into three partitions, each with all of its cities: ``train``,
   ``validation`` and ``held_out``.
2. A question belongs to the partition of *every* entity of its chain; one that mixes partitions
   is dropped. Questions of the partition ``train`` are split once more, into ``train`` and the
   unseen questions of ``in_domain``.
3. Families that are never trained on make the split ``ood``: three hops (on entities that are
   trained on, so that only the kind of question is new) and the chemical elements.
4. Each split takes the same number of questions of each of its families, as far as there are some.

Everything is decided by hashes of names and one seed of its own, so the splits are the same
whatever the seed of the experiment, and adding a question moves no other.
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
    """``names`` in an order that only they, the seed and what it is for decide."""
    return sorted(names, key=lambda name: (derive_seed(seed, use, name), name))


def partition_countries(
    countries: Sequence[str], held_out: int, validation: int, seed: int
) -> dict[str, Partition]:
    """The partition of each country; what is not in the other two is trained on.

    Raises:
        ParameterError: there are too few countries to train on any.
    """
    if held_out + validation >= len(countries):
        raise ParameterError(
            f"tasks.held_out_countries ({held_out}) and tasks.validation_countries ({validation}) "
            f"leave none of {len(countries)} countries to train on"
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
    """The split of a question, or None where its chain mixes partitions."""
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
    """How many of each family to take so that they are as even as can be.

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

    They come interleaved, one of each family after the other, so that every beginning of the list
    is balanced too.
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
