"""What counts as done when the program is newer than the experiment."""

from __future__ import annotations

from types import SimpleNamespace

from agent_r1.lineage import ManifestStore
from agent_r1.lineage.staleness import Staleness
from tests.support.toy_experiment import finish_experiment


def test_an_input_that_a_node_has_only_now_makes_nothing_stale(project):
    """A manifest says what was read; what was not read cannot have moved on."""
    finish_experiment(project.path, 2)
    store = ManifestStore(project.path / "data/08_reporting/x/manifests")
    read = [record.dataset for record in store.newest("iter_00002.compute_advantages").inputs]
    node = SimpleNamespace(
        name="iter_00002.compute_advantages",
        inputs=[*read, "iter_00001.added", "params:added"],
        outputs=["iter_00002.advantages"],
    )
    assert Staleness(store, []).pending([node]) == []
    assert Staleness(store, []).pending([node], again=[node.name]) == [node.name]
