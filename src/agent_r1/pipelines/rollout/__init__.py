"""The policy acts: trajectories."""
