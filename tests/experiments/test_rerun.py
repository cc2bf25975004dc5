"""One stage again: the same bytes, other parameters, and what becomes of what is downstream."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from agent_r1.experiments.driver import run_experiment
from agent_r1.experiments.rerun import Request, Rerunner
from agent_r1.lineage import Experiment, LineageError, ManifestStore
from agent_r1.lineage.branches import BranchBook, ChangedParametersError
from agent_r1.lineage.seal import SEAL, sealed
from agent_r1.lineage.verify import verify
from agent_r1.parameters import ParameterError
from agent_r1.storage.atomic import strict_json
from tests.support.toy_experiment import finish_experiment, opened

STAGES = (
    "generate_rollouts", "score_rewards", "compute_logprobs", "compute_advantages",
    "build_preferences", "update_policy", "validate_policy",
)  # fmt: skip


@pytest.fixture
def experiment(project):
    """A toy experiment of four iterations, and ways to look at it."""
    finish_experiment(project.path, 4)
    reporting = project.path / "data/08_reporting"

    def store(name: str = "x") -> ManifestStore:
        return ManifestStore(reporting / name / "manifests")

    def findings(name: str = "x") -> list[str]:
        result = verify(Experiment(project.path, reporting / name / "manifests"))
        return [str(finding) for finding in result.findings]

    def rerun(stage: str, iteration: str | None, downstream="keep", fork=None, **overrides):
        request = Request(stage, iteration, downstream, fork, overrides)
        return Rerunner(opened(project.path, "x")).rerun(request)

    def hashes(name: str = "x") -> dict[str, str]:
        current = {
            manifest.node: manifest for _, manifest in store(name).all() if not manifest.aside
        }
        return {
            record.dataset: record.sha256
            for manifest in current.values()
            for record in manifest.outputs
            if record.version is not None
        }

    return SimpleNamespace(
        path=project.path, calls=project.calls, fail_at=project.fail_at, store=store,
        findings=findings, rerun=rerun, hashes=hashes,
        book=lambda name="x": BranchBook(reporting / name / "branches"),
    )  # fmt: skip


@pytest.mark.parametrize("stage", STAGES)
def test_nothing_changed_gives_the_same_bytes(experiment, stage):
    before = experiment.hashes()
    result = experiment.rerun(stage, "2")
    assert experiment.calls == [f"iter_00002.{stage}"]
    assert result.same_bytes
    assert result.version > result.replaces
    assert experiment.hashes() == before
    assert experiment.findings() == []
    # The experiment is as finished as it was.
    assert run_experiment(experiment.path, {"experiment": "x", "iterations": 4}).ran in (
        [], ["build_report"],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("stage", "iteration", "node"),
    [
        ("prepare_tasks", None, "prepare_tasks"),
        ("build_demonstrations", None, "build_demonstrations"),
        ("import_policy", "base", "base.import_policy"),
        ("train_sft", "0", "iter_00000.train_sft"),
        ("evaluate_policy", "iter_00000", "iter_00000.evaluate_policy"),
        ("build_report", None, "build_report"),
    ],
)
def test_stages_outside_the_iterations(experiment, stage, iteration, node):
    result = experiment.rerun(stage, iteration)
    assert result.node == node
    assert result.same_bytes


def test_an_experiments_own_parameters_are_used_again(experiment):
    """Not those of conf/: --params need not be given again."""
    run_experiment(
        experiment.path, {"experiment": "y", "iterations": 1, "seed": 7, "rollout": {"top_p": 0.9}}
    )
    request = Request("generate_rollouts", "1")
    result = Rerunner(opened(experiment.path, "y")).rerun(request)
    assert result.same_bytes
    manifest = experiment.store("y").newest("iter_00001.generate_rollouts")
    assert (manifest.version, manifest.seed) == (result.version, 7)
    assert manifest.parameters["params:rollout"] == {"temperature": 1.0, "top_p": 0.9}


def test_inputs_are_those_of_the_manifest(experiment):
    """A newer version beside them is not read."""
    aside = experiment.rerun("score_rewards", "2", reward={"value": 3})
    result = experiment.rerun("compute_advantages", "2")
    assert result.same_bytes
    read = experiment.store().newest("iter_00002.compute_advantages").inputs
    assert aside.version not in {record.version for record in read}


# ------------------------------------------------------------------------------------------- keep


def test_keep_puts_another_result_aside(experiment):
    before = experiment.hashes()
    result = experiment.rerun("score_rewards", "2", reward={"value": 3})
    assert not result.same_bytes
    assert result.changes == {"reward.value": (0, 3)}
    assert {"iter_00002.compute_advantages", "iter_00004.update_policy"} <= set(result.downstream)
    assert "iter_00001.update_policy" not in result.downstream
    store = experiment.store()
    assert store.committed("iter_00002.rewards").version == result.replaces
    for version in (result.version, result.replaces):
        committed = store.committed("iter_00002.rewards", version)
        assert (experiment.path / committed.record.path).is_file()
    assert experiment.hashes() == before
    assert experiment.findings() == []
    assert run_experiment(experiment.path, {"experiment": "x", "iterations": 4}).ran == []
    assert len(experiment.book().all()) == 1


def test_a_plain_partial_run_with_other_parameters_is_aside_too(experiment):
    from agent_r1.experiments.session import Session

    session = Session(experiment.path, {"experiment": "x", "reward": {"value": 3}})
    version = session.run("iter_00002", ["iter_00002.score_rewards"])
    assert experiment.store().committed("iter_00002.rewards").version < version
    assert experiment.store().read(experiment.store().paths("iter_00002.score_rewards")[0]).aside


def test_an_experiment_that_is_older_than_a_parameter(experiment):
    """Its branch says nothing of it, which means the default: nothing is aside, or not verified."""
    path = experiment.book().path(0)
    branch = json.loads(path.read_text())
    del branch[SEAL], branch["parameters"]["rollout.top_p"]
    path.write_text(strict_json(sealed(branch)))
    before = experiment.store().committed("iter_00002.rollouts")
    result = experiment.rerun("generate_rollouts", "2")
    assert (result.same_bytes, result.changes) == (True, {})
    assert experiment.store().committed("iter_00002.rollouts").version > before.version
    assert run_experiment(experiment.path, {"experiment": "x", "iterations": 5}).ran
    assert experiment.store().newest("iter_00005.generate_rollouts").branch == 0
    assert experiment.findings() == []
    changed = experiment.rerun("generate_rollouts", "2", rollout={"top_p": 0.5})
    assert changed.changes == {"rollout.top_p": (1.0, 0.5)}


def test_a_lost_table_is_made_again(experiment):
    """The same bytes take the place of what was lost."""
    rewards = experiment.store().committed("iter_00002.rewards")
    (experiment.path / rewards.record.path).unlink()
    with pytest.raises(LineageError, match=r"rewards.parquet, which .*advantages read, is gone"):
        experiment.rerun("compute_advantages", "2")
    assert experiment.rerun("score_rewards", "2").same_bytes
    assert experiment.store().committed("iter_00002.rewards").version > rewards.version


# ---------------------------------------------------------------------------------------- cascade


def test_cascade_makes_everything_that_depends_on_it_again(experiment):
    before = experiment.hashes()
    result = experiment.rerun("score_rewards", "2", "cascade", reward={"value": 3})
    ran = result.outcome.ran
    assert {"iter_00002.compute_advantages", "iter_00002.update_policy"} <= set(ran)
    assert {f"iter_0000{k}.{stage}" for k in (3, 4) for stage in STAGES[:-1]} <= set(ran)
    assert {"iter_00002.generate_rollouts", "iter_00002.compute_logprobs"}.isdisjoint(ran)
    assert not any(name.startswith(("iter_00001.", "iter_00000.", "base.")) for name in ran)
    assert ran[-1] == "build_report"
    after = experiment.hashes()
    assert after["iter_00002.rewards"] != before["iter_00002.rewards"]
    assert after["iter_00004.policy"] != before["iter_00004.policy"]
    assert after["iter_00001.policy"] == before["iter_00001.policy"]
    assert experiment.findings() == []
    branch = experiment.book().newest()
    assert (branch.index, branch.reason, branch.start) == (1, "rerun", "iter_00002.score_rewards")
    third = experiment.store().newest("iter_00003.score_rewards")
    assert (third.branch, third.parameters["params:reward"]) == (1, {"value": 3})


def test_after_a_cascade_the_experiment_has_the_new_parameters(experiment):
    experiment.rerun("score_rewards", "3", "cascade", reward={"value": 3})
    with pytest.raises(ChangedParametersError, match=r"reward.value: 3 -> 0"):
        run_experiment(experiment.path, {"experiment": "x", "iterations": 4})
    new = {"experiment": "x", "iterations": 4, "reward": {"value": 3}}
    assert run_experiment(experiment.path, new).ran == []
    assert run_experiment(experiment.path, new | {"iterations": 5}).ran[-1] == "build_report"


@pytest.mark.slow
def test_a_cascade_ends_as_if_it_had_been_so_from_there_on(experiment):
    """The same as a fork there, node for node."""
    experiment.rerun("score_rewards", "2", "fork", "y", reward={"value": 3})
    experiment.rerun("score_rewards", "2", "cascade", reward={"value": 3})
    assert experiment.hashes("y") == experiment.hashes("x")


def test_cascade_reaches_stages_whose_parameters_changed_though_their_inputs_did_not(experiment):
    result = experiment.rerun("score_rewards", "3", "cascade", update={"value": 9})
    assert result.same_bytes  # of the rewards: they do not read `update`
    assert "iter_00003.update_policy" in result.outcome.ran
    assert "iter_00003.compute_advantages" not in result.outcome.ran
    manifest = experiment.store().newest("iter_00003.update_policy")
    assert manifest.parameters["params:update"] == {"objective": "ppo_clip", "value": 9}


def test_a_cascade_with_nothing_changed_changes_nothing(experiment):
    before = experiment.hashes()
    result = experiment.rerun("score_rewards", "2", "cascade")
    assert result.same_bytes
    assert set(result.outcome.ran) <= {"build_report"}
    assert experiment.hashes() == before
    assert len(experiment.book().all()) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "crash", ["iter_00002/compute_advantages", "iter_00003/generate_rollouts", "/build_report"]
)
def test_an_interrupted_cascade_is_finished_by_a_run(experiment, crash):
    experiment.rerun("score_rewards", "2", "fork", "undisturbed", reward={"value": 3})
    experiment.fail_at.add(crash)
    with pytest.raises(RuntimeError, match="told to fail"):
        experiment.rerun("score_rewards", "2", "cascade", reward={"value": 3})
    experiment.fail_at.clear()
    run_experiment(experiment.path, {"experiment": "x", "iterations": 4, "reward": {"value": 3}})
    assert experiment.hashes() == experiment.hashes("undisturbed")
    assert experiment.findings() == []


@pytest.mark.slow
def test_two_cascades_on_top_of_each_other(experiment):
    experiment.rerun("score_rewards", "2", "cascade", reward={"value": 3})
    experiment.rerun("update_policy", "3", "cascade", update={"value": 1})
    branches = experiment.book().all()
    assert [branch.start for branch in branches] == [
        None, "iter_00002.score_rewards", "iter_00003.update_policy",
    ]  # fmt: skip
    both = {"reward": {"value": 3}, "update": {"value": 1}}
    assert run_experiment(experiment.path, {"experiment": "x", "iterations": 4, **both}).ran == []
    assert experiment.store().newest("iter_00002.update_policy").branch == 1
    assert experiment.store().newest("iter_00004.update_policy").branch == 2


# ------------------------------------------------------------------------------------------- fork


def test_a_fork_shares_what_is_upstream_and_leaves_the_old_experiment_alone(experiment):
    before = {path: path.read_bytes() for path in experiment.store().every_path()}
    result = experiment.rerun("score_rewards", "3", "fork", "y", reward={"value": 3})
    assert result.experiment == "y"
    assert not result.same_bytes
    assert {path: path.read_bytes() for path in experiment.store().every_path()} == before
    ran = result.outcome.ran
    assert ran[0] == "iter_00003.score_rewards"
    assert not any(name.startswith(("iter_00002.", "iter_00001.", "base.")) for name in ran)
    assert "iter_00003.generate_rollouts" not in ran
    mine, theirs = experiment.hashes("y"), experiment.hashes()
    assert mine["iter_00002.policy"] == theirs["iter_00002.policy"]
    assert mine["iter_00004.policy"] != theirs["iter_00004.policy"]
    shared = experiment.store("y").committed("iter_00002.policy").record.path
    assert "/x/" in shared
    assert not (experiment.path / "data/06_models/y/iter_00002").exists()
    assert (experiment.path / "data/08_reporting/y/summary.json").is_file()
    assert experiment.findings("y") == []
    assert experiment.findings("x") == []
    branch = experiment.book("y").newest()
    assert (branch.reason, branch.experiment, branch.start) == (
        "fork", "x", "iter_00003.score_rewards",
    )  # fmt: skip


@pytest.mark.slow
def test_a_fork_goes_on_like_any_experiment(experiment):
    experiment.rerun("score_rewards", "3", "fork", "y", reward={"value": 3})
    params = {"experiment": "y", "iterations": 4, "reward": {"value": 3}}
    assert run_experiment(experiment.path, params).ran == []
    ran = run_experiment(experiment.path, params | {"iterations": 5}).ran
    assert "iter_00005.update_policy" in ran
    result = Rerunner(opened(experiment.path, "y")).rerun(Request("compute_advantages", "2"))
    assert result.same_bytes  # of a shared stage
    assert experiment.findings("y") == []


@pytest.mark.slow
def test_a_fork_without_changes_ends_with_the_same_bytes(experiment):
    result = experiment.rerun("update_policy", "2", "fork")
    assert result.experiment == "x-fork1"
    assert result.same_bytes
    assert experiment.hashes("x-fork1") == experiment.hashes()
    assert experiment.rerun("update_policy", "2", "fork").experiment == "x-fork2"


@pytest.mark.slow
@pytest.mark.parametrize("crash", ["iter_00003/score_rewards", "iter_00004/update_policy"])
def test_an_interrupted_fork_is_finished_by_a_run(experiment, crash):
    experiment.rerun("score_rewards", "3", "fork", "undisturbed", reward={"value": 3})
    experiment.fail_at.add(crash)
    with pytest.raises(RuntimeError, match="told to fail"):
        experiment.rerun("score_rewards", "3", "fork", "y", reward={"value": 3})
    experiment.fail_at.clear()
    run_experiment(experiment.path, {"experiment": "y", "iterations": 4, "reward": {"value": 3}})
    assert experiment.hashes("y") == experiment.hashes("undisturbed")
    assert experiment.findings("y") == []


def test_a_forks_stage_that_nothing_later_reads_shares_the_later_iterations(experiment):
    result = experiment.rerun("validate_policy", "2", "fork", "y")
    assert set(result.outcome.ran) == {"iter_00002.validate_policy", "build_report"}
    assert experiment.hashes("y") == experiment.hashes()


@pytest.mark.slow
@pytest.mark.parametrize("downstream", ["cascade", "fork"])
def test_stages_beside_it_that_read_what_is_changed_are_named(experiment, downstream, caplog):
    experiment.rerun("score_rewards", "3", downstream, rollout={"top_p": 0.5}, reward={"value": 3})
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    [line] = [each for each in said if "keep their results" in each]
    assert "iter_00003.generate_rollouts (rollout.top_p)" in line
    assert line.endswith("rerun the first of them: generate_rollouts")


@pytest.mark.slow
def test_nothing_is_said_where_all_that_reads_it_is_made_again(experiment, caplog):
    changed = {"advantage": {"value": 3}, "update": {"value": 1}}
    experiment.rerun("compute_advantages", "3", "cascade", **changed)
    assert "keep their results" not in caplog.text


def test_a_fork_of_a_taken_name_is_refused(experiment):
    run_experiment(experiment.path, {"experiment": "y", "iterations": 0})
    with pytest.raises(ParameterError, match="there is an experiment 'y' already"):
        experiment.rerun("score_rewards", "2", "fork", "y")


# ------------------------------------------------------------------------------------ bad requests


@pytest.mark.parametrize(
    ("stage", "iteration", "error", "message"),
    [
        ("score_reward", "2", ParameterError, "Did you mean 'score_rewards'?"),
        ("score_rewards", None, ParameterError, "outside the iterations (see --iteration)"),
        ("score_rewards", "nine", ParameterError, "there is no iteration 'nine'"),
        ("score_rewards", "9", LineageError, "has not run in experiment 'x'"),
        ("evaluate_policy", "2", LineageError, "iter_00002.evaluate_policy has not run"),
    ],
)
def test_what_cannot_be_run_again(experiment, stage, iteration, error, message):
    with pytest.raises(error) as caught:
        experiment.rerun(stage, iteration)
    assert message in str(caught.value)
    assert experiment.calls == []


def test_an_input_that_was_changed_is_named(experiment):
    rewards = experiment.store().committed("iter_00002.rewards").record.path
    (experiment.path / rewards).write_bytes(b"x")
    with pytest.raises(LineageError, match=r"rewards.parquet.* has changed since"):
        experiment.rerun("compute_advantages", "2")
    assert experiment.calls == []


def test_another_algorithm_is_what_its_preset_says(experiment):
    preset = experiment.path / "conf/algorithms/other.yml"
    preset.write_text("advantage: {value: 4}\nupdate: {value: 5}\n")
    result = experiment.rerun("compute_advantages", "2", algorithm="other", update={"value": 6})
    assert result.changes == {"advantage.value": (0, 4), "update.value": (0, 6)}
    (path, *_) = experiment.store().paths("iter_00002.compute_advantages")
    manifest = experiment.store().read(path)
    assert manifest.aside
    assert manifest.parameters["params:advantage"] == {"value": 4}


def test_unknown_parameters_are_refused(experiment):
    with pytest.raises(ParameterError, match=r"'reward\.valu'"):
        experiment.rerun("score_rewards", "2", reward={"valu": 1})
    assert experiment.calls == []
