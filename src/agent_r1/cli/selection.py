"""Checks what ``kedro run`` is asked to select, before Kedro does: unknown names are refused."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from kedro.pipeline import Pipeline

from agent_r1.parameters import ParameterError, nearest

_FILTERS = {
    "node_names": "--nodes",
    "from_nodes": "--from-nodes",
    "to_nodes": "--to-nodes",
    "from_inputs": "--from-inputs",
    "to_outputs": "--to-outputs",
    "namespaces": "--namespaces",
    "tags": "--tags",
}
"""Parameter of Kedro's run command → the option, in the order in which they are checked."""


def check_selection(options: Mapping[str, Any]) -> None:
    """Check the options of ``kedro run`` that select nodes, datasets and versions.

    Raises:
        ParameterError: a pipeline, node, dataset, namespace, tag or runner does not exist (the
            nearest names are given), nothing is selected, or ``--load-versions`` names a dataset
            that the run makes.
    """
    _check_runner(options["runner"])
    chosen = [*filter(None, [options["pipeline"]]), *options["pipelines"]]
    pipeline = _pipeline(chosen)
    where = f"pipeline '{', '.join(chosen)}'" if chosen else "the default pipeline"
    known = _known(pipeline)
    for key, option in _FILTERS.items():
        for name in options[key]:
            if name not in known[key]:
                hint = _elsewhere(name, chosen) or _hint(name, known[key])
                hint = hint or f" It has none: leave {option} out."
                raise ParameterError(f"{option}: '{name}' is not in {where}.{hint}")
    selected = _filtered(pipeline, options, where)
    for name in options["load_versions"] or ():
        if name in selected.all_outputs():
            raise ParameterError(
                f"--load-versions: this run makes '{name}' itself. Leave it out, or select only "
                "the nodes that read it with --nodes"
            )


def _check_runner(name: str | None) -> None:
    from kedro import runner

    known = [each for each in dir(runner) if each.endswith("Runner") and each != "AbstractRunner"]
    if name and "." not in name and name not in known:
        raise ParameterError(f"--runner: there is no runner '{name}'.{nearest(name, known)}")


def _pipeline(chosen: Iterable[str]) -> Pipeline:
    from kedro.framework.project import pipelines

    for name in chosen:
        if name not in pipelines:
            raise ParameterError(f"there is no pipeline '{name}'.{nearest(name, pipelines)}")
    return sum((pipelines[name] for name in chosen or ["__default__"]), start=Pipeline([]))


def _known(pipeline: Pipeline) -> dict[str, list[str]]:
    """Names that each of `_FILTERS` may have."""
    nodes = [node.name for node in pipeline.nodes]
    prefixes = {prefix for node in pipeline.nodes for prefix in node.namespace_prefixes}
    return {
        **dict.fromkeys(("node_names", "from_nodes", "to_nodes"), nodes),
        **dict.fromkeys(("from_inputs", "to_outputs"), sorted(pipeline.datasets())),
        "namespaces": sorted(prefixes - {""}),
        "tags": sorted({tag for node in pipeline.nodes for tag in node.tags}),
    }


def _elsewhere(name: str, chosen: list[str]) -> str:
    """The option that is missing where a name belongs to an iteration which no option names."""
    from kedro.framework.project import pipelines

    namespace = name.partition(".")[0]
    if chosen or namespace == name or namespace not in pipelines:
        return ""
    pipeline = pipelines[namespace]
    there = pipeline.datasets() | {node.name for node in pipeline.nodes}
    return f" Add --pipelines {namespace}." if name in there else ""


def _hint(name: str, known: list[str]) -> str:
    """The nearest names: those that are equal without their namespace, or else similar ones."""
    short = name.rpartition(".")[2]
    close = [each for each in known if each.rpartition(".")[2] == short]
    close = close or difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    return f" Did you mean {' or '.join(close)}?" if close else nearest(name, known)


def _filtered(pipeline: Pipeline, options: Mapping[str, Any], where: str) -> Pipeline:
    filters = {key: options[key] for key in _FILTERS if key != "namespaces"}
    try:
        return pipeline.filter(**filters, node_namespaces=options["namespaces"])
    except ValueError:
        given = [option for key, option in _FILTERS.items() if options[key]]
        raise ParameterError(
            f"{' with '.join(given)} selects no node of {where}: leave one of them out"
        ) from None
