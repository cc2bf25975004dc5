"""What several test files share. Test files mirror ``src/``; what they need to do so is here."""

from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
"""Root of the checkout, with ``conf``, ``data/01_raw`` and ``docs``."""
