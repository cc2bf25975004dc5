"""How bytes reach the disk: wholly or not at all, and JSON that any reader accepts."""

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
"""Suffix of files that are being written; a crash leaves them."""


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """A temporary path beside ``target`` that becomes it when the block ends without an error.

    The content is flushed to the disk before the rename, and the rename after it, so a crash
    leaves the old file, the new file, or no file: never half of one. After an error nothing is
    left behind.

    Raises:
        OSError: the content cannot be written; ``target`` is named, and why not.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".", suffix=PART, dir=target.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        with named_in_errors(target):
            yield temporary
            os.chmod(temporary, 0o666 & ~_UMASK)  # mkstemp makes files that only the owner may read
            flush(temporary)
            os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    flush(target.parent)


@contextmanager
def named_in_errors(path: Path) -> Iterator[None]:
    """Errors of the block say what was being written: that the disk is full does not say where.

    Raises:
        OSError: the block could not write (also where safetensors says so); it names ``path``.
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
    found = re.search(r"\(os error (\d+)\)", str(error))  # what is written in Rust says it so
    return int(found[1]) if found else None


def flush(path: Path) -> None:
    """Wait until the file, or the entries of the folder, are on the disk."""
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
    """``value`` as indented JSON with sorted keys, the same text for equal values.

    NumPy scalars and arrays become plain numbers and lists (pitfall: they are not serialisable).

    Raises:
        ValueError: a number is NaN or infinite, which JSON has not, or a value is of a type that
            would not come back as it was; the message names where it stands.
    """
    plain = _plain(value, "$")
    return json.dumps(plain, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def write_json(path: Path, value: Any) -> None:
    """Write ``value`` to ``path``, atomically; see `strict_json`."""
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
