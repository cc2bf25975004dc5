"""In which capacity the current Kedro run is made: told by whoever starts it to the hooks.

Kedro has no channel from a caller to the hooks of a run; a context variable is one that cannot leak
into another run.
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
    """Its results become the experiment's. Else a result that differs from the committed one, or
    that other parameters made, is kept aside."""
    branch: Branch | None = None
    """The branch whose parameters it has; None: the newest one."""


_CURRENT: ContextVar[Attempt] = ContextVar("attempt", default=Attempt())  # noqa: B039 (frozen)


def current() -> Attempt:
    """The attempt that is under way; a plain Kedro run's if no one said."""
    return _CURRENT.get()


@contextmanager
def attempt(*, advances: bool, branch: Branch | None) -> Iterator[None]:
    """Kedro runs inside of the block are made in this capacity."""
    token = _CURRENT.set(Attempt(advances, branch))
    try:
        yield
    finally:
        _CURRENT.reset(token)
