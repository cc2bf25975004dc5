"""The report as one self-contained HTML page."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

import jinja2
import pandas as pd
import yaml
from matplotlib import rc_context
from matplotlib.figure import Figure

from agent_r1.pipelines.report.exposure import Exposure
from agent_r1.pipelines.report.figure import COLORS
from agent_r1.pipelines.report.results import (
    POLICIES,
    REPORTED_SPLITS,
    Results,
    number,
    whole_split,
)

_SPLIT_TITLES = {"in_domain": "In-domain", "held_out": "Held out", "ood": "Out of distribution"}
_BY_ENTITIES = {
    "in_domain": "new questions about entities seen in training",
    "held_out": "questions about entities never seen in training",
    "ood": "kinds of questions never seen in training",
}
"""Subtitles of the splits if tasks name their entities, as those of the knowledge base do."""
_BY_TASKS = {
    "in_domain": "tasks like the training tasks",
    "held_out": "tasks held out of training",
    "ood": "tasks of other kinds than the training tasks",
}
"""Subtitles of the splits of all other sources."""

_COLUMNS = (
    ("exact_match", "Exact match", "mean of the samples at the rollout temperature"),
    ("greedy_exact_match", "Greedy", "exact match of one greedy attempt"),
    ("f1", "F1", "token overlap with the answer, mean of the samples"),
    ("mean_return", "Return", "reward per trajectory, mean of the samples"),
    ("mean_steps", "Steps", "per trajectory"),
    ("tool_error_rate", "Tool errors", "failed calls / calls"),
)


def render_page(
    results: Results, exposure: Sequence[Exposure], figure: Figure, parameters: Mapping[str, Any]
) -> str:
    """The HTML page.

    Args:
        results: the results.
        exposure: one row per family of the held-out split.
        figure: the learning curves; embedded as SVG.
        parameters: all parameters of the run.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("agent_r1.pipelines.report", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {
        "score": _score,
        "family": _family,
        "duration": _duration,
        "signed": _signed,
    }
    entities = any(row.entities for row in exposure)
    return environment.get_template("page.html.jinja").render(
        entities=entities,
        unseen="entities never seen" if entities else "held out",
        results=results,
        colors=COLORS,
        policies={key: name for key, name in POLICIES.items() if key in results.evaluations},
        columns=_COLUMNS,
        headline=_headline(results),
        splits=[
            _split(results, split, _BY_ENTITIES if entities else _BY_TASKS)
            for split in REPORTED_SPLITS
            if _evaluated(results, split)
        ],
        families=_held_out_families(results, exposure),
        other_families=[_other_families(results, split) for split in ("in_domain", "ood")],
        curves=_curve_rows(results),
        figure=_svg(figure),
        parameters=parameters,
        settings=yaml.safe_dump(_plain(parameters), sort_keys=False, allow_unicode=True),
    )


def _headline(results: Results) -> dict[str, float | None]:
    """Exact match on the split ``held_out``, by policy."""
    return {policy: _value(results, policy, "held_out", "exact_match") for policy in POLICIES}


def _evaluated(results: Results, split: str) -> bool:
    return any(whole_split(table, split) is not None for table in results.evaluations.values())


def _split(results: Results, split: str, subtitles: Mapping[str, str]) -> dict[str, Any]:
    rows = {p: whole_split(table, split) for p, table in results.evaluations.items()}
    return {
        "title": _SPLIT_TITLES[split],
        "subtitle": subtitles[split],
        "n": max(int(row["n"]) for row in rows.values() if row is not None),
        "rows": {
            policy: {key: number(row[key]) for key, _, _ in _COLUMNS}
            for policy, row in rows.items()
            if row is not None
        },
    }


def _family_scores(results: Results, split: str) -> dict[str, dict[str, float | None]]:
    """Family → policy → exact match."""
    scores: dict[str, dict[str, float | None]] = {}
    for policy, table in results.evaluations.items():
        for row in _family_rows(table, split):
            scores.setdefault(row["family"], {})[policy] = number(row["exact_match"])
    return scores


def _family_rows(table: pd.DataFrame, split: str) -> list[dict[str, Any]]:
    rows = table[(table["split"] == split) & table["family"].notna()].to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in rows]


def _held_out_families(results: Results, exposure: Sequence[Exposure]) -> list[dict[str, Any]]:
    scores = _family_scores(results, "held_out")
    return [{"exposure": row, "scores": scores.get(row.family, {})} for row in exposure]


def _other_families(results: Results, split: str) -> dict[str, Any]:
    scores = _family_scores(results, split)
    counts = {
        row["family"]: int(row["n"])
        for table in results.evaluations.values()
        for row in _family_rows(table, split)
    }
    rows = [{"family": name, "n": counts[name], "scores": scores[name]} for name in sorted(scores)]
    return {"title": _SPLIT_TITLES[split], "rows": rows}


def _value(results: Results, policy: str, split: str, metric: str) -> float | None:
    table = results.evaluations.get(policy)
    row = None if table is None else whole_split(table, split)
    return None if row is None else number(row[metric])


def _curve_rows(results: Results) -> list[dict[str, Any]]:
    return [
        {"iteration": iteration, **{str(name): number(value) for name, value in row.items()}}
        for iteration, row in results.curves.iterrows()
    ]


def _svg(figure: Figure) -> str:
    """The figure as SVG without the XML preamble; equal curves give equal bytes."""
    buffer = io.StringIO()
    with rc_context({"svg.hashsalt": "agent-r1", "svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    tag = svg[svg.index("<svg") :]  # without its own size it fills the page width
    return re.sub(r' (?:height|width)="[\d.]+pt"', "", tag, count=2)


def _plain(value: Any) -> Any:
    """Parameters as plain YAML values."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value


def _score(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}"  # noqa: RUF001


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")  # noqa: RUF001


def _family(name: str) -> str:
    """``city.country.calling_code`` → ``city → country → calling code``."""
    return " → ".join(part.replace("_", " ") for part in name.split("."))


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{seconds:.1f} s"
