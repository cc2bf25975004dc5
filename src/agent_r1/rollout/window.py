"""Which part of a trajectory's tokens the policy sees, and what happens when the context is full.

1. The prompt is always visible, as it holds the task. Steps follow it. A step begins with its
   action and ends where the next action begins, so it includes the observation.
2. The visible tokens and the action that is sampled after them are at most ``max_context_tokens``.
3. ``on_overflow: truncate`` uses the context completely. The last action or the last observation
   may be cut, and then the trajectory ends (`context_overflow`).
4. ``end`` cuts nothing. The trajectory ends when an observation, plus an action of
   ``max_tokens_per_step`` tokens, does not fit. This observation is kept completely or not at all.
5. ``window`` moves in the same situation: it drops the oldest steps, always whole ones. The prompt
   ends with the header of an agent's turn, so the visible tokens read as a dialogue in which the
   agent took only the later steps. Steps are dropped until the rest takes at most ``window_keep``
   of the context after the prompt. Dropping only as many as necessary would cause more moves, and
   after each move the engine computes the visible tokens again and the trainer processes them once
   more.
6. The last step is never dropped, because the next action reacts to it. If it does not fit with the
   prompt (a very long observation), the trajectory ends as in 4.
7. Spans of an action may be dropped before the next action (``chat.reasoning: drop``). The policy
   does not see them again, and they take no room.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent_r1.rollout.parameters import RolloutParameters


class Window:
    """The window of one trajectory. It works with positions in the stream, not with tokens."""

    def __init__(self, parameters: RolloutParameters) -> None:
        self.prefix = 0
        """Number of leading tokens that are always visible."""
        self.start = 0
        """Position at which the visible steps begin; 0 until the first move."""
        self.drops: list[int] = []
        """Flat ``[begin, end)`` pairs of positions that are dropped from visible steps."""
        self._steps: list[int] = []
        """Position at which each step begins."""
        self._limit = parameters.max_context_tokens
        self._action = parameters.max_tokens_per_step
        self._moves = parameters.on_overflow == "window"
        self._cuts = parameters.on_overflow == "truncate"
        self._keep = parameters.window_keep

    def open(self, prompt: int) -> bool:
        """Show a prompt of ``prompt`` tokens. False if it leaves no room for an action."""
        fits = prompt <= self._room
        self.prefix = prompt if fits else 0
        return fits

    def shown(self, length: int) -> int:
        """Number of visible tokens of a stream of ``length`` tokens."""
        return length - max(self.start - self.prefix, 0) - self._dropped(self.start)

    def budget(self, length: int) -> int:
        """Maximal number of tokens of the next action."""
        return min(self._action, self._limit - self.shown(length))

    def begin_step(self, length: int) -> None:
        """Begin a step: an action follows at the position ``length``."""
        self._steps.append(length)

    def drop(self, spans: Sequence[tuple[int, int]]) -> None:
        """Hide spans ``[begin, end)`` of the last action. Positions are relative to the action."""
        self.drops += [self._steps[-1] + position for span in spans for position in span]

    def admit(self, length: int, appended: int) -> bool:
        """Whether ``appended`` more tokens, and an action after them, fit. The window moves if
        necessary and allowed."""
        if self.shown(length + appended) <= self._room:
            return True
        return self._moves and self._move(length + appended)

    def whole_or_cut(self, length: int, final_ids: Sequence[int]) -> list[int]:
        """The part to keep of a last observation, which no action follows. The window does not move
        for it."""
        room = self._limit - self.shown(length)
        return list(final_ids[:room]) if self._cuts or len(final_ids) <= room else []

    @property
    def _room(self) -> int:
        """Maximal number of visible tokens before an action."""
        return self._limit - (1 if self._cuts else self._action)

    def _dropped(self, step: int) -> int:
        """Number of tokens dropped from the steps at or after the position ``step``."""
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
