"""Data that all episodes of a run share."""

from __future__ import annotations

import functools

import pandas as pd

from agent_r1 import tables
from agent_r1.environments.search import SearchIndex, index_pages


class Resources:
    """Read-only data that environments share."""

    def __init__(self, documents: pd.DataFrame | None = None):
        """
        Args:
            documents: the corpus, in the schema ``documents``; None for an empty corpus.

        Raises:
            SchemaError: ``documents`` does not fit its schema.
        """
        self.documents = tables.empty("documents") if documents is None else documents
        self._pages = tables.conform(self.documents, "documents")

    @functools.cached_property
    def index(self) -> SearchIndex:
        """The search index of the documents, built on first use."""
        return index_pages(self._pages["title"].tolist(), self._pages["text"].tolist())
