"""Trajectories → rewards."""
