"""How chat templates write tool calls: one file per dialect; trying finds the right one.

To add a dialect, add a file here and a line in `DIALECTS`.
"""

from __future__ import annotations

from agent_r1.chat.dialects.base import Dialect
from agent_r1.chat.dialects.harmony import HarmonyDialect
from agent_r1.chat.dialects.llama import LlamaDialect
from agent_r1.chat.dialects.qwen import QwenDialect

__all__ = ["DIALECTS", "Dialect"]

DIALECTS: tuple[Dialect, ...] = (QwenDialect(), LlamaDialect(), HarmonyDialect())
"""In the order in which they are tried."""
