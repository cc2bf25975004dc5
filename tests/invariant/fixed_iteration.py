"""One small iteration that is the same on every machine, through the real nodes.

Weights and token ids come from NumPy's generator, which gives the same bits everywhere; nothing is
sampled by a model. 16 trajectories in 4 groups, of 1 to 3 steps; each group has right and wrong
answers. The learning rate is high and there are 3 epochs of 2 optimizer steps, so that ratios leave
the clip range and the dual clip binds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from omegaconf import OmegaConf

from agent_r1.advantages.registry import ESTIMATORS
from agent_r1.pipelines.advantage.nodes import compute_advantages
from agent_r1.pipelines.preferences.nodes import build_preferences
from agent_r1.pipelines.reward.nodes import score_rewards
from agent_r1.tables.arrays import ragged
from agent_r1.training.optimizer import write_empty
from tests.invariant.ways import OBJECTIVES, WAYS
from tests.support.nodes import compute_logprobs, update_policy
from tests.support.step_tables import rollouts, step, tasks
from tests.support.tiny_models import VOCABULARY, random_model, write_tokenizer

GROUPS, SAMPLES = ("p", "q", "r", "s"), 4
TEMPERATURES = {"p": 1.0, "q": 0.7, "r": 1.0, "s": 1.3}
UPDATE = {
    "epochs": 3, "mini_batch_trajectories": 8, "learning_rate": 2e-3, "warmup_steps": 2,
    "eps": 1e-5, "dual_clip": 1.05,
}  # fmt: skip
METRICS = ("loss", "grad_norm", "entropy", "ratio_mean", "old_kl", "reference_kl")
"""Of each optimizer step."""


def make_rollouts() -> pd.DataFrame:
    """The rollouts; sample 0 of each group is right, and in ``r`` and ``s`` sample 1, too."""
    draw = np.random.default_rng(0)
    rows = []
    for group in GROUPS:
        for sample in range(SAMPLES):
            count = 1 + (sample + GROUPS.index(group)) % 3
            for index in range(count):
                context = draw.integers(0, VOCABULARY, 4 + 2 * sample).tolist()
                action = draw.integers(0, VOCABULARY, 3 + sample).tolist()
                row = step(f"{group}/{sample}", index, context, action, env_reward=None)
                row["temperature"] = TEMPERATURES[group]
                right = sample == 0 or (sample == 1 and group in "rs")
                if index == count - 1:
                    answer = "<answer>yes</answer>" if right else "<answer>no</answer>"
                    row |= {"action_type": "answer", "action_text": answer}
                    row |= {"terminated": True, "end_reason": "answered"}
                rows.append(row)
    return rollouts(*rows)


def write_fixed_policy(folder: Path, seed: int) -> Path:
    """The tiny policy, with weights of NumPy's."""
    model, draw = random_model(), np.random.default_rng(seed)
    with torch.no_grad():
        for name, weight in sorted(model.named_parameters()):
            values = draw.normal(scale=0.2, size=tuple(weight.shape)).astype(np.float32)
            weight.copy_(torch.from_numpy(values) + (1.0 if "norm" in name else 0.0))
    model.save_pretrained(folder)
    return write_tokenizer(folder)


def by_trajectory(table: pd.DataFrame, column: str) -> list[float]:
    """The mean over the action tokens of each trajectory, in the order of their ids."""
    values = ragged(table[column])
    owner = np.repeat(table["trajectory_id"].to_numpy(dtype=object), values.lengths)
    frame = pd.DataFrame({"owner": owner, "value": values.values.astype(np.float64)})
    return frame.groupby("owner")["value"].mean().tolist()


@dataclass
class FixedIteration:
    """The iteration, in a folder of its own."""

    folder: Path
    rollouts: pd.DataFrame = field(default_factory=make_rollouts)

    def __post_init__(self) -> None:
        self.policy = write_fixed_policy(self.folder / "policy", 1)
        self.reference = write_fixed_policy(self.folder / "reference", 2)
        for name in ("critic", "state"):
            (self.folder / name).mkdir()
        self.critic = write_empty(self.folder / "critic", "no critic")
        self.state = write_empty(self.folder / "state", "no step")
        answers = tasks(**{group: ["yes"] for group in GROUPS})
        self.rewards = score_rewards(self.rollouts, answers, {})
        self.logprobs = self._logprobs(self.policy)

    def _logprobs(self, policy: Path) -> pd.DataFrame:
        return compute_logprobs(self.rollouts, policy, self.reference, self.critic, {}, {})

    def _advantages(self, estimator: str) -> pd.DataFrame:
        parameters = {"estimator": estimator}
        return compute_advantages(self.rollouts, self.rewards, self.logprobs, parameters)

    def before_the_update(self) -> dict[str, Any]:
        """Numbers of each trajectory: its reward, its log-probs, its advantage by each estimator
        that needs no critic."""
        first = self.rewards.groupby("trajectory_id")["trajectory_reward"].first()
        return {
            "rewards": [float(value) for value in first],
            "policy_logprobs": by_trajectory(self.logprobs, "policy_logprobs"),
            "reference_logprobs": by_trajectory(self.logprobs, "reference_logprobs"),
            "advantages": {
                name: by_trajectory(self._advantages(name), "advantages")
                for name, estimator in sorted(ESTIMATORS.items())
                if not estimator.needs_values
            },
        }

    def update(self, objective: str, way: str = "reference", **changes: Any) -> dict[str, Any]:
        """The metrics of each optimizer step, and the trajectories' log-probs after the last."""
        dotlist = f"{OBJECTIVES[objective]},{WAYS[way]}".split(",")
        parameters = UPDATE | OmegaConf.to_container(OmegaConf.from_dotlist(dotlist))["update"]
        policy, *_, metrics = update_policy(
            self.policy, self.reference, self.critic, self.state, {}, self.rollouts, self.logprobs,
            self._advantages("grpo"),
            build_preferences(self.rollouts, self.rewards, parameters["objective"]),
            parameters | changes, {}, 0, iteration="iter_00001",
        )  # fmt: skip
        of_metric = {name: metrics[metrics["metric"] == name]["value"] for name in METRICS}
        found = {name: values.tolist() for name, values in of_metric.items() if len(values)}
        return found | {"logprobs_after": by_trajectory(self._logprobs(policy), "policy_logprobs")}
