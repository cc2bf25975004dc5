"""The tables that pass between the stages: exact columns, types, units, and what null means.

Every table is a pandas DataFrame with Arrow-backed dtypes (`pandas.ArrowDtype`): a list column is
one flat buffer plus offsets, and reaches torch without a Python loop (`ragged`). `conform` is the
one door into a schema; what passed it may be saved, hashed and compared.

Token lists of a step (``action_logprobs``, ``advantages``, …) always have the length of its
``action_token_ids``. Context tokens are in none of them, so no wrong mask can train on an
observation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

SPLITS = ("train", "validation", "in_domain", "held_out", "ood")
"""``validation`` is for selection and tuning; the last three are only ever reported."""


class SchemaError(ValueError):
    """A table does not fit its schema; the message names the table and the column."""


def _field(name: str, kind: pa.DataType, about: str, null: str | None = None) -> pa.Field:
    """A column: ``about`` says what it holds and its unit, ``null`` what a null means."""
    metadata = {"about": about} | ({"null": null} if null else {})
    return pa.field(name, kind, nullable=null is not None, metadata=metadata)


_STR, _INT, _BOOL, _F32 = pa.string(), pa.int32(), pa.bool_(), pa.float32()
# The field of a list is named as Parquet names it, so that a saved table comes back unchanged.
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


def to_arrow(frame: pd.DataFrame, name: str, *, extra: str = "error") -> pa.Table:
    """``frame`` as an Arrow table with exactly the columns and types of schema ``name``.

    Args:
        frame: any DataFrame; list columns may be Python lists, numpy arrays or Arrow-backed.
        name: a key of `SCHEMAS`.
        extra: ``"error"`` refuses unknown columns, ``"drop"`` leaves them out.

    An absent nullable column becomes nulls; a cast that would lose a value is an error.

    Raises:
        SchemaError: a column is missing, unknown, null where it must not be, or of the wrong type.
    """
    schema = SCHEMAS[name]
    unknown = [column for column in frame.columns if column not in schema.names]
    if unknown and extra == "error":
        raise SchemaError(f"table '{name}' has no column {unknown}; it has {schema.names}")
    columns = [_column(frame, field, name) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _column(frame: pd.DataFrame, field: pa.Field, name: str) -> pa.Array:
    if field.name not in frame.columns:
        if not field.nullable:
            raise SchemaError(f"table '{name}': column '{field.name}' is missing")
        return pa.nulls(len(frame), field.type)
    series = frame[field.name]
    try:
        if isinstance(series.dtype, pd.ArrowDtype):
            array = one_array(pa.chunked_array(series.array.__arrow_array__()).cast(field.type))
        else:
            array = _convert(series, field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise SchemaError(
            f"table '{name}': column '{field.name}' cannot be cast to {field.type}: {error}"
        ) from None
    if array.null_count and not field.nullable:
        row = int(np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))[0])
        raise SchemaError(f"table '{name}': column '{field.name}' is null in row {row}")
    return array


def one_array(chunked: pa.ChunkedArray) -> pa.Array:
    """The elements as one array; a single chunk is not copied, as ``combine_chunks`` would."""
    if chunked.num_chunks == 1:
        return chunked.chunk(0)
    return pa.concat_arrays(chunked.chunks) if chunked.num_chunks else pa.array([], chunked.type)


def _convert(series: pd.Series, kind: pa.DataType) -> pa.Array:
    """A column that is not Arrow-backed, cast without losing a value."""
    if pa.types.is_nested(kind) or series.dtype == object:
        return pa.array(series.tolist(), type=kind, from_pandas=True)
    array = pa.array(series, from_pandas=True)
    if pa.types.is_floating(array.type) and pa.types.is_floating(kind):
        return array.cast(kind, safe=False)  # float64 → float32 rounds; that is what f32 means
    return array.cast(kind)


def to_frame(table: pa.Table) -> pd.DataFrame:
    """An Arrow table as a DataFrame with Arrow-backed dtypes; no value is copied."""
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def conform(frame: pd.DataFrame, name: str, *, extra: str = "drop") -> pd.DataFrame:
    """``frame`` with exactly the columns and Arrow-backed types of schema ``name``.

    What nodes call on what they are given; see `to_arrow` for the rules and errors.
    """
    return to_frame(to_arrow(frame, name, extra=extra))


def build(columns: Mapping[str, Any], name: str) -> pd.DataFrame:
    """A table of schema ``name`` from one sequence (or Arrow array) per column."""
    arrays = {
        key: pd.Series(pd.arrays.ArrowExtensionArray(value))
        if isinstance(value, pa.Array | pa.ChunkedArray)
        else pd.Series(value, dtype=object if not isinstance(value, np.ndarray) else None)
        for key, value in columns.items()
    }
    return conform(pd.DataFrame(arrays), name, extra="error")


def from_rows(rows: Sequence[Mapping[str, Any]], name: str) -> pd.DataFrame:
    """A table of schema ``name`` from one mapping per row; also for no rows at all."""
    return to_frame(pa.Table.from_pylist([dict(row) for row in rows], schema=SCHEMAS[name]))


def empty(name: str) -> pd.DataFrame:
    """The table of schema ``name`` without rows."""
    return to_frame(SCHEMAS[name].empty_table())


class Ragged(NamedTuple):
    """A list column as one flat array: row ``i`` is ``values[offsets[i]:offsets[i + 1]]``."""

    values: np.ndarray
    """All elements, flat. Length: ``offsets[-1]``."""
    offsets: np.ndarray
    """int64, one more than rows, from 0; a null list is an empty one."""

    @property
    def lengths(self) -> np.ndarray:
        """Elements per row, int64."""
        return np.diff(self.offsets)

    def to_arrow(self, element: pa.DataType, null: np.ndarray | None = None) -> pa.ListArray:
        """Back to an Arrow list column with this element type; ``null``: bool, which are null."""
        kind = pa.list_(pa.field("element", element))
        offsets = pa.array(self.offsets.astype(np.int32))
        values = pa.array(self.values, type=element, mask=null)
        return pa.ListArray.from_arrays(offsets, values, type=kind)


def ragged(column: pd.Series) -> Ragged:
    """The flat values and offsets of an Arrow-backed list column, without a Python loop."""
    array = one_array(pa.chunked_array(column.array.__arrow_array__()))
    lengths = np.nan_to_num(
        array.value_lengths().to_numpy(zero_copy_only=False).astype(np.float64)
    ).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    # flatten() follows the slice and skips null lists, as the lengths do.
    values = array.flatten().to_numpy(zero_copy_only=False)
    return Ragged(values, offsets)
