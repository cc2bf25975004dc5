"""Objectives: pure functions of log-probs, one file per objective."""
