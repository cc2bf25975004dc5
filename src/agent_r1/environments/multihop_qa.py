"""Multi-hop question answering with a search tool over a corpus or a task's own paragraphs."""

from __future__ import annotations

from pydantic import Field

from agent_r1.environments.base import BaseEnv, EnvironmentOptions, Observation
from agent_r1.environments.search import SearchIndex, index_pages
from agent_r1.tools import tool


class MultihopQAEnv(BaseEnv):
    """The agent searches for pages, and its answer ends the episode. Reward terms score the answer;
    this environment never reads ``task["answers"]``."""

    class Options(EnvironmentOptions):
        top_k: int = Field(1, ge=1)
        """Pages per search result."""

    options: Options

    def reset(self) -> Observation:
        """The question."""
        self._index = self._pages()
        return {"question": self.task["prompt"]}

    def _pages(self) -> SearchIndex:
        """An index of the task's own paragraphs (``context`` in HotpotQA's format:
        ``[[title, [sentences]], …]``), or of the corpus if it has none."""
        context = self.payload.get("context")
        if not context:
            return self.resources.index
        titles, paragraphs = zip(*context, strict=True)
        return index_pages(titles, ["".join(sentences).strip() for sentences in paragraphs])

    @tool
    def search(self, query: str) -> str:
        """Find a page by its title or by words in it.

        Args:
            query: a title or a few words.
        """
        return self._index.search(query, self.options.top_k)
