"""``kedro rerun``, ``lineage`` and ``verify`` as a user types them; with toy nodes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from kedro.framework.startup import _get_project_metadata

from agent_r1.cli import cli
from agent_r1.lineage import ManifestStore
from tests.support.toy_experiment import finish_experiment


@pytest.fixture
def kedro(project):
    """Runs ``kedro <arguments>`` in a toy project with a finished experiment ``x``."""
    finish_experiment(project.path, 2)

    def invoke(*arguments: str) -> SimpleNamespace:
        metadata = _get_project_metadata(project.path)
        result = CliRunner().invoke(cli, arguments, obj=metadata)
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return SimpleNamespace(code=result.exit_code, text=result.output)

    invoke.path, invoke.calls = project.path, project.calls
    invoke.store = ManifestStore(project.path / "data/08_reporting/x/manifests")
    return invoke


def test_rerun_says_that_the_bytes_are_the_same(kedro):
    done = kedro("rerun", "score_rewards", "--iteration", "2", "--experiment", "x")
    assert done.code == 0
    assert kedro.calls == ["iter_00002.score_rewards"]
    assert "iter_00002.rewards: same bytes (sha256 " in done.text
    assert done.text.splitlines()[-1] == "The same bytes as before."


def test_params_may_name_the_experiment_as_for_run(kedro):
    done = kedro("rerun", "score_rewards", "-i", "1", "--params", "experiment=x")
    assert "ran again in experiment 'x'" in done.text


def test_rerun_with_other_parameters_names_what_it_keeps(kedro):
    done = kedro(
        "rerun", "score_rewards", "-i", "2", "--experiment", "x", "--params", "reward.value=3"
    )
    assert done.code == 0
    assert "  reward.value: 0 -> 3" in done.text
    assert "iter_00002.rewards: changed (" in done.text
    assert "which can still be read" in done.text
    assert "Kept as they are: " in done.text
    assert "iter_00002.compute_advantages" in done.text
    assert "--downstream cascade makes them again" in done.text


def test_rerun_cascade_and_fork(kedro):
    arguments = ["rerun", "score_rewards", "-i", "1", "--experiment", "x"]
    changed = ["--params", "reward.value=3"]
    fork = kedro(*arguments, *changed, "--downstream", "fork", "--as", "y")
    assert "ran again in experiment 'y'" in fork.text
    cascade = kedro(*arguments, *changed, "--downstream", "cascade")
    assert "Made again downstream: iter_00001.build_preferences" in cascade.text
    assert "(12 node runs)" in cascade.text
    again = kedro(*arguments, "--downstream", "cascade")
    assert "Downstream nothing changes." in again.text or "build_report" in again.text


def test_run_with_other_parameters_shows_the_diff_and_the_way_out(kedro):
    params = ["--params", "experiment=x,iterations=3,rollout.temperature=0.5"]
    refused = kedro("run", *params)
    assert refused.code == 1
    assert "  rollout.temperature: 1.0 -> 0.5" in refused.text
    assert "--allow-changes" in refused.text
    assert kedro.calls == []
    allowed = kedro("run", *params, "--allow-changes")
    assert allowed.code == 0
    assert "iter_00003" in allowed.text
    assert kedro("verify", "--experiment", "x").code == 0


def test_verify_is_silent_about_what_is_right_and_names_what_is_not(kedro):
    sound = kedro("verify", "--experiment", "x")
    assert sound.code == 0
    assert sound.text.splitlines()[-1].endswith("everything is as it was committed")
    path = kedro.store.committed("iter_00001.rollouts").record.path
    (kedro.path / path).write_bytes(b"x")
    broken = kedro("verify", "--experiment", "x")
    assert broken.code == 1
    assert f"{path}: has changed" in broken.text
    assert "FAILED: 1 changed" in broken.text.splitlines()[-1]


def test_lineage_shows_the_tree(kedro):
    shown = kedro("lineage", "advantages", "--iteration", "2", "--experiment", "x")
    assert shown.code == 0
    lines = shown.text.splitlines()
    assert lines[0].startswith("iter_00002.advantages  ")
    assert "by compute_advantages in " in lines[0]
    for name in ("iter_00002.rewards", "iter_00001.policy", "base.policy", "countries"):
        assert any(f"{name}  " in line for line in lines), name
    assert any("data/01_raw/memory.json  (raw data)" in line for line in lines)
    short = kedro("lineage", "iter_00002.advantages", "--depth", "1", "--experiment", "x")
    assert len(short.text.splitlines()) == 5
    assert kedro("lineage", "tasks", "--experiment", "x").text.startswith("tasks  ")


def test_lineage_by_hash(kedro):
    sha256 = kedro.store.committed("iter_00001.policy").record.sha256
    shown = kedro("lineage", sha256, "--experiment", "x")
    assert shown.text.startswith(f"iter_00001.policy  {sha256[:12]}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rerun", "score_reward", "-i", "1", "--experiment", "x"], "Did you mean 'score_rewards'"),
        (["rerun", "score_rewards", "--experiment", "x"], "see --iteration"),
        (["rerun", "score_rewards", "-i", "7", "--experiment", "x"], "has no iteration '7'"),
        (["rerun", "score_rewards", "-i", "1", "--experiment", "z"], "'z' has not run here"),
        (["lineage", "reward", "-i", "1", "--experiment", "x"], "iter_00001.rewards"),
        (["lineage", "0123456789ab", "--experiment", "x"], "nothing that is committed has"),
        (["verify", "--experiment", "xx"], "experiment 'xx' has not run here. Did you mean 'x'?"),
        (["verify", "--env", "papper"], "papper"),
    ],
)
def test_bad_requests_are_one_message_and_exit_code_1(kedro, arguments, message):
    failed = kedro(*arguments)
    assert failed.code == 1
    assert message in failed.text
    assert "Traceback" not in failed.text
    assert kedro.calls == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rerun", "score_rewards", "-i", "1", "--as", "y"], "add --downstream fork"),
        (
            ["rerun", "score_rewards", "--experiment", "y", "--params", "experiment=x"],
            "name different experiments",
        ),
        (["run", "--pipelines", "report", "--allow-changes"], "for the whole experiment"),
    ],
)
def test_options_that_do_not_fit_are_refused(kedro, arguments, message):
    failed = kedro(*arguments)
    assert failed.code == 2
    assert message in failed.text


@pytest.mark.parametrize("command", ["run", "rerun", "lineage", "verify"])
def test_every_command_has_help(command):
    text = CliRunner().invoke(cli, [command, "--help"]).output
    assert "--env" in text
    assert len(text.splitlines()) > 8
