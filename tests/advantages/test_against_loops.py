"""Every estimator equals a version in plain loops over trajectories and tokens."""

from __future__ import annotations

import math
from collections import defaultdict
from statistics import fmean, stdev

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_r1.advantages.registry import ESTIMATORS
from tests.support.episodes import Episode, advantages, column, episode, turn

KL = 0.05
GAMMA, LAM, WEIGHT, EPS = 0.9, 0.8, 0.7, 1e-6


def random_episodes(rng: np.random.Generator) -> list[Episode]:
    found = []
    for index in range(rng.integers(1, 9)):
        turns = []
        for _ in range(rng.integers(1, 5)):
            tokens = int(rng.integers(0, 4)) if turns else int(rng.integers(1, 4))
            columns = [(-rng.random(tokens)).round(3).tolist() for _ in range(3)]
            reward = float(rng.choice([0.0, 0.25, 1.0, -1.0]))
            turns.append(turn(reward, tokens, *columns, state_key=str(rng.integers(3))))
        end = str(rng.choice(["answered", "max_steps"]))
        name = f"{rng.integers(3)}/{index}"
        scored = bool(rng.random() < 0.8)
        found.append(episode(name, *turns, end_reason=end, bootstrap=0.3, scored=scored))
    return sorted(found, key=lambda part: part[0]["rollouts"]["trajectory_id"])


class Loops:
    """One trajectory as lists of numbers."""

    def __init__(self, part: Episode) -> None:
        self.rows = [(row["rollouts"], row["rewards"], row["logprobs"]) for row in part]
        self.group = self.rows[0][0]["group_id"]
        self.total = self.rows[0][1]["trajectory_reward"]
        self.scored = self.total is not None
        self.bootstrap = 0.3 if self.rows[-1][0]["truncated"] else 0.0
        self.rewards, self.values, self.steps = [], [], []
        for rollout, reward, logprob in self.rows:
            kls = [
                KL * (a - b)
                for a, b in zip(
                    logprob["policy_logprobs"], logprob["reference_logprobs"], strict=True
                )
            ]
            if kls:
                self.steps.append([rollout["state_key"], -sum(kls), len(kls), logprob["values"][0]])
            self.rewards += [-kl for kl in kls]
            self.values += logprob["values"]
            self.rewards[-1] += reward["reward"] or 0.0
            self.steps[-1][1] += reward["reward"] or 0.0
        self.reward = None if self.total is None else self.total - self._kl()

    def _kl(self) -> float:
        return sum(
            KL * (a - b)
            for _, _, logprob in self.rows
            for a, b in zip(logprob["policy_logprobs"], logprob["reference_logprobs"], strict=True)
        )

    def spread(self, by_step: list[float]) -> list[float]:
        return [
            value for value, step in zip(by_step, self.steps, strict=True) for _ in range(step[2])
        ]


def backwards(rewards: list[float], discount: float) -> list[float]:
    sums, later = [], 0.0
    for reward in reversed(rewards):
        later = reward + discount * later
        sums.append(later)
    return sums[::-1]


def gae(rewards: list[float], values: list[float], bootstrap: float) -> list[float]:
    following = [*values[1:], bootstrap]
    deltas = [r + GAMMA * after - v for r, v, after in zip(rewards, values, following, strict=True)]
    return backwards(deltas, GAMMA * LAM)


def relative(value: float, members: list[float], name: str) -> float:
    if max(members) - min(members) <= 1e-6 * max(1, abs(max(members))):
        return 0.0
    if name == "rloo":
        return value - (sum(members) - value) / (len(members) - 1)
    deviation = value - fmean(members)
    return deviation / (stdev(members) + EPS) if name in ("grpo", "gigpo") else deviation


def expected(name: str, level: str, found: list[Loops]) -> list[list[float]]:
    groups, anchors = defaultdict(list), defaultdict(list)
    for one in found:
        if one.scored:
            groups[one.group].append(one.reward)
            one.step_returns = backwards([step[1] for step in one.steps], GAMMA)
            for step, value in zip(one.steps, one.step_returns, strict=True):
                anchors[one.group, step[0]].append(value)
    result = []
    for one in found:
        if not one.scored:
            result.append([0.0] * len(one.values))
        elif name in ("returns", "reinforce_plus_plus"):
            by_token = backwards(one.rewards, GAMMA)
            result.append(by_token if level == "token" else one.spread(one.step_returns))
        elif name == "gae" and level == "token":
            result.append(gae(one.rewards, one.values, one.bootstrap))
        elif name == "gae":
            steps = [step[1] for step in one.steps], [step[3] for step in one.steps]
            result.append(one.spread(gae(*steps, one.bootstrap)))
        else:
            whole = relative(one.reward, groups[one.group], name)
            by_step = [whole] * len(one.steps)
            if name == "gigpo":
                for index, (step, value) in enumerate(
                    zip(one.steps, one.step_returns, strict=True)
                ):
                    by_step[index] += WEIGHT * relative(value, anchors[one.group, step[0]], name)
            result.append(one.spread(by_step))
    return result


@pytest.mark.parametrize("level", ["token", "step"])
@pytest.mark.parametrize("name", sorted(ESTIMATORS))
@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1))
def test_equals_the_loop_version(name: str, level: str, seed: int) -> None:
    parts = random_episodes(np.random.default_rng(seed))
    table = advantages(
        *parts,
        estimator=name, level=level, gamma=GAMMA, lam=LAM, step_weight=WEIGHT, eps=EPS,
        whiten=False, kl_coef=KL,
    )  # fmt: skip
    for found, wanted in zip(
        column(table), expected(name, level, [Loops(part) for part in parts]), strict=True
    ):
        assert all(map(math.isfinite, found))
        assert found == pytest.approx(wanted, abs=2e-5)
