"""The engine of scripted agents: each stream continues with the actions of its script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent_r1.engines.base import Sampling
from agent_r1.engines.playback import KnownAction, PlaybackEngine, ScriptError

__all__ = ["ScriptError", "ScriptedEngine"]


class ScriptedEngine(PlaybackEngine):
    """An `agent_r1.engines.base.Engine` without a model. Log-probs are 0: nothing is sampled."""

    def __init__(self, scripts: Mapping[str, Sequence[Sequence[int]]], version: str = "scripted"):
        """
        Args:
            scripts: stream → token ids of each of its actions, in order, with the stop token.
            version: used in place of the sha256 of a policy.
        """
        super().__init__(version)
        self._scripts = scripts

    def _action(self, stream: str, position: int, sampling: Sampling) -> KnownAction:
        """The next action of the script, unchanged.

        Raises:
            ScriptError: the script has ended, or its action exceeds ``sampling.max_tokens``.
        """
        script = self._scripts.get(stream, ())
        if position >= len(script):
            raise ScriptError(f"the script of '{stream}' ends after {len(script)} actions")
        action = script[position]
        if len(action) > sampling.max_tokens:
            raise ScriptError(
                f"action {position} of '{stream}' has {len(action)} tokens, more than "
                f"the limit of {sampling.max_tokens}"
            )
        return action, [0.0] * len(action), "stop"
