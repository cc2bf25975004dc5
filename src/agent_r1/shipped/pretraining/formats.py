"""Surface forms of fictional worlds: plain text, questions and answers, a log as in ReAct (Yao et
al. 2022, arXiv:2210.03629), and dialogues with role tokens, some of them with made-up markup.

No form is the agent's own format (no ``<tool_call>``, no ``<answer>``), which demonstrations teach.
Every form is a list of `Piece`. ``learn`` marks text that follows from earlier text, such as a
look-up or a value that was read, but not random text.
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
    """A piece of text."""

    text: str
    learn: bool
    """Whether the model is trained to predict it."""
    read: bool = False
    """Whether it begins with a value that was read. Its first token shows which line was found."""


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
    """Pages, then questions with only their final answers."""
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
    """A page, then a question for each of its facts, in random order.

    In an episode, only one token of many depends on the line that a question means. Here most of
    the text does, so the model learns it first.
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
    """The markup of an episode. A pair is the text before and after a content."""

    question: tuple[str, str]
    turn: tuple[str, str]
    """Around a whole turn of the agent."""
    page: tuple[str, str]
    thought: tuple[str, str, str]
    """Text before a label, between label and value, and after the value."""
    look: tuple[str, str]
    tell: tuple[str, str]
    fixed: bool = True
    """Whether the markup is the same in every example, so that the model can know it."""


def _episodes(random: Random, questions: Sequence[WorldQuestion], style: Style) -> list[Piece]:
    """Look-ups and an answer. Each but the first follows a thought about the page just read.

    The thought divides reading into three small steps: name the label that the question asks for,
    find its value, and put the value into an action.
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
    """A dialogue with look-ups in words."""
    return _episodes(random, questions, _TEXT)


def dialogue_json(random: Random, questions: Sequence[WorldQuestion]) -> list[Piece]:
    """A dialogue with look-ups and results in JSON."""
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
    """A dialogue with its own made-up markup: random words in one of several patterns.

    The model learns repeated markup, but not its first occurrence, which is unpredictable. So it
    learns to put the correct name into any markup that an agent may use.
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
"""Text before and after a name. {0}, {1} and {2} are words of the example."""


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
"""Drawn uniformly. Harder or more general forms occur several times."""
