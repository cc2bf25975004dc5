"""Table operations: fit a table to its schema, read list columns, find trajectories.

This package re-exports what every stage uses, such as ``tables.conform(frame, "rollouts")``.
"""

from agent_r1.tables.arrays import Ragged, ragged
from agent_r1.tables.conform import build, conform, empty, from_rows, to_arrow, to_frame

__all__ = ["Ragged", "build", "conform", "empty", "from_rows", "ragged", "to_arrow", "to_frame"]
