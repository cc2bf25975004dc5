"""Every algorithm on the default experiment, from the same SFT policy per seed.

    python benchmarks/algorithms.py                               # 10 presets, seeds 0, 1 and 2
    python benchmarks/algorithms.py --seeds 0 --algorithms ppo grpo
    python benchmarks/algorithms.py --table                       # only what is finished

1. Per seed, it runs an experiment ``algorithms-SEED`` for one iteration.
2. Each preset forks it before that iteration's rollouts (`kedro rerun … --downstream fork`). So all
   presets share tasks, demonstrations and the SFT policy.
3. The same command finishes interrupted runs, and leaves finished ones alone.

Prints a table: held-out exact match before and after (mean of 4 samples at the rollout temperature,
200 tasks), seconds of RL (all nodes of the iterations except evaluations), and the explained
variance of PPO's critic. Exit code 1 if a limit is missed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

REPOSITORY = Path(__file__).parents[1]
REPORTS = REPOSITORY / "data/08_reporting"

EACH_SEED = ("ppo", "grpo", "dr_grpo", "rloo", "reinforce_plus_plus", "dapo")
"""Algorithms that must gain `GAIN` on each seed."""
ON_THE_MEAN = ("gspo", "cispo", "gigpo", "dpo")
"""Algorithms that must gain `MEAN_GAIN` as the mean over the seeds."""
GAIN, MEAN_GAIN = 0.15, 0.05
"""Gains in held-out exact match."""
SECONDS = 180
"""Most seconds of RL per run."""
EXPLAINED = 0.3
"""Least mean explained variance, over the last `COUNTED` iterations with a variance of the returns
above `VARIANCE`."""
COUNTED, VARIANCE = 3, 0.05


class Result(NamedTuple):
    """One finished run."""

    before: float
    after: float
    seconds: float
    explained: float | None
    """Explained variance of the critic; None without a critic."""


# ------------------------------------------------------------------------------------------- runs


def parent(seed: int) -> str:
    return f"algorithms-{seed}"


def name_of(algorithm: str, seed: int) -> str:
    return f"algorithms-{seed}-{algorithm}"


def run(algorithm: str, seed: int, iterations: int, shared: str) -> None:
    """Run, or finish, one preset on one seed.

    Args:
        algorithm: the preset.
        seed: the experiment's seed.
        iterations: number of RL iterations.
        shared: ``--params`` of all runs.
    """
    base = f"{shared},seed={seed},iterations=1"
    if not _finished(parent(seed), 1):
        _kedro("run", "--params", f"experiment={parent(seed)},{base}")
    name = name_of(algorithm, seed)
    asked = f"{shared},algorithm={algorithm},iterations={iterations}"
    if _finished(name, iterations):
        return
    if (REPORTS / name).exists():
        _kedro("run", "--params", f"experiment={name},seed={seed},{asked}")
    else:
        _kedro(
            "rerun", "generate_rollouts", "--iteration", "1", "--experiment", parent(seed),
            "--params", asked, "--downstream", "fork", "--as", name,
        )  # fmt: skip


def _finished(name: str, iterations: int) -> bool:
    summary = REPORTS / name / "summary.json"
    if not summary.is_file():
        return False
    return json.loads(summary.read_text())["iterations"] >= iterations


def _kedro(*arguments: str) -> None:
    print("$ kedro", *arguments, flush=True)
    kedro = Path(sys.executable).with_name("kedro")
    subprocess.run([kedro, *arguments], cwd=REPOSITORY, check=True)


# ---------------------------------------------------------------------------------------- results


def result(algorithm: str, seed: int) -> Result | None:
    """The result of a run; None if it is not finished."""
    name = name_of(algorithm, seed)
    file = REPORTS / name / "summary.json"
    if not file.is_file():
        return None
    evaluations = json.loads(file.read_text())["evaluations"]
    before, after = (evaluations[which]["held_out"]["exact_match"] for which in ("sft", "rl"))
    runs = [
        json.loads(path.read_text())
        for path in sorted((REPORTS / name / "manifests").glob("iter_*/*/*.json"))
        if path.parts[-3] != "iter_00000"
    ]
    trained = [
        each for each in runs if not each["node"].endswith(("evaluate_policy", "validate_policy"))
    ]
    return Result(before, after, sum(map(_seconds, trained)), explained_variance(runs))


def _seconds(manifest: dict) -> float:
    started, ended = (datetime.fromisoformat(manifest[key]) for key in ("started_at", "ended_at"))
    return (ended - started).total_seconds()


def explained_variance(runs: list[dict]) -> float | None:
    """How much of the variance of the actual returns the values before each update explain."""
    counted = []
    for iteration in sorted({each["node"].partition(".")[0] for each in runs}):
        tables = {
            record["dataset"].partition(".")[2]: pd.read_parquet(REPOSITORY / record["path"])
            for each in runs
            if each["node"].startswith(iteration)
            and each["node"].endswith(("score_rewards", "compute_logprobs"))
            for record in each["outputs"]
        }
        if tables["logprobs"]["values"].isna().all():
            return None
        steps = (
            tables["rewards"].dropna(subset=["reward"]).sort_values(["trajectory_id", "step_index"])
        )
        backwards = steps[::-1]
        steps["return"] = backwards.groupby("trajectory_id")["reward"].cumsum()
        steps = steps.merge(tables["logprobs"], on=["trajectory_id", "step_index"])
        values = np.concatenate(steps["values"].to_list())
        returns = np.repeat(steps["return"].to_numpy(float), steps["values"].map(len))
        if returns.var() > VARIANCE:
            counted.append(1 - (returns - values).var() / returns.var())
    return statistics.mean(counted[-COUNTED:]) if counted else None


def table(algorithms: list[str], seeds: list[int]) -> tuple[list[str], list[str]]:
    """The table in Markdown, and a line per missed limit."""
    lines = [
        "| algorithm |" + "".join(f" seed {seed} |" for seed in seeds) + " mean gain | RL, s |",
        "|---|" + "---|" * (len(seeds) + 2),
    ]
    missed = []
    for algorithm in algorithms:
        results = [result(algorithm, seed) for seed in seeds]
        done = [each for each in results if each is not None]
        cells = [f"{r.before:.3f} → {r.after:.3f}" if r else "" for r in results]
        gains = [each.after - each.before for each in done]
        gain = statistics.mean(gains) if gains else float("nan")
        slowest = max((each.seconds for each in done), default=float("nan"))
        lines.append(f"| `{algorithm}` | {' | '.join(cells)} | {gain:+.3f} | {slowest:.0f} |")
        missed += [f"{algorithm}: not all seeds are finished"] * (len(done) < len(seeds))
        missed += _missed(algorithm, done, gains)
    return lines, missed


def _missed(algorithm: str, done: list[Result], gains: list[float]) -> list[str]:
    missed = []
    if gains and algorithm in EACH_SEED and min(gains) < GAIN:
        missed.append(f"{algorithm}: gains {min(gains):+.3f} on a seed, not {GAIN:+.2f}")
    if gains and algorithm in ON_THE_MEAN and statistics.mean(gains) < MEAN_GAIN:
        missed.append(f"{algorithm}: gains {statistics.mean(gains):+.3f}, not {MEAN_GAIN:+.2f}")
    for each in done:
        if each.seconds > SECONDS:
            missed.append(f"{algorithm}: {each.seconds:.0f} s of RL, not {SECONDS}")
        if algorithm == "ppo" and not (each.explained or 0) > EXPLAINED:
            missed.append(f"{algorithm}: explained variance {each.explained}, not {EXPLAINED}")
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--algorithms", nargs="+", default=[*EACH_SEED, *ON_THE_MEAN])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--iterations", type=int, default=8)
    parser.add_argument("--threads", type=int, help="CPU threads of torch; default: torch chooses")
    parser.add_argument("--table", action="store_true", help="run nothing")
    options = parser.parse_args()
    shared = "evaluation.splits=[held_out],evaluation.every=0,retention.keep_last=2"
    if options.threads:
        shared += f",model.threads={options.threads}"
    if not options.table:
        for seed in options.seeds:
            for algorithm in options.algorithms:
                run(algorithm, seed, options.iterations, shared)
    lines, missed = table(options.algorithms, options.seeds)
    print("\n".join([*lines, "", *missed]))
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
