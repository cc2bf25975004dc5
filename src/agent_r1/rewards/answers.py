"""Metrics that compare a predicted answer with the accepted answers, as SQuAD does.

P. Rajpurkar et al., "SQuAD" (2016), https://arxiv.org/abs/1606.05250, and its evaluation script:
lower case, no punctuation, no articles, single spaces. Each metric has its own name: an exact match
is never a substring match.

Chinese, Japanese and Korean do not put spaces between words. In these texts each character is a
token (F1, substring), spaces are ignored, and a number may follow a word directly. Their
punctuation and full-width letters and digits are normalised even if the rest of the answer is Latin
(``NBA。``). All other texts are compared exactly as by SQuAD's script.
"""

from __future__ import annotations

import itertools
import math
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agent_r1.chat import code, react
from agent_r1.chat.dialects.harmony import HarmonyDialect
from agent_r1.chat.hermes import answer_blocks
from agent_r1.chat.reasoning import after_reasoning
from agent_r1.tasks.segmentation import has_cjk, segments

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_READERS = (react.parse_turn, code.parse_turn, HarmonyDialect().read)
_WIDE = re.compile("[\u3000-\u303f\uff01-\uff60]")
"""Chinese and Japanese punctuation, and full-width letters, digits and signs."""
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_NUMBER = re.compile(
    r"(?<![\w.])([-+]?)[$€£¥]?"
    r"((?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?)"
    r"(?:\s*/\s*(\d+))?"
)
"""Sign, decimal number, divisor of a fraction. Digits in a word (``x2``) are not a number."""
_SIGNS = str.maketrans("\u2212\uff0d\uff0e", "--.")
"""The typographic minus sign and full-width signs: ignoring them would turn -5 into 5."""
_VERDICTS = frozenset({"yes", "no", "noanswer"})
"""Answers that are right or wrong as a whole: F1 gives them no partial credit."""


def extract_answer(text: str) -> str:
    """The final answer in the text of an answering turn, in any call format.

    Taken from the last ``<answer>`` block after any ``</think>``; else from ReAct's ``finish[…]``,
    from ``final_answer(…)`` or from the channel ``final``. A turn without any of these is the
    answer as a whole, as in formats that answer in plain text.
    """
    said = after_reasoning(text)
    if blocks := answer_blocks(said):
        return blocks[-1]
    for read in _READERS:
        if (answer := read(text).answer) is not None:
            return answer
    return said.strip()


def normalize(text: str) -> str:
    """Lower case without punctuation and articles; tokens with single spaces between them."""
    by_character = has_cjk(text)
    if by_character or _WIDE.search(text):
        text = unicodedata.normalize("NFKC", text)
        text = "".join(c for c in text if not unicodedata.category(c).startswith("P"))
    if by_character:
        return " ".join(segments(text.lower()))  # no articles: "A股" is a word
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(prediction: str, answers: Sequence[str]) -> float:
    """1 if the normalised prediction equals a normalised answer, else 0."""
    predicted = normalize(prediction)
    return float(any(predicted == normalize(answer) for answer in answers))


def f1(prediction: str, answers: Sequence[str]) -> float:
    """Best harmonic mean of token precision and recall over the answers, in [0, 1].

    Yes and no get no partial credit, as in HotpotQA's evaluation script: ``yes and no`` scores 0
    against ``yes``.
    """
    return max((_f1(normalize(prediction), normalize(answer)) for answer in answers), default=0.0)


def _f1(prediction: str, answer: str) -> float:
    ours, theirs = prediction.split(), answer.split()
    decided = not _VERDICTS.isdisjoint((prediction, answer))
    if decided or not ours or not theirs:
        return float(ours == theirs)
    common = sum((Counter(ours) & Counter(theirs)).values())
    # 2PR / (P + R) with P = common / ours and R = common / theirs
    return 2 * common / (len(ours) + len(theirs))


def substring(prediction: str, answers: Sequence[str]) -> float:
    """1 if the normalised prediction contains a normalised answer as whole tokens, else 0."""
    predicted = f" {normalize(prediction)} "
    wanted = (normalize(answer) for answer in answers)
    return float(any(answer and f" {answer} " in predicted for answer in wanted))


def numeric(prediction: str, answers: Sequence[str], tolerance: float = 1e-6) -> float:
    """1 if the one number in the prediction equals the number in an answer, else 0.

    Thousands separators, units and surrounding words are ignored (``$1,200.00 in all`` is 1200),
    and a fraction counts as a number. A prediction with two different numbers scores 0.

    Args:
        prediction: the final answer.
        answers: accepted answers; those without exactly one number are ignored.
        tolerance: largest allowed difference, relative to the accepted number.
    """
    said = _number(prediction)
    accepted = [number for answer in answers if (number := _number(answer)) is not None]
    return float(
        said is not None
        and any(math.isclose(said, each, rel_tol=tolerance, abs_tol=1e-12) for each in accepted)
    )


def _number(text: str) -> float | None:
    """The number in a text; None if it holds no number, or several different ones."""
    text = text.translate(_SIGNS)
    if has_cjk(text) or _WIDE.search(text):
        text = " ".join(segments(unicodedata.normalize("NFKC", text)))
    found = set()
    for sign, whole, divisor in _NUMBER.findall(text):
        number, below = float(sign + whole.replace(",", "")), float(divisor or 1)
        if not below or not math.isfinite(number):
            return None
        found.add(number / below)
    return found.pop() if len(found) == 1 else None


def coverage(prediction: str, reference: Any) -> float:
    """The share of a reference's parts that the prediction contains, in [0, 1].

    FanOutQA's loose accuracy (A. Zhu et al., 2024, https://arxiv.org/abs/2402.14116, sec. 4, and
    the package's ``answer_in_text``); its strict accuracy is 1 where this is 1. Parts are found as
    by `substring`: unlike the package, this does not lemmatise, and it finds parts that begin with
    a currency sign. Whatever else the prediction contains is not penalised, so add a price on
    length when you train on this metric.

    Args:
        prediction: the final answer.
        reference: a string, number or boolean, a list of these, or a mapping; the keys of a mapping
            are parts too.
    """
    parts = _parts(reference)
    return max(0.0, 1 - _missing(prediction, reference) / len(parts)) if parts else 0.0


def _parts(reference: Any) -> list[Any]:
    if isinstance(reference, Mapping):
        return [*itertools.chain.from_iterable(reference.items())]
    return reference if isinstance(reference, list) else [reference]


def _missing(prediction: str, reference: Any) -> int:
    """How many strings of the reference the prediction lacks; nested lists are flattened."""
    if isinstance(reference, Mapping | list):
        return sum(_missing(prediction, part) for part in _parts(reference))
    if isinstance(reference, bool):
        reference = "yes" if reference else "no"
    return int(not substring(prediction, [str(reference)]))


ANSWER_METRICS: dict[str, Callable[[str, Sequence[str]], float]] = {
    "exact_match": exact_match,
    "f1": f1,
    "substring": substring,
    "numeric": numeric,
}
"""Name in ``outcome.metric`` → metric(prediction, accepted answers), in [0, 1]."""
