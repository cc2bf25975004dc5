"""Comparing a predicted answer with the accepted ones, as SQuAD does.

P. Rajpurkar et al., "SQuAD" (2016), and its evaluation script: lower case, no punctuation, no
articles, single spaces. Each metric has its own name: an exact match is never a substring match.

Chinese, Japanese and Korean write no blanks between words, so there each character is a token (F1,
substring), blanks do not count, and a number may stand right behind a word. Their punctuation and
full-width letters and digits are normalised, also where nothing else in an answer is Chinese
(``NBA。``). All other texts are compared exactly as SQuAD's script does.
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
"""Sign, decimal number, and the divisor of a fraction. Digits in a word (``x2``) are no number."""
_SIGNS = str.maketrans("\u2212\uff0d\uff0e", "--.")
"""The minus sign of typesetters, and full-width characters: unread, minus five would be five."""
_VERDICTS = frozenset({"yes", "no", "noanswer"})
"""Answers that have no part that could be half right."""


def extract_answer(text: str) -> str:
    """The final answer in the text of an answering turn, in whatever call format.

    What stands in the last ``<answer>`` block behind any ``</think>``; else in ``finish[…]`` of
    ReAct, ``final_answer(…)`` or the channel ``final``. A turn with none of them is all answer, as
    in formats that answer in plain words.
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

    A yes or no is right or wrong, as in HotpotQA's evaluation script: ``yes and no`` is no half of
    ``yes``.
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
    """1 if a normalised answer stands in the normalised prediction as whole tokens, else 0."""
    predicted = f" {normalize(prediction)} "
    wanted = (normalize(answer) for answer in answers)
    return float(any(answer and f" {answer} " in predicted for answer in wanted))


def numeric(prediction: str, answers: Sequence[str], tolerance: float = 1e-6) -> float:
    """1 if the prediction's one number equals the number of an answer, else 0.

    Thousands separators, units and words around it do not matter (``$1,200.00 in all`` is 1200),
    and a fraction is a number. A prediction with two different numbers has not decided: 0.

    Args:
        tolerance: largest difference, relative to the accepted number.
    """
    said = _number(prediction)
    accepted = [number for answer in answers if (number := _number(answer)) is not None]
    return float(
        said is not None
        and any(math.isclose(said, each, rel_tol=tolerance, abs_tol=1e-12) for each in accepted)
    )


def _number(text: str) -> float | None:
    """The one number in a text; None where there is none, or several that differ."""
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
    """The share of a reference's parts that stand in the prediction, in [0, 1].

    FanOutQA's loose accuracy; where it is 1, its strict accuracy is (Zhu et al. 2024, sec. 4, and
    ``answer_in_text`` of the package). Parts are found as by `substring`: unlike the package, this
    does not lemmatise, and finds what begins with a currency sign. Nothing is said of what else the
    prediction holds, so whoever trains on it prices the length.

    Args:
        reference: a text, number or truth value; a list of them, or a mapping, whose keys are
            parts, too.
    """
    parts = _parts(reference)
    return max(0.0, 1 - _missing(prediction, reference) / len(parts)) if parts else 0.0


def _parts(reference: Any) -> list[Any]:
    if isinstance(reference, Mapping):
        return [*itertools.chain.from_iterable(reference.items())]
    return reference if isinstance(reference, list) else [reference]


def _missing(prediction: str, reference: Any) -> int:
    """Texts of the reference that the prediction lacks; each of a list within a list counts."""
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
"""Name in ``outcome.metric`` → the metric: (prediction, accepted answers) → a value in [0, 1]."""
