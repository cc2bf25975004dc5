"""Objectives and KL estimators: pure functions of log-probs, one file per family."""
