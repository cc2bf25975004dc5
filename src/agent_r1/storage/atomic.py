"""Atomic writes (the whole file or no file), and strict JSON."""

from __future__ import annotations

import json
import math
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError

PART = ".part"
"""Suffix of files that are being written; a crash may leave them behind."""


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """A temporary path beside ``target``, renamed to it when the block ends without an error.

    The content is flushed to disk before the rename, and the folder after it. So a crash leaves the
    old file, the new file or no file, never a part of one. After an error the temporary file is
    deleted.

    Raises:
        OSError: the content cannot be written; the message names ``target`` and the reason.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".", suffix=PART, dir=target.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        with named_in_errors(target):
            yield temporary
            os.chmod(temporary, 0o666 & ~_UMASK)  # mkstemp lets only the owner read
            flush(temporary)
            os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    flush(target.parent)


@contextmanager
def named_in_errors(path: Path) -> Iterator[None]:
    """Add ``path`` to write errors of the block: "no space left" alone does not say where.

    Raises:
        OSError: the block, or safetensors in it, could not write; the message names ``path``.
    """
    try:
        yield
    except (OSError, SafetensorError) as error:
        number = _errno(error)
        if number is None:
            raise
        raise OSError(number, f"cannot write: {os.strerror(number)}", str(path)) from error


def _errno(error: Exception) -> int | None:
    if isinstance(error, OSError):
        return error.errno
    found = re.search(r"\(os error (\d+)\)", str(error))  # the wording of Rust libraries
    return int(found[1]) if found else None


def flush(path: Path) -> None:
    """Wait until the file, or the entries of the folder, are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _read_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


_UMASK = _read_umask()


def strict_json(value: Any) -> str:
    """``value`` as indented JSON with sorted keys: equal values give the same text.

    NumPy scalars and arrays become plain numbers and lists; ``json`` cannot serialise them.

    Raises:
        ValueError: a number is NaN or infinite, which JSON cannot hold, or a value has a type that
            JSON would not restore; the message names its place.
    """
    plain = _plain(value, "$")
    return json.dumps(plain, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def write_json(path: Path, value: Any) -> None:
    """Write ``value`` to ``path`` as `strict_json`, atomically.

    Raises:
        OSError: the file cannot be written.
        ValueError: see `strict_json`.
    """
    text = strict_json(value)
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _plain(value: Any, where: str) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{where} is {value}, which JSON cannot hold")
        return value
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ValueError(f"{where} has the key {key!r}; JSON keys are strings")
        return {key: _plain(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, f"{where}[{index}]") for index, item in enumerate(value)]
    raise ValueError(f"{where} is a {type(value).__name__}, which JSON cannot hold")
