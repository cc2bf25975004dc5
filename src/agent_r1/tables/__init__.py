"""Work with the tables: make them fit their schemas, read list columns, find trajectories.

Re-exported here is what every stage uses: ``tables.conform(frame, "rollouts")``.
"""

from agent_r1.tables.arrays import Ragged, ragged
from agent_r1.tables.conform import build, conform, empty, from_rows, to_arrow, to_frame

__all__ = ["Ragged", "build", "conform", "empty", "from_rows", "ragged", "to_arrow", "to_frame"]
