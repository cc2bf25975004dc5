"""What this Kedro run's results are for. Set by the caller, read by the hooks.

Kedro has no channel from a caller to the hooks of a run. A context variable is one, and it cannot
leak into another run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from agent_r1.lineage.branches import Branch


@dataclass(frozen=True, slots=True)
class Attempt:
    """What a run is for."""

    advances: bool = False
    """Its results become the experiment's. Otherwise a result that differs from the committed one,
    or that other parameters made, is set aside."""
    branch: Branch | None = None
    """The branch whose parameters it has; None is the newest one."""


_CURRENT: ContextVar[Attempt] = ContextVar("attempt", default=Attempt())  # noqa: B039 (frozen)


def current() -> Attempt:
    """The attempt that is under way; the default one in a plain Kedro run."""
    return _CURRENT.get()


@contextmanager
def attempt(*, advances: bool, branch: Branch | None) -> Iterator[None]:
    """Kedro runs inside the block are this attempt."""
    token = _CURRENT.set(Attempt(advances, branch))
    try:
        yield
    finally:
        _CURRENT.reset(token)
