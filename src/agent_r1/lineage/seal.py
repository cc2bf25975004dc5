"""JSON records that state their own sha256, so that an edit shows.

A seal does not stop a forger, who can compute a new one; but others have recorded the old one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from agent_r1.storage.atomic import strict_json

SEAL = "sha256"
"""The key under which a record states its seal."""


def sealed(values: Mapping[str, Any], open_keys: frozenset[str] = frozenset()) -> dict[str, Any]:
    """``values`` with their seal: of everything but ``open_keys``, which may change later."""
    covered = {key: value for key, value in values.items() if key not in open_keys | {SEAL}}
    return {**values, SEAL: hashlib.sha256(strict_json(covered).encode()).hexdigest()}


def check_seal(values: Mapping[str, Any], open_keys: frozenset[str] = frozenset()) -> None:
    """
    Raises:
        ValueError: the values are not those that were sealed.
    """
    if sealed(values, open_keys)[SEAL] != values.get(SEAL):
        raise ValueError("its content is not what its sha256 was made of: it was edited")
