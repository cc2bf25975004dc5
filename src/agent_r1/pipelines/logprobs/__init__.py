"""The trainer's log-probs and values of the sampled tokens."""
