"""Rewards → advantages."""
