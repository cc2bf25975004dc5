"""Seconds and memory of the advantages of a million steps, for each estimator.

Each estimator runs in a separate process on one core, reads the same tables, and calls the node:

    python benchmarks/advantages.py                       # 50 action tokens per step: 50 million
    python benchmarks/advantages.py --tokens 10 grpo gae  # 50 action tokens per trajectory

A small call of the same kind comes before the clock starts, so imports are not measured. Prints the
seconds (median of ``--repeats`` processes), and the peak memory as a multiple of the tables' size
(tables included). Exit code 1 if an estimator exceeds its limits. The limits are the same for 50
tokens per step and for 50 per trajectory; the default is the stricter one.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

SECONDS = {"gae": 6.0}
OTHER_SECONDS = 3.0
MEMORY = 3.0
"""Limit of the peak memory, tables included, as a multiple of the tables' size."""
STEPS, GROUP = 5, 8
CHUNK = 1 << 17
"""Rows of a chunk, as a Parquet file gives them."""
VARIANTS = {
    "gae at level step": {"estimator": "gae", "level": "step"},
    "grpo with KL": {"estimator": "grpo", "kl_coef": 0.01},
    "reinforce_plus_plus with KL": {"estimator": "reinforce_plus_plus", "kl_coef": 0.01},
}
"""Measured in addition to each estimator with its defaults."""
TABLES = ("rollouts", "rewards", "logprobs")


class Cost(NamedTuple):
    seconds: float
    memory: float


def write_tables(folder: Path, trajectories: int, tokens: int) -> None:
    """The tables of one iteration, as Arrow files; ``tokens`` per step."""
    import numpy as np
    import pyarrow as pa

    from agent_r1 import schemas, tables

    rng = np.random.default_rng(0)
    steps = trajectories * STEPS
    trajectory, step = np.divmod(np.arange(steps), STEPS)
    last = step == STEPS - 1
    names = np.array([f"iter_00001/{i // GROUP:06d}/{i % GROUP}" for i in range(trajectories)])
    tasks = np.array([f"{i // GROUP:06d}" for i in range(trajectories)])[trajectory]
    score = rng.integers(0, 2, trajectories).astype(np.float32)

    def lists(values: np.ndarray) -> pa.ListArray:
        offsets = np.arange(0, len(values) + 1, len(values) // steps, dtype=np.int64)
        return tables.Ragged(values, offsets).to_arrow(pa.from_numpy_dtype(values.dtype))

    keys = {"trajectory_id": names[trajectory], "step_index": step.astype(np.int32)}
    floats = rng.standard_normal(steps * tokens, np.float32)
    columns = {
        "rollouts": keys
        | {
            "task_id": tasks,
            "group_id": tasks,
            "sample_index": (trajectory % GROUP).astype(np.int32),
            "state_key": [f"{i // GROUP:06d}/{rng.integers(8)}" for i in trajectory],
            "context_token_ids": lists(np.ones(steps, np.int32)),
            "action_token_ids": lists(np.ones(steps * tokens, np.int32)),
            "action_logprobs": lists(-abs(floats)),
            "terminated": last & (trajectory % 2 == 0),
            "truncated": last & (trajectory % 2 == 1),
            "end_reason": np.where(last, np.where(trajectory % 2, "max_steps", "answered"), None),
        },
        "rewards": keys
        | {
            "reward": np.where(last, score[trajectory], 0).astype(np.float32),
            "components": ["{}"] * steps,
            "trajectory_reward": score[trajectory],
        },
        "logprobs": keys
        | {
            "policy_logprobs": lists(-abs(floats)),
            "reference_logprobs": lists(-abs(floats[::-1])),
            "values": lists(floats),
            "bootstrap_value": pa.array(score[trajectory], mask=~(last & (trajectory % 2 == 1))),
        },
    }
    for name, given in columns.items():
        table = _filled(given, schemas.SCHEMAS[name], steps)
        with (
            pa.OSFile(str(folder / name), "wb") as file,
            pa.ipc.new_file(file, table.schema) as out,
        ):
            out.write_table(table, max_chunksize=CHUNK)
        os.sync()  # else the first measurement waits for the disk


def _filled(given: dict, schema, rows: int):
    """A table of ``schema``. Columns that are not given are null if nullable, else empty or 0."""
    import pyarrow as pa

    arrays = []
    for field in schema:
        if field.name in given:
            values = given[field.name]
            value = values if isinstance(values, pa.Array) else pa.array(values)
            arrays.append(value.cast(field.type))
        elif field.nullable:
            arrays.append(pa.nulls(rows, field.type))
        else:
            arrays.append(
                pa.repeat(
                    pa.scalar("" if pa.types.is_string(field.type) else 0).cast(field.type), rows
                )
            )
    return pa.Table.from_arrays(arrays, schema=schema).combine_chunks()


def measure(folder: Path, small: Path, parameters: dict[str, object]) -> Cost:
    """The cost of one call on the tables of ``folder``, after a call on those of ``small``."""
    import pyarrow as pa

    pa.set_cpu_count(1)
    _call(small, parameters)
    before = _peak()
    seconds, size = _call(folder, parameters)
    return Cost(seconds, (_peak() - before) / size)


def _call(folder: Path, parameters: dict[str, object]) -> tuple[float, int]:
    """Seconds that the node took, and bytes of its input tables."""
    import pyarrow as pa

    from agent_r1 import tables
    from agent_r1.pipelines.advantage.nodes import compute_advantages

    frames, size = [], 0
    for name in TABLES:
        with pa.OSFile(str(folder / name)) as file:
            table = pa.ipc.open_file(file).read_all()
        size += table.nbytes
        frames.append(tables.to_frame(table))
    started = time.perf_counter()
    result = compute_advantages(*frames, parameters)
    seconds = time.perf_counter() - started
    assert len(result) == len(frames[0])
    return seconds, size


def _peak() -> int:
    """Peak memory of this process, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def run_alone(function, *arguments):
    """Call ``function`` in a new process, without warm caches and without memory in use."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def main() -> int:
    from agent_r1.advantages.registry import ESTIMATORS

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="what to measure; everything by default")
    parser.add_argument("--trajectories", type=int, default=200_000)
    parser.add_argument("--tokens", type=int, default=50, help="action tokens per step")
    parser.add_argument("--repeats", type=int, default=3, help="processes per estimator")
    options = parser.parse_args()
    known = {name: {"estimator": name} for name in sorted(ESTIMATORS)} | VARIANTS
    unknown = set(options.names) - set(known)
    if unknown:
        parser.error(f"unknown: {sorted(unknown)}; known: {list(known)}")
    os.environ["OMP_NUM_THREADS"] = "1"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    failed = False
    with tempfile.TemporaryDirectory() as large, tempfile.TemporaryDirectory() as small:
        run_alone(write_tables, Path(large), options.trajectories, options.tokens)
        run_alone(write_tables, Path(small), 10 * GROUP, options.tokens)
        for name in options.names or known:
            arguments = (Path(large), Path(small), known[name])
            costs = [run_alone(measure, *arguments) for _ in range(options.repeats)]
            cost = Cost(
                statistics.median(each.seconds for each in costs),
                max(each.memory for each in costs),
            )
            limit = SECONDS.get(str(known[name]["estimator"]), OTHER_SECONDS)
            bad = cost.seconds > limit or cost.memory > MEMORY
            failed |= bad
            print(
                f"{name:30} {cost.seconds:6.2f} s (limit {limit:.0f}) "
                f"{cost.memory:5.2f} x the input (limit {MEMORY:.0f}){'  TOO MUCH' if bad else ''}",
                flush=True,
            )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
