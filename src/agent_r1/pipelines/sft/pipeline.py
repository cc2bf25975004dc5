"""The policies that reinforcement learning starts from: ``base``, and ``iter_00000`` after SFT."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from agent_r1.pipelines.evaluation.pipeline import create_evaluation, create_validation
from agent_r1.pipelines.namespaces import instance, iteration_name
from agent_r1.pipelines.sft.nodes import import_policy, train_sft

_SHARED = {name: name for name in ("engine", "tasks", "documents")}


def create_base() -> Pipeline:
    """``base.policy``, imported from ``model.path``, and its evaluation."""
    imported = Node(import_policy, inputs="params:model", outputs="policy", name="import_policy")
    return instance([imported, create_evaluation("base")], "base", _SHARED)


def create_pipeline() -> Pipeline:
    """``iter_00000``: the warm start, which is also the reference policy, and its evaluation."""
    trained = Node(
        train_sft,
        inputs=["base_policy", "demonstrations", "params:sft", "params:model", "params:seed"],
        outputs=["policy", "critic", "trainer_state", "controllers", "update_metrics"],
        name="train_sft",
    )
    name = iteration_name(0)
    return instance(
        [trained, create_validation(name), create_evaluation(name)],
        name,
        {"base_policy": "base.policy", "demonstrations": "demonstrations", **_SHARED},
    )
