"""Seals: the sha256 of a JSON record, written inside it, so that an edit shows.

A seal does not stop a forger, who can compute a new one. But later records name the old one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from agent_r1.storage.atomic import strict_json

SEAL = "sha256"
"""The key of a record's seal."""


def sealed(values: Mapping[str, Any], open_keys: frozenset[str] = frozenset()) -> dict[str, Any]:
    """``values`` with their seal, which covers all keys but ``open_keys``; those may change."""
    covered = {key: value for key, value in values.items() if key not in open_keys | {SEAL}}
    return {**values, SEAL: hashlib.sha256(strict_json(covered).encode()).hexdigest()}


def check_seal(values: Mapping[str, Any], open_keys: frozenset[str] = frozenset()) -> None:
    """
    Raises:
        ValueError: the values differ from those that were sealed.
    """
    if sealed(values, open_keys)[SEAL] != values.get(SEAL):
        raise ValueError("its content does not match its sha256: it was edited")
