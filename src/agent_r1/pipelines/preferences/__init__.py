"""Trajectories → preference pairs."""
