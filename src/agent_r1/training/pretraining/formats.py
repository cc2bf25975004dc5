"""The surface forms in which a fictional world is told: plain text, questions and answers, a
ReAct-like log, and two dialogues with role tokens.

None of them is the agent's own form (no ``<tool_call>``, no ``<answer>``): that one is learned from
demonstrations. Every form is a list of `Piece`; ``learn`` marks what follows from what was said
before — a lookup, a value that was read — and not what is random.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from agent_r1.training.pretraining.worlds import Page, Question

END_OF_TEXT = "<|endoftext|>"
TURN_START = "<|im_start|>"
TURN_END = "<|im_end|>"


class Piece(NamedTuple):
    """A stretch of text; ``learn`` says whether the model is trained to predict it."""

    text: str
    learn: bool


def page_text(random: Random, page: Page) -> str:
    """A page as text, in one of several layouts."""
    heading, fact = random.choice(_LAYOUTS)
    lines = [fact.format(label=label, value=value) for label, value in page.facts]
    return heading.format(title=page.title) + "\n" + "\n".join(lines)


_LAYOUTS = (
    ("{title}", "{label}: {value}"),
    ("{title}", "{label}: {value}"),
    ("# {title}", "{label}: {value}"),
    ("[{title}]", "- {label}: {value}"),
    ("Title: {title}", "{label} = {value}"),
    ("About {title}", "The {label} is {value}."),
)


def _distinct(pages: Sequence[Page]) -> list[Page]:
    return list({page.title: page for page in pages}.values())


def plain(random: Random, questions: Sequence[Question]) -> list[Piece]:
    """Pages, then sentences that restate their facts along the chain."""
    pages = _distinct([page for question in questions for page in question.pages])
    random.shuffle(pages)
    pieces = [Piece("\n\n".join(page_text(random, page) for page in pages) + "\n\n", False)]
    for question in questions:
        for page, label in zip(question.pages, question.labels, strict=True):
            pieces += [
                Piece(f"The {label} of {page.title} is ", False),
                Piece(f"{page.value(label)}.\n", True),
            ]
    return pieces


def question_answer(random: Random, questions: Sequence[Question]) -> list[Piece]:
    """Pages, then questions with their final answers only."""
    pages = _distinct([page for question in questions for page in question.pages])
    random.shuffle(pages)
    pieces = [Piece("\n\n".join(page_text(random, page) for page in pages) + "\n\n", False)]
    for question in questions:
        pieces += [Piece(f"Q: {question.text}\nA: ", False), Piece(f"{question.answer}\n", True)]
    return pieces


def react(random: Random, questions: Sequence[Question]) -> list[Piece]:
    """A log of actions and observations."""
    pieces = []
    for question in questions:
        pieces.append(Piece(f"Question: {question.text}\n", False))
        for page in question.pages:
            pieces += [
                Piece(f"Action: lookup[{page.title}]\n", True),
                Piece(f"Observation: {page_text(random, page)}\n", False),
            ]
        pieces.append(Piece(f"Action: finish[{question.answer}]\n", True))
    return pieces


def _dialogue(
    random: Random,
    questions: Sequence[Question],
    look: Callable[[str], str],
    tell: Callable[[str], str],
    role: str,
) -> list[Piece]:
    """Turns between role tokens; ``look`` and ``tell`` word a lookup and a final answer."""
    pieces = []
    for question in questions:
        pieces.append(_turn("user", question.text))
        for page in question.pages:
            pieces += [*_reply(look(page.title)), _turn(role, page_text(random, page))]
        pieces += _reply(tell(question.answer))
    return pieces


def _turn(role: str, text: str) -> Piece:
    return Piece(f"{TURN_START}{role}\n{text}{TURN_END}\n", False)


def _reply(text: str) -> list[Piece]:
    return [
        Piece(f"{TURN_START}assistant\n", False),
        Piece(f"{text}{TURN_END}", True),
        Piece("\n", False),
    ]


def dialogue_text(random: Random, questions: Sequence[Question]) -> list[Piece]:
    """A dialogue with worded lookups."""
    return _dialogue(random, questions, "look up {}".format, "It is {}.".format, "tool")


def dialogue_json(random: Random, questions: Sequence[Question]) -> list[Piece]:
    """A dialogue with lookups and results in JSON."""
    return _dialogue(
        random, questions, '{{"find": "{}"}}'.format, '{{"result": "{}"}}'.format, "page"
    )


FORMATS: tuple[Callable[[Random, Sequence[Question]], list[Piece]], ...] = (
    plain,
    question_answer,
    react,
    dialogue_text,
    dialogue_json,
)
