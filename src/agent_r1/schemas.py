"""The tables between the stages: exact columns, types, units, and the meaning of null.

Every table is a pandas DataFrame with Arrow-backed dtypes (`pandas.ArrowDtype`). A list column is
one flat buffer plus offsets, so it reaches torch without a Python loop (`agent_r1.tables.ragged`).
`agent_r1.tables.conform` fits a table to its schema before it is saved, hashed or compared.

Token lists of a step (``action_logprobs``, ``advantages``, …) have the length of its
``action_token_ids``. They hold no context tokens, so no wrong mask can train on an observation.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pyarrow as pa

from agent_r1.errors import UserError

SPLITS = ("train", "validation", "in_domain", "held_out", "ood")
"""Tune and select on ``validation``; the last three splits are only reported."""


class SchemaError(UserError, ValueError):
    """A table does not fit its schema; the message names the table and the column."""


def _field(name: str, kind: pa.DataType, about: str, null: str | None = None) -> pa.Field:
    """A column: ``about`` says what it holds and its unit, ``null`` what a null means."""
    metadata = {"about": about} | ({"null": null} if null else {})
    return pa.field(name, kind, nullable=null is not None, metadata=metadata)


_STR, _INT, _BOOL, _F32 = pa.string(), pa.int32(), pa.bool_(), pa.float32()
# Parquet calls the field of a list "element"; with this name a saved table is restored unchanged.
_INTS = pa.list_(pa.field("element", _INT))
_F32S = pa.list_(pa.field("element", _F32))
_BOOLS = pa.list_(pa.field("element", _BOOL))
_STRS = pa.list_(pa.field("element", _STR))

_STEP_KEY = (
    _field("trajectory_id", _STR, "{iteration}/{task_id}/{sample_index}"),
    _field("step_index", _INT, "position of the step in its trajectory, from 0"),
)

TASKS = pa.schema(
    [
        _field("task_id", _STR, "unique in the table"),
        _field("environment", _STR, "name in the environment registry"),
        _field("split", _STR, "one of train, validation, in_domain, held_out, ood"),
        _field("family", _STR, "kind of task; metrics are also reported per family"),
        _field("prompt", _STR, "what the agent is asked"),
        _field("answers", _STRS, "accepted answers; the first is the canonical one"),
        _field("hops", _INT, "facts that must be chained", null="not a multi-hop task"),
        _field("payload", _STR, "JSON: whatever the environment needs; never shown to the policy"),
    ]
)

DOCUMENTS = pa.schema(
    [
        _field("document_id", _STR, "unique in the table"),
        _field("title", _STR, "unique title, what a citation names"),
        _field("text", _STR, "the page, without its title"),
    ]
)

ROLLOUTS = pa.schema(
    [
        *_STEP_KEY[:1],
        _field("task_id", _STR, "the task that was attempted"),
        _field("group_id", _STR, "trajectories that are compared with each other"),
        _field("sample_index", _INT, "position in the group, from 0"),
        _STEP_KEY[1],
        _field("environment", _STR, "name in the environment registry"),
        _field("policy_version", _STR, "sha256 of the policy that acted"),
        _field("state_key", _STR, "equal for equal states; anchors of GiGPO"),
        _field("context_token_ids", _INTS, "tokens appended to the stream before the action"),
        _field("context_prefix", _INT, "leading tokens of the stream that are always visible"),
        _field("context_start", _INT, "stream position from which the tail is visible"),
        _field("context_drops", _INTS, "flat [begin, end) stream positions", null="none dropped"),
        _field("action_token_ids", _INTS, "sampled tokens only, the stop token included"),
        _field("action_logprobs", _F32S, "nats; log_softmax(logits / T), before top-p/top-k/min-p"),
        _field("temperature", _F32, "sampling temperature T; 0 is greedy, scored at T = 1"),
        _field("action_text", _STR, "the action decoded, without the stop token"),
        _field("action_type", _STR, "tool_call, answer, malformed, cut or none"),
        _field("tool_calls", _STR, "JSON list of {name, arguments}"),
        _field("tool_results", _STR, "JSON list of {name, status, attempts, content}"),
        _field("observation", _STR, "what the agent was told after it", null="the episode ended"),
        _field("env_reward", _F32, "the environment's own reward", null="not scored"),
        _field("terminated", _BOOL, "the environment ended the episode here"),
        _field("truncated", _BOOL, "a limit ended the trajectory here"),
        _field("end_reason", _STR, "see agent_r1.mdp.EndReason", null="not the last step"),
        _field(
            "final_token_ids",
            _INTS,
            "tokens appended after the last action of a truncated trajectory",
            null="not the last step of a truncated trajectory",
        ),
        _field("finish_reason", _STR, "stop or length", null="there was no action"),
        _field("prompt_tokens", _INT, "tokens visible to the policy at this step"),
        _field("completion_tokens", _INT, "tokens sampled"),
        _field("media", _STR, "JSON list of {sha256, mime, position}; reserved", null="no media"),
        _field("seed", pa.int64(), "seed of the step's sampling"),
        _field("info", _STR, "JSON: what the environment reported"),
    ]
)

ROLLOUT_TIMINGS = pa.schema(
    [
        *_STEP_KEY,
        _field("generation_ms", _F32, "ms from request to last token"),
        _field("tool_ms", _F32, "ms in the environment"),
        _field("tool_latencies_ms", _F32S, "ms of each tool call, in call order"),
        _field("cached_tokens", _INT, "context tokens that were not computed again"),
        _field("started_at", pa.timestamp("us", tz="UTC"), "when generation was requested"),
    ]
)

SAMPLED_GROUPS = pa.schema(
    [
        _field("group_id", _STR, "unique in the table: {iteration}/{task_id}"),
        _field("task_id", _STR, "the task that was attempted"),
        _field("round", _INT, "of dynamic sampling, from 1: the iteration's own batch"),
        _field("kept", _BOOL, "its trajectories are in rollouts"),
        _field("reason", _STR, "no_variance or too_few_scored", null="it has a signal"),
        _field("rewards", _F32S, "of its trajectories by sample_index; a null one is not scored"),
        _field("scored", _INT, "scored trajectories"),
        _field("mean_reward", _F32, "over the scored trajectories", null="none was scored"),
        _field("completion_tokens", _INT, "tokens sampled by all its trajectories"),
    ]
)

REWARDS = pa.schema(
    [
        *_STEP_KEY,
        _field("reward", _F32, "sum of the weighted components", null="not scored"),
        _field("components", _STR, "JSON {term: weighted value}"),
        _field("trajectory_reward", _F32, "sum of reward, on each row", null="not scored"),
        _field("correct", _BOOL, "the task was solved, on each row", null="no outcome term"),
    ]
)

LOGPROBS = pa.schema(
    [
        *_STEP_KEY,
        _field("policy_logprobs", _F32S, "nats; of the policy before its update, by the trainer"),
        _field("reference_logprobs", _F32S, "nats; of the reference policy", null="no reference"),
        _field("values", _F32S, "V at the position that predicts each token", null="no critic"),
        _field(
            "bootstrap_value",
            _F32,
            "V of the state in which a truncated trajectory stopped, on its last row",
            null="terminated, not the last row, or no critic",
        ),
    ]
)

ADVANTAGES = pa.schema(
    [
        *_STEP_KEY,
        _field("advantages", _F32S, "one per action token; 0 where not scored"),
        _field(
            "returns",
            _F32S,
            "targets of the critic; an element is null where a token has none: all but a step's "
            "first at level step, and what is not scored",
            null="the estimator has no returns",
        ),
        _field("loss_mask", _BOOLS, "true where the token is trained on"),
        _field("group_size", _INT, "scored trajectories of the group"),
    ]
)

PREFERENCES = pa.schema(
    [
        _field("pair_id", _STR, "unique in the table"),
        _field("group_id", _STR, "the group both come from"),
        _field("chosen_trajectory_id", _STR, "the better trajectory"),
        _field("rejected_trajectory_id", _STR, "the worse trajectory"),
        _field("chosen_reward", _F32, "its trajectory reward"),
        _field("rejected_reward", _F32, "its trajectory reward"),
    ]
)

METRICS = pa.schema(
    [
        _field("step", _INT, "optimizer step of the stage, from 0"),
        _field("metric", _STR, "name; units stand in the trainer's documentation"),
        _field("value", pa.float64(), "value"),
    ]
)

_UNSCORED = "no sample was scored"

EVALUATION = pa.schema(
    [
        _field("split", _STR, "one of the task splits"),
        _field("family", _STR, "task family", null="the whole split"),
        _field("n", _INT, "tasks"),
        _field("exact_match", _F32, "mean over samples at the rollout temperature", null=_UNSCORED),
        _field(
            "greedy_exact_match", _F32, "of one greedy trajectory per task", null="none was scored"
        ),
        _field("f1", _F32, "token F1 of the answer, mean over samples", null=_UNSCORED),
        _field("mean_steps", _F32, "steps per sampled trajectory"),
        _field("tool_error_rate", _F32, "failed tool calls / tool calls; 0 if none was made"),
        _field("mean_return", _F32, "trajectory reward, mean over samples", null=_UNSCORED),
    ]
)

SCHEMAS: dict[str, pa.Schema] = {
    "tasks": TASKS,
    "documents": DOCUMENTS,
    "rollouts": ROLLOUTS,
    "rollout_timings": ROLLOUT_TIMINGS,
    "sampled_groups": SAMPLED_GROUPS,
    "rewards": REWARDS,
    "logprobs": LOGPROBS,
    "advantages": ADVANTAGES,
    "preferences": PREFERENCES,
    "metrics": METRICS,
    "evaluation": EVALUATION,
}

_MOVED = ("build", "conform", "empty", "from_rows", "ragged", "Ragged", "to_arrow", "to_frame")


def __getattr__(name: str) -> Any:
    """Keep ``schemas.conform`` and the like, now in `agent_r1.tables`, working for task sources and
    notebooks that use them."""
    if name in _MOVED:
        return getattr(import_module(f"{__package__}.tables"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
