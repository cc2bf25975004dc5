"""What a user may have broken in a project: configurations, own modules, model folders, results."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.support import REPOSITORY

Break = Callable[[Path], None]
"""Breaks something in the project that it is given."""

_ROW = {
    "_id": "1",
    "question": "Which country is Pisa in?",
    "answer": "Italy",
    "type": "bridge",
    "level": "easy",
    "supporting_facts": [["Pisa", 0]],
    "context": [["Pisa", ["Pisa is a city in Italy."]]],
}
_SPLITS = ("train", "validation", "in_domain", "held_out", "ood")
_CODE = {
    "environment.name": "code",
    "reward.terms.outcome.metric": "environment",
    "sft.enabled": False,
}

CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "missing_file": {"tasks.sources.hotpotqa.files": dict.fromkeys(_SPLITS, "nope.json")},
    "bad_row": {"tasks.sources.hotpotqa.files": dict.fromkeys(_SPLITS, "bad_row.json")},
    "not_json": {"tasks.sources.hotpotqa.files": dict.fromkeys(_SPLITS, "not_json.json")},
    "bad_split": {"tasks.sources.hotpotqa.files": {"trian": "bad_row.json"}},
    "one_split": {"tasks.sources.hotpotqa.files": {"train": "bad_row.json"}},
    "bad_source": {"tasks.sources.hotpot_qa.share": 1.0},
    "no_server": {"environment.options.mcp.pages": {"command": ["no-such-server"]}},
    "no_address": {"environment.options.mcp.pages": {"url": "localhost:8000"}},
    "no_sandbox": {**_CODE, "environment.options.sandbox.isolation": "bubblewrap"},
    "bad_sandbox": {**_CODE, "environment.options.sandbox.isolation": "jail"},
    "bad_option": {"environment.options.topk": 3},
    "bad_term": {"reward.terms.exact_match": {"weight": 1.0}},
    "bad_metric": {"reward.terms.outcome.metric": "exact"},
}
"""Environment of ``conf/`` → what it changes in the small experiment, by dotted names."""

TEXTS = {
    "broken_yaml": "update: {learning_rate: 1\n",
    "repeated_key": "update: {}\nupdate: {}\n",
    "no_global": "seed: ${globals:sede}\n",
}
"""Environment of ``conf/`` → its ``parameters.yml``."""

_MODULES = {
    "broken_env.py": "class Env:\n    def reset(:\n",
    "unimportable_env.py": "import no_such_package\n",
    "not_an_env.py": "class Env:\n    pass\n",
    # Stands for a package that is not installed.
    "gymnasium.py": "raise ModuleNotFoundError('No module named gymnasium', name='gymnasium')\n",
}


def break_project(project: Path, parameters: str) -> None:
    """Add broken configurations, modules, task files and model folders, which nothing uses unless a
    command names them.

    Args:
        project: changed in place; its ``data/01_raw`` becomes a copy.
        parameters: text of ``parameters.yml``, which `CONFIGURATIONS` change.
    """
    for name, changes in CONFIGURATIONS.items():
        _write(project, name, yaml.safe_dump(_changed(yaml.safe_load(parameters), changes)))
    for name, text in TEXTS.items():
        _write(project, name, text)
    for name, text in _MODULES.items():
        (project / "src" / name).write_text(text)
    _copy_raw_data(project)
    rows = [_ROW, {key: value for key, value in _ROW.items() if key != "answer"} | {"_id": "2"}]
    (project / "data/01_raw/bad_row.json").write_text(json.dumps(rows))
    (project / "data/01_raw/not_json.json").write_text("[{]")
    for name, break_model in _MODELS.items():
        shutil.copytree(REPOSITORY / "data/01_raw/tiny_base", project / "data" / name)
        break_model(project / "data" / name)


def _write(project: Path, name: str, text: str) -> None:
    (project / "conf" / name).mkdir()
    (project / "conf" / name / "parameters.yml").write_text(text)


def _changed(values: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    for path, value in changes.items():
        *groups, key = path.split(".")
        group = values
        for name in groups:
            group = group.setdefault(name, {})
        group[key] = value
    return values


def _copy_raw_data(project: Path) -> None:
    raw = project / "data/01_raw"
    raw.unlink()
    shutil.copytree(REPOSITORY / "data/01_raw", raw)


def _without(pattern: str) -> Break:
    def remove(folder: Path) -> None:
        for file in list(folder.glob(pattern)):
            file.unlink()

    return remove


def _without_template(folder: Path) -> None:
    _without("chat_template*")(folder)
    config = folder / "tokenizer_config.json"
    values = json.loads(config.read_text())
    values.pop("chat_template", None)
    config.write_text(json.dumps(values))


_MODELS: dict[str, Break] = {
    "no_config": _without("config.json"),
    "no_weights": _without("*.safetensors"),
    "no_tokenizer": _without("tokenizer.json"),
    "no_template": _without_template,
    "pickled": lambda folder: (folder / "optimizer.bin").write_bytes(b"x") and None,
}
"""Folder in ``data/`` → what is broken in its copy of the base model."""


def the_file(project: Path, pattern: str) -> Path:
    """The newest file that matches.

    Args:
        project: its root.
        pattern: relative to it.
    """
    return max(project.glob(pattern))


def delete(pattern: str) -> Break:
    """Delete the newest file that matches."""
    return lambda project: the_file(project, pattern).unlink()


def append(pattern: str, text: str = " ") -> Break:
    """Write something behind the end of the newest file that matches."""

    def change(project: Path) -> None:
        with the_file(project, pattern).open("a") as file:
            file.write(text)

    return change


def edit(pattern: str, old: str, new: str) -> Break:
    """Replace a text in the newest file that matches."""

    def change(project: Path) -> None:
        file = the_file(project, pattern)
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))

    return change


def file_in_place_of(folder: str) -> Break:
    """Put a file where a folder is needed; unlike permissions it also stops the user root."""

    def change(project: Path) -> None:
        shutil.rmtree(project / folder)
        (project / folder).write_text("not a folder")

    return change
