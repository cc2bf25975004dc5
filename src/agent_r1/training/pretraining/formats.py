"""The surface forms in which a fictional world is told: plain text, questions and answers, a
ReAct-like log, and dialogues with role tokens, some of them with made-up markup.

None of them is the agent's own form (no ``<tool_call>``, no ``<answer>``): that one is learned from
demonstrations. Every form is a list of `Piece`; ``learn`` marks what follows from what was said
before — a lookup, a value that was read — and not what is random.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from agent_r1.training.pretraining.worlds import Page, Question, made_up_word

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


def dialogue_marked(random: Random, questions: Sequence[Question]) -> list[Piece]:
    """A dialogue whose markup is made up for this one: random words in one of several patterns.

    Markup that stood before is learned, its first occurrence is not: there is nothing to know it
    from. What is taught is to put the right name into whatever markup a user's agent will have.
    """
    look, tell = (random.choice(_MARKUP) for _ in range(2))
    looks, tells = (tuple(made_up_word(random) for _ in range(3)) for _ in range(2))
    role = random.choice(("tool", "page", "user", made_up_word(random)))
    pieces: list[Piece] = []
    shown: set[str] = set()
    for question in questions:
        pieces.append(_turn("user", question.text))
        for page in question.pages:
            pieces += _marked_reply(look, looks, page.title, "look" in shown)
            pieces.append(_turn(role, page_text(random, page)))
            shown.add("look")
        pieces += _marked_reply(tell, tells, question.answer, "tell" in shown)
        shown.add("tell")
    return pieces


_MARKUP = (
    ("<{0}>", "</{0}>"),
    ("<{0}><{1}>", "</{1}></{0}>"),
    ("{0}[", "]"),
    ('{0}("', '")'),
    ("{0}: ", ""),
    ('{{"{0}": "', '"}}'),
    ('{{"{0}": "{1}", "{2}": "', '"}}'),
    ('{{"{0}": "{1}", "{2}": {{"{0}": "', '"}}}}'),
    ('<{0}>{{"{1}": "', '"}}</{0}>'),
)
"""What stands before and after a name; {0}, {1} and {2} are words of the example."""


def _marked_reply(
    markup: tuple[str, str], words: tuple[str, ...], content: str, known: bool
) -> list[Piece]:
    before, after = (part.format(*words) for part in markup)
    return [
        Piece(f"{TURN_START}assistant\n", False),
        Piece(before, known),
        Piece(f"{content}{after}{TURN_END}", True),
        Piece("\n", False),
    ]


FORMATS: tuple[Callable[[Random, Sequence[Question]], list[Piece]], ...] = (
    plain,
    question_answer,
    react,
    dialogue_text,
    dialogue_json,
    dialogue_marked,
    dialogue_marked,
    dialogue_marked,
)
"""Drawn evenly; made-up markup is the most general form, and stands more than once."""
