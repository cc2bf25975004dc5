"""Fixtures for all tests."""

from hypothesis import settings
from toy_experiment import project

__all__ = ["project"]

# The machines that run these tests are shared: a slow example is not a failing one.
settings.register_profile("shared", deadline=None)
settings.load_profile("shared")
