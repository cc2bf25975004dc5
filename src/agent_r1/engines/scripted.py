"""An engine that continues each stream as a script says: what scripted agents act with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent_r1.engines.base import Sampling
from agent_r1.engines.playback import KnownAction, PlaybackEngine, ScriptError

__all__ = ["ScriptError", "ScriptedEngine"]


class ScriptedEngine(PlaybackEngine):
    """See `agent_r1.engines.base.Engine`. Log-probs are 0, as nothing was sampled."""

    def __init__(self, scripts: Mapping[str, Sequence[Sequence[int]]], version: str = "scripted"):
        """
        Args:
            scripts: stream → the token ids of its actions, in order, stop token included.
            version: what stands for the sha256 of a policy, as there is none.
        """
        super().__init__(version)
        self._scripts = scripts

    def _action(self, stream: str, position: int, sampling: Sampling) -> KnownAction:
        """The next action of the script, as it stands there.

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
                f"the {sampling.max_tokens} that an action may have"
            )
        return action, [0.0] * len(action), "stop"
