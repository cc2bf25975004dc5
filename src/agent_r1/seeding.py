"""Seeds: each random draw derives its seed from its own coordinates, not from a global counter."""

from __future__ import annotations

import hashlib


def derive_seed(seed: int, *coordinates: str | int) -> int:
    """A 63-bit seed for one draw, from the experiment's seed and the coordinates of the draw.

    ``derive_seed(seed, "iter_00003", "generate_rollouts", trajectory_id, step)`` depends on its
    arguments only, not on the order of work, the batch, or whether the run was interrupted.
    """
    text = "\x1f".join(str(part) for part in (seed, *coordinates))
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1
