"""Reward terms: one function of the steps per file; the reward is their weighted sum."""

from agent_r1.rewards.base import Steps, Term, TermParameters
from agent_r1.rewards.composition import RewardParameters, rewards_table

__all__ = ["RewardParameters", "Steps", "Term", "TermParameters", "rewards_table"]
