"""Programs that attack the machine. Each prints ESCAPED for what it must not be able to do."""

from __future__ import annotations

from tests.support.attacks.attack import CANARY, MARK, PRELUDE, Attack
from tests.support.attacks.confusing import CONFUSING
from tests.support.attacks.getting_out import GETTING_OUT
from tests.support.attacks.kernel import KERNEL
from tests.support.attacks.staying import STAYING
from tests.support.attacks.using_up import USING_UP

ATTACKS = {**USING_UP, **STAYING, **GETTING_OUT, **KERNEL, **CONFUSING}
NEED_HIDDEN_FILES = (
    "files",
    "links",
    "other processes' files",
    "the interpreter",
    "the project",
    "installed packages",
)
"""Documented: without Landlock, level ``rlimits`` does not hide what the user can read."""

__all__ = ["ATTACKS", "CANARY", "MARK", "NEED_HIDDEN_FILES", "PRELUDE", "Attack"]
