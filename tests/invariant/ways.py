"""Ways of computing the same update: what a user changes for speed or memory."""

from __future__ import annotations

OBJECTIVES = {
    "token_mean": "update.objective=ppo_clip,update.aggregation=token_mean",
    "sequence_mean": "update.objective=ppo_clip,update.aggregation=sequence_mean_token_mean",
    "gspo": "update.objective=gspo,update.aggregation=sequence_mean_token_mean",
    "dpo": "update.objective=dpo",
}
WAYS = {
    "reference": "update.micro_batch_trajectories=100",  # more than there are
    "micro_batch_1": "update.micro_batch_trajectories=1",
    "micro_batch_2": "update.micro_batch_trajectories=2",
    "micro_batch_4": "update.micro_batch_trajectories=4",
    "packed": "update.packing=true,update.micro_batch_trajectories=100",
    "packed_2": "update.packing=true,update.micro_batch_trajectories=2",
    "zero_1": "update.strategy=deepspeed,update.micro_batch_trajectories=100",
    "zero_1_2": "update.strategy=deepspeed,update.micro_batch_trajectories=2",
    "zero_1_packed_2": "update.strategy=deepspeed,update.packing=true,"
    "update.micro_batch_trajectories=2",
}
CLASSES = {
    "token_mean": [
        "micro_batch_1", "micro_batch_2", "micro_batch_4", "packed", "packed_2", "zero_1_2",
    ],
    "sequence_mean": ["micro_batch_1", "zero_1_packed_2"],
    "gspo": ["micro_batch_1", "zero_1_packed_2"],
    "dpo": ["micro_batch_1", "zero_1_packed_2"],
}  # fmt: skip
"""Objective → the ways that are compared with its reference."""
