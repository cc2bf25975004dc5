"""Content hashes of files and checkpoint folders."""

from __future__ import annotations

import hashlib
from pathlib import Path

MARKER = "_COMMITTED"
"""Name of the file that is written last into a checkpoint's folder; it is not hashed."""

_CHUNK = 1 << 20
"""Bytes read at a time."""


def file_sha256(path: str | Path) -> str:
    """Hex sha256 of a file's bytes.

    Raises:
        OSError: the file cannot be read.
    """
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        while block := stream.read(_CHUNK):
            digest.update(block)
    return digest.hexdigest()


def text_sha256(text: str) -> str:
    """Hex sha256 of a text in UTF-8."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def folder_sha256(path: str | Path) -> str:
    """Hex sha256 of a checkpoint folder: equal for equal file names and contents.

    It hashes the sorted lines ``<relative name>\\t<file sha256>\\n`` of all files at any depth.
    Files whose names start with ``_`` are markers, written after the content, and are left out.

    Raises:
        NotADirectoryError: ``path`` is not a folder.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise NotADirectoryError(f"not a folder: {folder}")
    files = (file for file in folder.rglob("*") if file.is_file())
    lines = sorted(
        f"{file.relative_to(folder).as_posix()}\t{file_sha256(file)}\n"
        for file in files
        if not file.name.startswith("_")
    )
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def marker_of(folder: Path) -> dict[str, int]:
    """The content of a checkpoint's marker: the number of other files and folders in it."""
    return {"files": sum(1 for path in folder.rglob("*") if path != folder / MARKER)}


def content_sha256(path: str | Path) -> str:
    """`folder_sha256` of a folder, `file_sha256` of a file."""
    return folder_sha256(path) if Path(path).is_dir() else file_sha256(path)
