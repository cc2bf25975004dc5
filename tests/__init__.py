"""Tests, which mirror `src/agent_r1`. A package, so that no installed `tests` can hide it."""
