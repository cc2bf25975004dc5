"""A disk that is full when a writer writes: a clear error, nothing corrupt, and a run that goes on.

One experiment meets the full disk at one writer after the other; each run finishes what the last
one left, up to the next full disk. The disk stays full until the process ends, so whatever a
failing run does afterwards meets it too. What is pinned, for each kind of writer (table, checkpoint
and its marker, JSON, figure, page, manifest):

1. The run fails, and its last lines name the dataset or the file, and the reason.
2. They are all that it says: no traceback.
3. No manifest names an output that is not as it says.
4. With room again, the experiment ends with the bytes of the undisturbed one.
5. A report that cannot be written leaves the last one, which its manifest still names; at least
   the next run makes it again.
6. Nothing is left behind: no staged checkpoint, no uncommitted version, no temporary file.
"""

from __future__ import annotations

import pytest

from tests.support.fault_injection import Fault
from tests.support.forked_runs import Ended
from tests.support.small_experiment import SmallExperiments

pytestmark = pytest.mark.slow

REASONS = ("File too large", "EFBIG")
"""How the full disk of these tests is called; a real one says "No space left on device"."""

NAMED: dict[str, tuple[str, ...]] = {
    # Table.
    "full:writing:tasks": ("tasks",),
    # A checkpoint that is copied, and its marker.
    "full:before:base.import_policy": ("base_policy", "base.policy"),
    "full:writing:base.policy:0": ("base.policy", "base/policy"),
    # Checkpoints that are written: the model's configuration, and its weights.
    "full:before:iter_00000.train_sft": ("/policy-", "iter_00000.policy"),
    # JSON of three bytes.
    "full:writing:iter_00000.controllers:0": ("controllers",),
    "full:manifest:iter_00001.generate_rollouts": ("manifests/iter_00001/generate_rollouts",),
    "full:before:iter_00001.update_policy:65536": ("/policy-", "iter_00001.policy"),
    # Figure, page, JSON that each run replaces.
    "full:writing:learning_curves_figure": ("learning_curves",),
    "full:writing:report_html": ("report_html", "report.html"),
    "full:writing:summary": ("summary",),
}
"""Fault → what its error may name: the dataset, or the file."""

LAST_LINES = 5
"""Where a reader looks."""


@pytest.fixture(scope="module")
def full(experiments: SmallExperiments, undisturbed: Ended) -> dict[str, Ended]:
    """Fault → how its run ended; the last run, which had room, is at ``""``."""
    runs, broken = {}, {}
    for fault in NAMED:
        runs[fault] = experiments.run("full", fault)
        broken[fault] = experiments.wrongly_committed("full")
    assert not any(broken.values()), broken
    return runs | {"": experiments.run("full")}


@pytest.mark.parametrize("fault", NAMED)
def test_the_run_fails_at_this_writer(full: dict[str, Ended], fault: str):
    assert full[fault].struck == fault, full[fault].output
    assert full[fault].returncode == 1, full[fault].output


@pytest.mark.parametrize("fault", NAMED)
def test_its_last_lines_name_the_file_and_the_reason(full: dict[str, Ended], fault: str):
    last = "\n".join(full[fault].output.strip().splitlines()[-LAST_LINES:])
    assert any(name in last for name in NAMED[fault]), full[fault].output
    assert any(reason in last for reason in REASONS), full[fault].output


@pytest.mark.parametrize("fault", NAMED)
def test_it_is_a_message_and_no_traceback(full: dict[str, Ended], fault: str):
    assert "Traceback" not in full[fault].output
    assert len(full[fault].output.splitlines()) < 40, full[fault].output


def test_with_room_again_it_ends_as_the_undisturbed_one(
    experiments: SmallExperiments, full: dict[str, Ended]
):
    assert full[""].returncode == 0, full[""].output
    assert experiments.hashes("full") == experiments.hashes("undisturbed")
    assert experiments.wrongly_committed("full") == []


REPORT = {
    "learning_curves_figure": ("learning_curves.png", b"IEND\xaeB`\x82"),
    "report_html": ("report.html", b"</html>"),
    "summary": ("summary.json", b"}"),
}
"""Dataset → its file, and how a whole one ends."""


@pytest.mark.parametrize("output", REPORT)
def test_a_report_that_cannot_be_written_tears_no_file_and_is_made_again(
    experiments: SmallExperiments, full: dict[str, Ended], output: str
):
    """Its files have no versions, so some may be new and some old: the next run mends that."""
    _fail_to_report_again(experiments, output)
    for name, end in REPORT.values():
        file = experiments.project / "data/08_reporting/full" / name
        assert file.read_bytes().rstrip().endswith(end)
    assert experiments.run("full").returncode == 0
    assert experiments.wrongly_committed("full") == []


def _fail_to_report_again(experiments: SmallExperiments, output: str) -> None:
    """A whole report, and then another one that fails at this output."""
    alone, fault = ["--pipelines", "report"], str(Fault("full", "writing", output))
    assert experiments.run("full", selection=alone).returncode == 0
    assert experiments.wrongly_committed("full") == []
    again = experiments.run("full", fault, selection=alone)
    assert again.struck == fault, again.output
    assert again.returncode == 1


def test_nothing_is_left_behind(experiments: SmallExperiments, full: dict[str, Ended]):
    assert experiments.run("full").returncode == 0
    assert experiments.staged() == []
    assert experiments.uncommitted("full") == []
    assert experiments.half_written("full") == []
