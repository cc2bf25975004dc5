"""JSON on disk, strict and atomic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agent_r1.datasets.local import LocalDataset
from agent_r1.storage.atomic import write_json


class StrictJSONDataset(LocalDataset):
    """A JSON file: sorted keys, no NaN, the same bytes for the same content.

    A save that fails leaves no truncated file.
    """

    def _read(self, path: Path) -> Any:
        return json.loads(path.read_text(encoding="utf-8"))

    def _commit(self, data: Any, path: Path) -> None:
        write_json(path, data)
