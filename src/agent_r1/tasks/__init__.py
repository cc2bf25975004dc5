"""Tasks: one loader per format. All give the same rows (`agent_r1.schemas.TASKS`)."""
