"""What of its stream a trajectory shows to the policy, and what happens when that is full.

1. The prompt is always shown: it holds the task. Behind it stand steps. A step begins with its
   action and ends where the next action begins, so it holds the observation that was answered.
2. What is shown, and the action that is sampled behind it, are at most ``max_context_tokens``.
3. ``on_overflow: truncate`` uses them to the last one: the last action, and what is kept of the
   last observation, may be cut. The trajectory ends (`context_overflow`).
4. ``end`` cuts nothing: the trajectory ends as soon as an observation, and an action of
   ``max_tokens_per_step`` tokens behind it, do not fit. Of that observation all is kept or nothing.
5. ``window`` moves in the same situation: it drops the oldest steps, and always whole ones. The
   prompt ends with the header of an agent's turn, so what is shown reads as a dialogue in which the
   agent took the later steps only. It drops until the steps take ``window_keep`` of the room behind
   the prompt, and not just until all fits: for each move the engine computes again, and the trainer
   reads once more, what is still shown.
6. The last step is never dropped: it is what the next action is about. If it does not fit alone
   beside the prompt (an observation that is longer than the window), the trajectory ends as in 4.
7. Of an action, spans may be dropped before the next one (``chat.reasoning: drop``): the policy
   does not see them again, and they take no room.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent_r1.rollout.parameters import RolloutParameters


class Window:
    """The window of one trajectory: positions in its stream, and no tokens."""

    def __init__(self, parameters: RolloutParameters) -> None:
        self.prefix = 0
        """Leading tokens that are always shown."""
        self.start = 0
        """Where the steps that are shown begin; 0 until the first move."""
        self.drops: list[int] = []
        """Flat ``[begin, end)`` pairs, of what is dropped from steps that are shown."""
        self._steps: list[int] = []
        """Where each step begins."""
        self._limit = parameters.max_context_tokens
        self._action = parameters.max_tokens_per_step
        self._moves = parameters.on_overflow == "window"
        self._cuts = parameters.on_overflow == "truncate"
        self._keep = parameters.window_keep

    def open(self, prompt: int) -> bool:
        """Show a prompt of so many tokens; False if it leaves no room for an action."""
        fits = prompt <= self._room
        self.prefix = prompt if fits else 0
        return fits

    def shown(self, length: int) -> int:
        """Tokens that the policy sees of a stream of ``length``."""
        return length - max(self.start - self.prefix, 0) - self._dropped(self.start)

    def budget(self, length: int) -> int:
        """Tokens that the next action may have."""
        return min(self._action, self._limit - self.shown(length))

    def begin_step(self, length: int) -> None:
        """An action follows at ``length``."""
        self._steps.append(length)

    def drop(self, spans: Sequence[tuple[int, int]]) -> None:
        """Do not show these tokens of the last action again; positions in the action."""
        self.drops += [self._steps[-1] + position for span in spans for position in span]

    def admit(self, length: int, appended: int) -> bool:
        """Whether so many further tokens, and an action behind them, can be shown; the window moves
        if it must and may."""
        if self.shown(length + appended) <= self._room:
            return True
        return self._moves and self._move(length + appended)

    def whole_or_cut(self, length: int, final_ids: Sequence[int]) -> list[int]:
        """What is kept of tokens that no action will follow: the state that the trajectory stopped
        in. The window does not move any more."""
        room = self._limit - self.shown(length)
        return list(final_ids[:room]) if self._cuts or len(final_ids) <= room else []

    @property
    def _room(self) -> int:
        """Tokens that may be shown before an action."""
        return self._limit - (1 if self._cuts else self._action)

    def _dropped(self, step: int) -> int:
        """Tokens that are dropped from this step and later ones."""
        spans = zip(self.drops[::2], self.drops[1::2], strict=True)
        return sum(end - begin for begin, end in spans if begin >= step)

    def _move(self, length: int) -> bool:
        last = self._steps[-1]
        room = self._room - self.prefix
        if length - last - self._dropped(last) > room:
            return False
        kept = self._keep * room
        later = (step for step in self._steps if step > self.start)
        fits = (step for step in later if length - step - self._dropped(step) <= kept)
        self.start = next(fits, last)
        self.drops = [position for position in self.drops if position >= self.start]
        return True
