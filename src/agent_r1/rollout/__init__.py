"""Rollouts: a policy acts in environments, and every token of it is recorded.

1. `Trajectory` is a small state machine: context → action → environment → context … It knows
   tokens, limits and rows, but neither models nor text. Its `Window` decides which tokens the
   policy sees if the stream becomes too long.
2. `collect` runs thousands of trajectories on one event loop: the engine samples, the chat format
   formats and parses turns, the environment executes actions.
3. In deterministic mode, a `Turnstile` lets no trajectory generate before all have arrived. So
   batches, and the bytes of the tables, do not depend on how long tools take.
4. Stages call `run_trajectories`: policy folder, tables and parameters in, tables out.
5. `check_played` refuses a batch in which no trajectory could be played.
6. `play_demonstrations` runs a scripted agent instead of a policy.
7. `replay_trajectories` executes recorded actions again and reports all differences.
"""

from agent_r1.rollout.collector import StaleWeightsError, collect
from agent_r1.rollout.demonstrations import play_demonstrations
from agent_r1.rollout.parameters import RolloutParameters
from agent_r1.rollout.played import BrokenEnvironmentError, check_played
from agent_r1.rollout.replay import Replay, replay_trajectories, replay_with
from agent_r1.rollout.requests import (
    TrajectoryRequest,
    drawing_order,
    group_requests,
    select_tasks,
)
from agent_r1.rollout.run import environment_factory, prepare_run, run_trajectories
from agent_r1.rollout.trajectory import Trajectory

__all__ = [
    "BrokenEnvironmentError",
    "Replay",
    "RolloutParameters",
    "StaleWeightsError",
    "Trajectory",
    "TrajectoryRequest",
    "check_played",
    "collect",
    "drawing_order",
    "environment_factory",
    "group_requests",
    "play_demonstrations",
    "prepare_run",
    "replay_trajectories",
    "replay_with",
    "run_trajectories",
    "select_tasks",
]
