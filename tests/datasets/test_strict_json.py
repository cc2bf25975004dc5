"""JSON datasets."""

from __future__ import annotations

import numpy as np
import pytest
from kedro.io import DatasetError, Version

from agent_r1.datasets import StrictJSONDataset


def test_values_come_back(tmp_path):
    dataset = StrictJSONDataset(filepath=str(tmp_path / "c.json"), version=Version(None, "v1"))
    dataset.save({"kl_coef": np.float64(0.1), "steps": 3})
    assert dataset.load() == {"kl_coef": 0.1, "steps": 3}
    assert (tmp_path / "c.json/v1/c.json").is_file()


def test_key_order_does_not_change_the_bytes(tmp_path):
    for name, value in (("a", {"x": 1, "y": 2}), ("b", {"y": 2, "x": 1})):
        StrictJSONDataset(filepath=str(tmp_path / name)).save(value)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_p41_nan_is_refused_and_the_old_file_stays(tmp_path):
    dataset = StrictJSONDataset(filepath=str(tmp_path / "s.json"))
    dataset.save({"mean": 0.5})
    with pytest.raises(DatasetError, match=r"\$\.mean is nan"):
        dataset.save({"mean": float("nan")})
    assert dataset.load() == {"mean": 0.5}
