"""An engine that continues each session as a script says: no model, no sampling.

It lets scripted agents go through the very loop that policies go through, so their episodes have
the same rows, the same tokens and the same environment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from agent_r1.engines.base import Generation, Sampling


class ScriptError(RuntimeError):
    """A session wants to go on where its script does not, or not within its token limit."""


class ScriptedEngine:
    """See `agent_r1.engines.base.Engine`."""

    def __init__(self, scripts: Mapping[str, Sequence[Sequence[int]]], version: str = "scripted"):
        """
        Args:
            scripts: session → the token ids of its actions, in order, stop token included.
            version: what stands for the sha256 of a policy, as there is none.
        """
        self.weight_version = version
        self._scripts = scripts
        self._positions: dict[str, int] = {}
        self._visible: dict[str, int] = {}

    def load(self, policy: Path, version: str) -> None:
        """Nothing to load.

        Raises:
            ScriptError: another version than the script's is asked for.
        """
        if version != self.weight_version:
            raise ScriptError(f"a scripted engine has no policy {version!r} to load")

    async def generate(
        self, session: str, new_token_ids: Sequence[int], sampling: Sampling
    ) -> Generation:
        """The next action of the session's script; log-probs are 0, as nothing was sampled.

        Raises:
            ScriptError: the script has ended, or its action exceeds ``sampling.max_tokens``.
        """
        visible = self._visible.get(session, 0) + len(new_token_ids)
        action = self._next(session, sampling.max_tokens) if sampling.max_tokens else []
        self._visible[session] = visible + len(action)
        return Generation(
            token_ids=list(action),
            logprobs=[0.0] * len(action),
            finish_reason="stop" if sampling.max_tokens else "length",
            prompt_tokens=visible,
            cached_tokens=0,
            generation_ms=0.0,
        )

    def _next(self, session: str, max_tokens: int) -> Sequence[int]:
        position = self._positions.get(session, 0)
        script = self._scripts.get(session, ())
        if position >= len(script):
            raise ScriptError(f"the script of '{session}' ends after {len(script)} actions")
        self._positions[session] = position + 1
        if len(script[position]) > max_tokens:
            raise ScriptError(
                f"action {position} of '{session}' has {len(script[position])} tokens, more than "
                f"the {max_tokens} that an action may have"
            )
        return script[position]

    def fork(self, session: str, into: Sequence[str]) -> None:
        """Copies see what ``session`` has seen; each follows a script of its own."""
        for name in into:
            self._visible[name] = self._visible.get(session, 0)

    def window(
        self, session: str, prefix: int, start: int, drops: Sequence[int] | None = None
    ) -> None:
        """Nothing is remembered, so nothing is forgotten."""

    def close(self, session: str) -> None:
        """Forget how far the session got."""
        self._positions.pop(session, None)
        self._visible.pop(session, None)
