"""Policies and their training: sequences, log-probs, SFT, the policy update."""
