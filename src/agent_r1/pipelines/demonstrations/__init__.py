"""A scripted agent's imperfect episodes, for the warm start."""
