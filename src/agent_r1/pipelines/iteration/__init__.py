"""One iteration of reinforcement learning: the stages, wired together."""
