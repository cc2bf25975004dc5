"""One engine per process."""

from __future__ import annotations

import pytest
from kedro.io import DatasetError

from agent_r1.datasets import EngineDataset


class CountingEngine:
    def __init__(self, threads: int = 1) -> None:
        self.threads = threads


PATH = f"{__name__}.CountingEngine"


def test_every_catalog_gets_the_same_engine():
    first = EngineDataset(engine=PATH, options={"threads": 2}).load()
    assert first.threads == 2
    assert EngineDataset(engine=PATH, options={"threads": 2}).load() is first


def test_other_options_are_another_engine():
    one = EngineDataset(engine=PATH, options={"threads": 1}).load()
    assert EngineDataset(engine=PATH, options={"threads": 3}).load() is not one


def test_an_unknown_engine_is_named():
    with pytest.raises(DatasetError, match=r"engine 'agent_r1\.engines\.none\.None_' cannot be"):
        EngineDataset(engine="agent_r1.engines.none.None_").load()


def test_a_refused_option_is_an_error_and_not_kept():
    broken = EngineDataset(engine=PATH, options={"treads": 1})
    for _ in range(2):
        with pytest.raises(DatasetError, match="treads"):
            broken.load()


def test_no_node_returns_it():
    with pytest.raises(DatasetError, match="not a result"):
        EngineDataset(engine=PATH).save(CountingEngine())
