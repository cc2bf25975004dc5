"""The cost of Kedro, manifests and MLflow per iteration, and whether it grows.

Runs an experiment with one-line nodes through the real driver, catalog, hooks and tracking:

    python benchmarks/overhead.py            # 300 iterations
    python benchmarks/overhead.py --iterations 60 --no-mlflow

Prints the seconds per iteration in windows of 30 iterations, and the ratio of the last window to
the first one after the warm-up. Exit code 1 if an iteration takes longer than the limit, or if the
ratio differs from 1 by more than the tolerance.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

REPOSITORY = Path(__file__).parents[1]
sys.path.insert(0, str(REPOSITORY))

LIMIT = 0.6
"""Most seconds per iteration."""
TOLERANCE = 0.2
"""Relative difference allowed between the cost of the last and the first iterations."""
WARM_UP = 10
"""First iterations that are not counted: they import modules and create the database."""
WINDOW = 30
"""Iterations per median."""


class Clock:
    """Records when each iteration ends."""

    def __init__(self) -> None:
        self.ended: list[float] = []

    def __call__(self, name: str, *_: object) -> None:
        if name.startswith("iter_") and name != "iter_00000":
            self.ended.append(time.perf_counter())


def measure(iterations: int, *, mlflow: bool) -> list[float]:
    """Seconds between the ends of successive iterations."""
    from kedro.framework.startup import bootstrap_project

    from agent_r1.configuration import groups as parameter_groups
    from agent_r1.configuration import references
    from agent_r1.display import progress
    from agent_r1.experiments.driver import run_experiment
    from tests.support import toy_experiment

    clock = Clock()
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(parameter_groups, "GROUPS", toy_experiment.toy_groups()),
        mock.patch.multiple(
            references, check_references=lambda *_: None, check_base=lambda *_: None
        ),
        mock.patch.object(progress.LineDisplay, "stage_ended", clock),
    ):
        path = toy_experiment.make_project(Path(folder))
        sys.modules.update(toy_experiment.toy_modules())
        os.chdir(path)
        bootstrap_project(path)
        tracking = {"enabled": mlflow, "tracking_uri": "sqlite:///mlflow.db"}
        run_experiment(path, {"iterations": iterations, "mlflow": tracking})
        os.chdir(REPOSITORY)
    return [after - before for before, after in zip(clock.ended, clock.ended[1:], strict=False)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=300)
    parser.add_argument("--no-mlflow", action="store_true")
    options = parser.parse_args()
    seconds = measure(options.iterations, mlflow=not options.no_mlflow)[WARM_UP - 1 :]
    for first in range(0, len(seconds), WINDOW):
        part = seconds[first : first + WINDOW]
        numbers = f"{first + WARM_UP + 1:>4}-{first + WARM_UP + len(part):<4}"
        print(f"iterations {numbers} median {statistics.median(part):.3f} s  max {max(part):.3f} s")
    begin, end = statistics.median(seconds[:WINDOW]), statistics.median(seconds[-WINDOW:])
    worst = max(begin, end)
    print(f"per iteration {worst:.3f} s (limit {LIMIT}); last / first {end / begin:.2f}")
    return int(worst > LIMIT or abs(end / begin - 1) > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
