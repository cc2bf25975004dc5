"""Tasks: a loader per task format, all giving the same rows (`agent_r1.schemas.TASKS`)."""
