"""A ``conf/local/catalog.yml`` that moves every layer which an experiment writes."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

_LAYER = re.compile(r"^data/(0[2-8]_\w+)/")


def moved_catalog(base: Path, elsewhere: Path) -> str:
    """The entries of ``base`` that are below ``data/02_… 08_``, below ``elsewhere`` instead.

    They are written as a user would: whole entries, without a word about the experiment they
    belong to.
    """
    text = base.read_text(encoding="utf-8").replace("${_experiment}", "EXPERIMENT")
    entries = {
        name: entry | {"filepath": _LAYER.sub(rf"{elsewhere}/\1/", entry["filepath"])}
        for name, entry in yaml.safe_load(text).items()
        if isinstance(entry, dict) and _LAYER.match(entry.get("filepath", ""))
    }
    named = "${runtime_params:experiment,${globals:experiment}}"
    return yaml.safe_dump(entries, sort_keys=False, width=1000).replace("EXPERIMENT", named)
