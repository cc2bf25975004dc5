"""A project of its own for updates that must be the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.forked_runs import ForkedRuns
from tests.support.small_experiment import SmallExperiments, environment, make_project


@pytest.fixture(scope="session")
def experiments(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallExperiments]:
    """The project's experiments."""
    project = make_project(tmp_path_factory.mktemp("invariant"))
    with ForkedRuns(environment()) as forked:
        yield SmallExperiments(project, forked)
