"""Reward terms: pure functions of steps, one file per term, composed by weight."""

from agent_r1.rewards.composition import RewardParameters, rewards_table

__all__ = ["RewardParameters", "rewards_table"]
