"""A penalty on repeated n-grams.

E. Yeo et al., "Demystifying Long Chain-of-Thought Reasoning in LLMs" (2025),
https://arxiv.org/abs/2502.03373, sec. 4.4, penalise repeated n-grams, because a policy that is paid
for length soon repeats itself. Here n-grams of earlier steps count too: running the same search
again is a repetition. In Chinese, Japanese and Korean each character is a word.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from agent_r1.rewards.base import Steps, TermParameters
from agent_r1.tasks.segmentation import segments


class RepetitionParameters(TermParameters):
    """``reward.terms.repetition`` in ``conf/``."""

    words: int = Field(4, ge=1)
    """Words per n-gram. The markup of a tool call has a few words of its own, so a smaller n would
    penalise two calls of the same tool with different arguments."""


def repetition(steps: Steps, parameters: RepetitionParameters) -> np.ndarray:
    """In [-1, 0]: minus the share of each step's n-grams that the trajectory already had."""
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
