"""Record `reference.json` anew, after a change that is meant to change numbers.

``python -m tests.invariant.record``; then look at the difference before committing it.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from tests.invariant.fixed_iteration import FixedIteration
from tests.invariant.ways import OBJECTIVES

REFERENCE = Path(__file__).with_name("reference.json")


def rounded(numbers: Any) -> Any:
    """Seven digits: what float32 has."""
    if isinstance(numbers, dict):
        return {key: rounded(value) for key, value in numbers.items()}
    if isinstance(numbers, list):
        return [rounded(value) for value in numbers]
    return float(f"{numbers:.7g}")


def main() -> None:
    """Write the reference. Staged checkpoints go to a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        iteration = FixedIteration(Path(folder))
        recorded = iteration.before_the_update() | {
            "updates": {objective: iteration.update(objective) for objective in OBJECTIVES}
        }
        os.chdir("/")
    REFERENCE.write_text(json.dumps(rounded(recorded), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
