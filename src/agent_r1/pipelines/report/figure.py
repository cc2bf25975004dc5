"""The learning curves: one figure with three panels."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from agent_r1.pipelines.report.results import Results, whole_split

INK, MUTED, GRID = "#1f2937", "#6b7280", "#e5e7eb"
COLORS = {"base": "#9ca3af", "sft": "#f59e0b", "rl": "#2563eb"}
_ACCENT = "#0d9488"


def draw_learning_curves(results: Results) -> Figure:
    """Training reward, exact match on questions that are not trained on, and policy drift.

    A panel without data says so: a report can be made at any time.
    """
    from matplotlib import rc_context

    style: dict[Any, Any] = {"font.size": 10, "text.color": INK, "axes.labelcolor": MUTED}
    with rc_context(style | {"xtick.color": MUTED, "ytick.color": MUTED}):
        figure = Figure(figsize=(12.5, 3.9), layout="constrained", facecolor="white")
        panels = figure.subplots(1, 3)
        _reward(panels[0], results.curves)
        _exact_match(panels[1], results)
        _drift(panels[2], results.curves)
    return figure


def _reward(axes: Axes, curves: pd.DataFrame) -> None:
    _line(axes, curves["reward"], "mean reward", COLORS["rl"])
    _line(axes, curves["correct"], "share correct", _ACCENT, linestyle="--")
    _finish(axes, "Reward in training", "per trajectory, training tasks")


def _exact_match(axes: Axes, results: Results) -> None:
    curves = results.curves
    _line(axes, curves["validation"], "validation, sampled", COLORS["rl"])
    _line(axes, curves["validation_greedy"], "validation, greedy", COLORS["rl"], linestyle=":")
    places = {"base": 0, "sft": 0, "rl": results.iterations}
    for policy, evaluation in results.evaluations.items():
        row = whole_split(evaluation, "held_out")
        if row is not None:
            value = float(row["exact_match"])
            axes.plot(
                places[policy],
                value,
                marker="D",
                markersize=7,
                color=COLORS[policy],
                markeredgecolor="white",
                linestyle="none",
                label=f"held out, {policy.upper() if policy != 'base' else 'base'}: {value:.2f}",
                zorder=3,
            )
    axes.yaxis.set_major_formatter(PercentFormatter(xmax=1))
    axes.set_ylim(-0.02, 1.02)
    _finish(axes, "Exact match", "questions that are not trained on")


def _drift(axes: Axes, curves: pd.DataFrame) -> None:
    _line(axes, curves["kl"], "KL to the reference", COLORS["rl"])
    _line(axes, curves["entropy"], "entropy", _ACCENT, linestyle="--")
    _finish(axes, "Drift of the policy", "nats per action token")


def _line(axes: Axes, values: pd.Series, label: str, color: str, linestyle: str = "-") -> None:
    known = values.dropna()
    if len(known):
        axes.plot(
            known.index,
            known.to_numpy(),
            label=label,
            color=color,
            linestyle=linestyle,
            linewidth=2,
            marker="o" if len(known) < 40 else "",
            markersize=4,
        )


def _finish(axes: Axes, title: str, subtitle: str) -> None:
    axes.set_title(title, loc="left", fontweight="bold", fontsize=12, pad=22)
    axes.text(0, 1.03, subtitle, transform=axes.transAxes, color=MUTED, fontsize=9.5)
    axes.set_xlabel("iteration")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(axis="y", color=GRID)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(GRID)
    axes.tick_params(length=0)
    if axes.lines:
        axes.legend(frameon=False, fontsize=9, loc="best")
    else:
        axes.text(0.5, 0.5, "nothing yet", transform=axes.transAxes, color=MUTED, ha="center")
