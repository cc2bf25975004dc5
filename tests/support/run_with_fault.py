"""``python -m tests.support.run_with_fault FAULT MARKER ARGUMENT...``: ``kedro ARGUMENT...`` with a
fault.

See `tests.support.fault_injection` for what a fault is. Without one, this does what the console
script does.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn


def run_kedro(arguments: Sequence[str], fault: str | None, marker: Path) -> NoReturn:
    """Kedro's own entry point with these arguments, in this process.

    Raises:
        SystemExit: how Kedro ends.
    """
    from kedro.framework.cli import main

    if fault is not None:
        from tests.support.fault_injection import Fault, inject

        inject(Fault.parse(fault), marker)
    sys.argv = ["kedro", *arguments]
    sys.exit(main())


if __name__ == "__main__":
    run_kedro(sys.argv[3:], sys.argv[1], Path(sys.argv[2]))
