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

from agent_r1.shipped.pretraining.worlds import WorldPage, WorldQuestion, made_up_word

END_OF_TEXT = "<|endoftext|>"
TURN_START = "<|im_start|>"
TURN_END = "<|im_end|>"


class Piece(NamedTuple):
    """A stretch of text."""

    text: str
    learn: bool
    """Whether the model is trained to predict it."""
    read: bool = False
    """Whether it begins with a value that was read: its first token tells which line was found."""


def page_text(random: Random, page: WorldPage) -> str:
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
    ("{title}", "{label} {value}"),
)


def _distinct(pages: Sequence[WorldPage]) -> list[WorldPage]:
    return list({page.title: page for page in pages}.values())


def restated(random: Random, questions: Sequence[WorldQuestion]) -> list[Piece]:
    """Pages, then sentences that restate their facts along the chain."""
    pages = _distinct([page for question in questions for page in question.pages])
    random.shuffle(pages)
    pieces = [Piece("\n\n".join(page_text(random, page) for page in pages) + "\n\n", False)]
    for question in questions:
        for page, label in zip(question.pages, question.labels, strict=True):
            pieces += [
                Piece(f"The {label} of {page.title} is ", False),
                Piece(f"{page.value(label)}.\n", True, read=True),
            ]
    return pieces


def question_answer(random: Random, questions: Sequence[WorldQuestion]) -> list[Piece]:
    """Pages, then questions with their final answers only."""
    pages = _distinct([page for question in questions for page in question.pages])
    random.shuffle(pages)
    pieces = [Piece("\n\n".join(page_text(random, page) for page in pages) + "\n\n", False)]
    for question in questions:
        pieces += [
            Piece(f"Q: {question.text}\nA: ", False),
            Piece(f"{question.answer}\n", True, read=True),
        ]
    return pieces


def drill(random: Random, questions: Sequence[WorldQuestion]) -> list[Piece]:
    """A page, then every one of its facts asked for, in an order of its own.

    Which line a question means is one token in many of an episode; here it is what most of the
    text is about, so it is learned first.
    """
    page = questions[0].pages[0]
    ask, tell = random.choice(_ASKING)
    pieces = [Piece(f"{page_text(random, page)}\n\n", False)]
    for label, value in random.sample(page.facts, len(page.facts)):
        pieces += [
            Piece(ask.format(label=label, title=page.title), False),
            Piece(tell.format(value), True, read=True),
        ]
    return pieces


_ASKING = (
    ("{label}: ", "{}\n"),
    ("{label}: ", "{}\n"),
    ("{label}: ", "{}\n"),
    ("{label}? ", "{}\n"),
    ("The {label} of {title} is ", "{}.\n"),
    ("Q: What is the {label} of {title}?\nA: ", "{}\n"),
    ("{title} / {label} -> ", "{}\n"),
    (
        f"{TURN_START}user\nWhat is the {{label}} of {{title}}?{TURN_END}\n{TURN_START}assistant\n",
        f"{{}}{TURN_END}\n",
    ),
    (
        f"{TURN_START}user\nTell me the {{label}}.{TURN_END}\n{TURN_START}assistant\n",
        f"{{}}{TURN_END}\n",
    ),
)


class Style(NamedTuple):
    """How an episode is told; a pair is what stands before and after a content."""

    question: tuple[str, str]
    turn: tuple[str, str]
    """Around everything that the agent says at once."""
    page: tuple[str, str]
    thought: tuple[str, str, str]
    """Before a label, between it and its value, and after the value."""
    look: tuple[str, str]
    tell: tuple[str, str]
    fixed: bool = True
    """Whether it is the same in every example, so that the model can know it from the start."""


def _episodes(random: Random, questions: Sequence[WorldQuestion], style: Style) -> list[Piece]:
    """Look-ups, each after the thought that says what was read on the page before, and an answer.

    The thought takes reading apart: naming the label that the question asks for, finding its
    value, and putting that into an action are three small steps and not one large one.
    """
    pieces: list[Piece] = []
    shown: set[str] = set()

    def say(kind: str, markup: tuple[str, str], content: str, label: str | None) -> None:
        pieces.append(Piece(style.turn[0], False))
        before, after = markup
        if label is not None:
            lead, between, close = style.thought
            known = style.fixed or "thought" in shown
            pieces.extend(
                (
                    Piece(lead, known),
                    Piece(label, True),
                    Piece(between, known),
                    Piece(content, True, read=True),
                )
            )
            before = close + before
            shown.add("thought")
        pieces.append(Piece(before, style.fixed or kind in shown))
        pieces.append(Piece(f"{content}{after}{style.turn[1]}", True))
        shown.add(kind)

    for question in questions:
        pieces.append(Piece(question.text.join(style.question), False))
        label = None
        for page, asked in zip(question.pages, question.labels, strict=True):
            say("look", style.look, page.title, label)
            pieces.append(Piece(page_text(random, page).join(style.page), False))
            label = asked
        say("tell", style.tell, question.answer, label)
    return pieces


def _role(name: str) -> tuple[str, str]:
    return f"{TURN_START}{name}\n", f"{TURN_END}\n"


def react(random: Random, questions: Sequence[WorldQuestion]) -> list[Piece]:
    """A log of thoughts, actions and observations."""
    return _episodes(random, questions, _REACT)


def dialogue_text(random: Random, questions: Sequence[WorldQuestion]) -> list[Piece]:
    """A dialogue with worded lookups."""
    return _episodes(random, questions, _TEXT)


def dialogue_json(random: Random, questions: Sequence[WorldQuestion]) -> list[Piece]:
    """A dialogue with lookups and results in JSON."""
    return _episodes(random, questions, _JSON)


_REACT = Style(
    question=("Question: ", "\n"),
    turn=("", "\n"),
    page=("Observation: ", "\n"),
    thought=("Thought: the ", " is ", ".\n"),
    look=("Action: lookup[", "]"),
    tell=("Action: finish[", "]"),
)
_TEXT = Style(
    question=_role("user"),
    turn=_role("assistant"),
    page=_role("tool"),
    thought=("The ", " is ", ", so "),
    look=("look up ", ""),
    tell=("it is ", "."),
)
_JSON = Style(
    question=_role("user"),
    turn=_role("assistant"),
    page=_role("page"),
    thought=("", " = ", "\n"),
    look=('{"find": "', '"}'),
    tell=('{"result": "', '"}'),
)


def dialogue_marked(random: Random, questions: Sequence[WorldQuestion]) -> list[Piece]:
    """A dialogue whose markup is made up for this one: random words in one of several patterns.

    Markup that stood before is learned, its first occurrence is not: there is nothing to know it
    from. What is taught is to put the right name into whatever markup a user's agent will have.
    """
    style = Style(
        question=_role("user"),
        turn=_role("assistant"),
        page=_role(random.choice(("tool", "page", "user", made_up_word(random)))),
        thought=random.choice(_THOUGHTS),
        look=_made_up_markup(random),
        tell=_made_up_markup(random),
        fixed=False,
    )
    return _episodes(random, questions, style)


_THOUGHTS = (
    ("", ": ", "\n"),
    ("", ": ", ". "),
    ("", " = ", "\n"),
    ("", " is ", "\n"),
    ("The ", " is ", ".\n"),
    ("I see the ", ": ", "\n"),
    ("- ", ": ", "\n"),
)
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


def _made_up_markup(random: Random) -> tuple[str, str]:
    before, after = random.choice(_MARKUP)
    words = [made_up_word(random) for _ in range(3)]
    return before.format(*words), after.format(*words)


Form = Callable[[Random, Sequence[WorldQuestion]], list[Piece]]

FORMS: tuple[Form, ...] = (
    *[drill] * 4,
    restated,
    question_answer,
    *[react] * 2,
    *[dialogue_text] * 2,
    *[dialogue_json] * 2,
    *[dialogue_marked] * 4,
)
"""Drawn evenly; what is harder or more general stands more than once."""
