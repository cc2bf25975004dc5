"""Which nodes of an experiment still have to run.

A node is done if its current manifest

* read what is current now, by content: an input that was made again with the same bytes changes
  nothing; and
* has the parameters of its branch. A branch that starts at a node reaches that node and all that
  depends on it. A branch without a start reaches only what was not made before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from kedro.pipeline.node import Node

from agent_r1.lineage.branches import Branch
from agent_r1.lineage.manifest import InputRecord
from agent_r1.lineage.store import ManifestStore


class Staleness:
    """Walks the stages of an experiment in order. Run each before you ask for the next."""

    def __init__(self, store: ManifestStore, branches: Sequence[Branch]) -> None:
        self._store = store
        self._reaches = [(branch, set[str]()) for branch in branches if branch.start is not None]

    def pending(self, nodes: Iterable[Node], again: Collection[str] = ()) -> list[str]:
        """The nodes of a stage that must run, in order.

        Args:
            nodes: in running order.
            again: nodes that must run even if they are done.
        """
        made: set[str] = set()
        names = []
        for node in nodes:
            branch = self._branch_of(node)
            stale = node.name in again or not made.isdisjoint(node.inputs)
            if stale or self._is_stale(node, branch):
                names.append(node.name)
                made.update(node.outputs)
        return names

    def _branch_of(self, node: Node) -> Branch | None:
        """The newest branch that reaches the node."""
        newest = None
        for branch, reached in self._reaches:
            if node.name == branch.start or not reached.isdisjoint(node.inputs):
                reached.update(node.outputs)
                newest = branch
        return newest

    def _is_stale(self, node: Node, branch: Branch | None) -> bool:
        manifest = self._store.newest(node.name)
        if manifest is None:
            return True
        if (
            branch is not None
            and manifest.branch < branch.index
            and any(branch.differing(*item) for item in manifest.parameters.items())
        ):
            return True
        return any(self._moved_on(record) for record in manifest.inputs)

    def _moved_on(self, record: InputRecord) -> bool:
        if record.manifest is None:  # raw data: `kedro verify` reports changes
            return False
        current = self._store.committed(record.dataset)
        return current is None or current.record.sha256 != record.sha256


def dependents(start: str, stages: Iterable[Iterable[Node]]) -> list[str]:
    """The nodes that depend on ``start``, directly or not, in the order of the stages."""
    reached: set[str] = set()
    found = []
    for nodes in stages:
        for node in nodes:
            if node.name == start or not reached.isdisjoint(node.inputs):
                reached.update(node.outputs)
                found.append(node.name)
    return [name for name in found if name != start]
