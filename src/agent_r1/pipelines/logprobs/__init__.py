"""The trainer's log-probs and values of what was sampled."""
