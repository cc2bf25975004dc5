"""One project for all tests that break runs, and what its undisturbed experiment ends with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.forked_runs import Ended, ForkedRuns
from tests.support.small_experiment import SmallExperiments, environment, make_project


@pytest.fixture(scope="session")
def experiments(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallExperiments]:
    """The project's experiments; each module breaks one of its own."""
    project = make_project(tmp_path_factory.mktemp("faults"))
    with ForkedRuns(environment()) as forked:
        yield SmallExperiments(project, forked)


@pytest.fixture(scope="session")
def undisturbed(experiments: SmallExperiments) -> Ended:
    """The experiment of the same name, run by ``kedro run`` in a process of its own."""
    ended = experiments.run_alone("undisturbed")
    assert ended.returncode == 0, ended.output
    return ended
