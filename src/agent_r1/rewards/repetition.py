"""Saying the same again.

E. Yeo et al., "Demystifying Long Chain-of-Thought Reasoning in LLMs" (2025), sec. 4.4, punish
repeated n-grams, because a policy that is paid for length or tries soon repeats itself. Here what
was said in earlier steps counts too: the same search once more is a repetition. In Chinese,
Japanese and Korean, which write no blanks, each character is a word.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from agent_r1.rewards.base import Steps, TermParameters
from agent_r1.tasks.segmentation import segments


class RepetitionParameters(TermParameters):
    """``reward.terms.repetition`` in ``conf/``."""

    words: int = Field(4, ge=1)
    """Length of what is compared: so many words in a row. The markup of a call has a few of its
    own, so a smaller number would punish calling a tool twice with different arguments."""


def repetition(steps: Steps, parameters: RepetitionParameters) -> np.ndarray:
    """Minus the share of each step's n-grams that the trajectory has said before, in [-1, 0]."""
    values = np.zeros(len(steps.action_type))
    trajectories = steps.trajectories
    for begin, end in zip(trajectories.offsets[:-1], trajectories.offsets[1:], strict=True):
        said: set[tuple[str, ...]] = set()
        for row in trajectories.order[begin:end]:
            words = segments(steps.action_text[row])
            grams = [
                tuple(words[place : place + parameters.words])
                for place in range(len(words) - parameters.words + 1)
            ]
            new = set(grams) - said
            if grams:
                values[row] = len(new) / len(grams) - 1.0
            said |= new
    return values
