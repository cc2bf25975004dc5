"""Atomic writes and strict JSON."""

from __future__ import annotations

import errno
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import SafetensorError

from agent_r1.storage.atomic import atomic_path, named_in_errors, strict_json, write_json


def test_an_error_leaves_the_old_file_and_no_other(tmp_path):
    target = tmp_path / "table"
    target.write_text("old")

    def fail_midway() -> None:
        with atomic_path(target) as temporary:
            temporary.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_midway()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_disk_error_names_the_file(tmp_path):
    target = tmp_path / "table"
    with pytest.raises(OSError, match="No space left on device") as caught, atomic_path(target):
        raise OSError(errno.ENOSPC, "whatever a library says")
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(target))


def test_a_disk_error_of_safetensors_names_the_file(tmp_path):
    said = "Error while serializing: I/O error: No space left on device (os error 28)"
    with pytest.raises(OSError, match="No space left on device") as caught:
        _raise_below(tmp_path, SafetensorError(said))
    assert caught.value.filename == str(tmp_path)
    with pytest.raises(SafetensorError, match="invalid"):
        _raise_below(tmp_path, SafetensorError("invalid header"))


def _raise_below(path, error: Exception) -> None:
    with named_in_errors(path):
        raise error


def test_success_replaces_the_file(tmp_path):
    target = tmp_path / "new" / "table"
    with atomic_path(target) as temporary:
        temporary.write_text("whole")
        assert not target.exists()
    assert target.read_text() == "whole"
    assert list(target.parent.iterdir()) == [target]


def test_p41_numpy_scalars_become_numbers():
    value = {"mean": np.float32(0.5), "n": np.int64(3), "ok": np.bool_(True), "v": np.arange(2)}
    assert json.loads(strict_json(value)) == {"mean": 0.5, "n": 3, "ok": True, "v": [0, 1]}


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ({"a": [1.0, float("nan")]}, r"\$\.a\[1\] is nan"),
        ({"a": np.float64("inf")}, r"\$\.a is inf"),
        ({1: 2}, r"\$ has the key 1"),
        ({"a": {1, 2}}, r"\$\.a is a set"),
    ],
)
def test_errors_name_the_place_of_a_value_that_json_cannot_hold(value, where):
    with pytest.raises(ValueError, match=where):
        strict_json(value)


def test_a_refused_value_leaves_no_file(tmp_path):
    with pytest.raises(ValueError, match="nan"):
        write_json(tmp_path / "summary.json", {"a": float("nan")})
    assert list(tmp_path.iterdir()) == []


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)  # fmt: skip


@given(_JSON)
def test_json_is_read_back_unchanged(value):
    assert json.loads(strict_json(value)) == value
