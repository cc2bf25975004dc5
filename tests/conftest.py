"""Fixtures for all tests."""

import os

if "PYTEST_XDIST_WORKER" in os.environ:
    # One process per core: more threads than that only wait for each other.
    os.environ.setdefault("OMP_NUM_THREADS", "1")

from hypothesis import settings

from tests.support.toy_experiment import project

__all__ = ["project"]

# The machines that run these tests are shared: a slow example is not a failing one.
settings.register_profile("shared", deadline=None)
settings.load_profile("shared")
