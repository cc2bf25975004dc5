"""Trains the tiny base model: fictional worlds, surface forms, a tokenizer, a short run."""

from agent_r1.shipped.pretraining.train import PretrainParameters, pretrain

__all__ = ["PretrainParameters", "pretrain"]
