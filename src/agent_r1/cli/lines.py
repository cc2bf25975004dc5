"""What the commands say, as lines and trees for a terminal."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.text import Text
from rich.tree import Tree

from agent_r1.lineage import LineageError, Manifest, ManifestStore
from agent_r1.lineage.branches import describe
from agent_r1.lineage.tree import SHORTEST_HASH, Origin, find, trace
from agent_r1.lineage.verify import Verification
from agent_r1.pipelines.namespaces import full_iteration

if TYPE_CHECKING:  # `verify` and `lineage` need no torch
    from agent_r1.chat.inspection import Inspection
    from agent_r1.experiments.replay import Replayed
    from agent_r1.experiments.rerun import Rerun

_HEX = frozenset("0123456789abcdef")
_SHOWN = 12
"""Characters of a sha256 that are shown."""


def rerun_lines(rerun: Rerun) -> list[str]:
    """What a rerun did, and what stands now."""
    lines = [f"{rerun.node} ran again in experiment '{rerun.experiment}': version {rerun.version}"]
    if rerun.changes:
        lines += ["with other parameters:", describe(rerun.changes)]
    for output in rerun.comparison.outputs:
        after = output.after[:_SHOWN]
        if output.volatile:
            lines.append(f"  {output.dataset}: wall-clock times")
        elif output.before is None:
            lines.append(f"  {output.dataset}: new (sha256 {after})")
        elif output.before == output.after:
            lines.append(f"  {output.dataset}: same bytes (sha256 {after})")
        else:
            lines.append(f"  {output.dataset}: changed ({output.before[:_SHOWN]} -> {after})")
    lines.append(_verdict(rerun))
    return lines + _downstream_lines(rerun)


def _verdict(rerun: Rerun) -> str:
    if rerun.same_bytes:
        return "The same bytes as before."
    if rerun.changes:
        return f"Another result than version {rerun.replaces}, which can still be read."
    surroundings = rerun.comparison.surroundings
    if surroundings:
        return f"Other bytes with the same parameters and inputs:\n{describe(surroundings)}"
    return "Other bytes, although nothing changed: the stage is not deterministic here."


def _downstream_lines(rerun: Rerun) -> list[str]:
    if rerun.outcome is not None:
        ran = [name for name in rerun.outcome.ran if name != rerun.node]
        return [f"Made again downstream: {_short(ran)}." if ran else "Downstream nothing changes."]
    if rerun.same_bytes or not rerun.downstream:
        return []
    return [
        f"Kept as they are: {_short(rerun.downstream)}.",
        "--downstream cascade makes them again, fork does so in a new experiment.",
    ]


def _short(names: list[str]) -> str:
    if len(names) <= 8:
        return ", ".join(names)
    return f"{', '.join(names[:6])}, … {names[-1]} ({len(names)} node runs)"


def verification_lines(experiment: str, result: Verification) -> list[str]:
    """The findings, and how much was checked."""
    lines = [str(finding) for finding in result.findings]
    checked = f"{result.manifests} manifests and {result.files} datasets"
    pruned = f" ({result.pruned} more were pruned by retention)" if result.pruned else ""
    counts = Counter(finding.kind for finding in result.findings)
    found = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    said = f"FAILED: {found}" if found else "everything is as it was committed"
    return [*lines, f"experiment '{experiment}': {checked}{pruned}: {said}"]


def replay_lines(result: Replayed, show: int) -> list[str]:
    """The first differences, and how much was compared."""
    lines = [str(difference) for difference in result.differences[:show]]
    if len(result.differences) > show:
        lines.append(f"… and {len(result.differences) - show} more differences")
    with_rewards = f" and {result.rewards}" if result.rewards else ""
    skipped = f"; {result.skipped} failed for the infrastructure" if result.skipped else ""
    share = result.matching / result.compared if result.compared else 1.0
    if result.groups is not None:
        lines.append(f"{result.groups}: what was played and kept was compared too")
    lines.append(
        f"{result.rollouts}{with_rewards}: {result.matching} of {result.compared} steps match "
        f"({share:.1%}){skipped}"
    )
    return lines


def wanted(
    store: ManifestStore, dataset: str, iteration: str | None, version: str | None
) -> tuple[str, str | None]:
    """The full name and the version that a user means by ``DATASET`` and its options.

    Raises:
        LineageError: a hash that nothing has. Of several results that have it the first is meant.
    """
    if iteration is not None:
        prefix = full_iteration(iteration)
        return f"{prefix}.{dataset.removeprefix(f'{prefix}.')}", version
    is_hash = len(dataset) >= SHORTEST_HASH and set(dataset) <= _HEX
    if version is not None or not is_hash:
        return dataset, version
    found = find(store, dataset)
    if not found:
        raise LineageError(f"nothing that is committed has the sha256 {dataset}…")
    return found[0]


def lineage_tree(
    store: ManifestStore, dataset: str, version: str | None, depth: int | None
) -> Tree:
    """What made a dataset, as a tree.

    Raises:
        LineageError: it is not committed.
    """
    origin = trace(store, dataset, version, depth)
    return _grown(Tree(_label(origin)), origin)


def _grown(tree: Tree, origin: Origin) -> Tree:
    for source in origin.inputs:
        _grown(tree.add(_label(source)), source)
    return tree


def _label(origin: Origin) -> Text:
    text = Text(origin.dataset, style="bold")
    text.append(f"  {origin.sha256[:_SHOWN]}", style="cyan")
    if origin.rows is not None:
        text.append(f"  {origin.rows:,} rows")
    manifest = origin.made_by
    if manifest is None:
        return text.append(f"  {origin.path}  (raw data)", style="dim")
    made = f"  by {manifest.stage} in {manifest.seconds:.1f} s, {_code(manifest)}"
    text.append(f"{made}  {manifest.version}", style="dim")
    if manifest.branch:
        text.append(f"  branch {manifest.branch}", style="yellow")
    if manifest.aside:
        text.append("  aside", style="yellow")
    if origin.dataset in manifest.pruned:
        text.append("  pruned", style="yellow")
    if origin.seen:
        text.append("  (see above)", style="dim italic")
    return text


def _code(manifest: Manifest) -> str:
    commit = manifest.code.get("commit")
    if not commit:
        return f"agent-r1 {manifest.code['version']}"
    return f"commit {commit[:8]}{' + changes' if manifest.code.get('dirty') else ''}"


def template_lines(inspection: Inspection, format_: str) -> list[str]:
    """What a chat template can do, and whether ``format_``, which is configured, can be used."""
    lines = [
        f"{'   ' if finding.good else ' ! '}{finding.question}: {finding.answer}"
        for finding in inspection.findings
    ]
    lines.append("chat.format:")
    for name, refusal in inspection.refusals.items():
        lines.append(f"  {name}: {'works' if refusal is None else refusal}")
    able = inspection.refusals[format_] is None
    return [*lines, f"The configured format, {format_}, {'works' if able else 'cannot be used'}."]
