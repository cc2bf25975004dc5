"""Evaluate a policy."""
