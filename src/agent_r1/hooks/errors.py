"""Notes in an error which node raised it."""

from __future__ import annotations

from kedro.framework.hooks import hook_impl
from kedro.pipeline.node import Node


class ErrorHooks:
    """Notes in an error which node raised it: every iteration runs the same functions."""

    @hook_impl
    def on_node_error(self, error: Exception, node: Node) -> None:
        """The note follows the message, with and without a traceback."""
        error.add_note(f"Node: {node.name}")
