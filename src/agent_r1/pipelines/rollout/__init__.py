"""Sample trajectories of the policy."""
