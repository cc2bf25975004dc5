"""Comparing a predicted answer with the accepted ones, as SQuAD does.

P. Rajpurkar et al., "SQuAD" (2016), and its evaluation script: lower case, no punctuation, no
articles, single spaces. Each metric has its own name: an exact match is never a substring match.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)


def extract_answer(text: str) -> str:
    """The final answer in the text of an answering turn.

    What stands in the last ``<answer>`` block behind any ``</think>``; a turn without one (a format
    that answers in plain words) is all answer.
    """
    said = text.rpartition("</think>")[2]
    blocks = _ANSWER.findall(said)
    return (blocks[-1] if blocks else said).strip()


def normalize(text: str) -> str:
    """Lower case without punctuation and articles, single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(prediction: str, answers: Sequence[str]) -> float:
    """1 if the normalised prediction equals a normalised answer, else 0."""
    predicted = normalize(prediction)
    return float(any(predicted == normalize(answer) for answer in answers))


def f1(prediction: str, answers: Sequence[str]) -> float:
    """Best harmonic mean of token precision and recall over the answers, in [0, 1]."""
    return max((_f1(normalize(prediction), normalize(answer)) for answer in answers), default=0.0)


def _f1(prediction: str, answer: str) -> float:
    ours, theirs = prediction.split(), answer.split()
    if not ours or not theirs:
        return float(ours == theirs)
    common = sum((Counter(ours) & Counter(theirs)).values())
    # 2PR / (P + R) with P = common / ours and R = common / theirs
    return 2 * common / (len(ours) + len(theirs))


def substring(prediction: str, answers: Sequence[str]) -> float:
    """1 if a normalised answer stands in the normalised prediction as whole words, else 0."""
    predicted = f" {normalize(prediction)} "
    wanted = (normalize(answer) for answer in answers)
    return float(any(answer and f" {answer} " in predicted for answer in wanted))


METRICS: dict[str, Callable[[str, Sequence[str]], float]] = {
    "exact_match": exact_match,
    "f1": f1,
    "substring": substring,
}
