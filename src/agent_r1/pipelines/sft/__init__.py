"""The base policy, and its supervised warm start."""
