"""Agent-R1 on Kedro: train tool-using LLM agents end to end with reinforcement learning."""

__version__ = "0.1.0"
