"""Reward terms: functions of steps, one file per term, composed by weight."""

from agent_r1.rewards.base import Steps, Term, TermParameters
from agent_r1.rewards.composition import RewardParameters, rewards_table

__all__ = ["RewardParameters", "Steps", "Term", "TermParameters", "rewards_table"]
