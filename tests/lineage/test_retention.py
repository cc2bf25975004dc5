"""Which checkpoints go, and that nothing which is needed does."""

from __future__ import annotations

import pytest

from agent_r1.experiments.driver import run_experiment
from agent_r1.experiments.rerun import Request, Rerunner
from agent_r1.lineage import Experiment, LineageError, ManifestStore
from agent_r1.lineage.retention import RetentionParameters, kept
from agent_r1.lineage.verify import verify
from tests.support.toy_experiment import opened


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({}, {1, 2, 3, 4, 5, 6}),
        ({"keep_last": 2}, {5, 6}),
        ({"keep_last": 9}, {1, 2, 3, 4, 5, 6}),
        ({"keep_every": 3}, {3, 6}),
        ({"keep_best": 1}, {2}),  # 2 and 4 are equal: the earlier one
        ({"keep_best": 2}, {2, 4}),
        ({"keep_last": 1, "keep_every": 4, "keep_best": 1}, {2, 4, 6}),
    ],
)
def test_the_rules_keep_the_union(rules, expected):
    scores = {2: 0.5, 4: 0.5, 6: 0.1}
    assert kept(range(1, 7), RetentionParameters(**rules), scores) == expected


def run(project, **params):
    return run_experiment(project.path, {"experiment": "x", **params})


def policies(project) -> set[int]:
    folders = (project.path / "data/06_models/x").glob("iter_*/policy/*/policy")
    return {int(folder.parts[-4].removeprefix("iter_")) for folder in folders}


def check(project) -> list[str]:
    experiment = Experiment(project.path, project.path / "data/08_reporting/x/manifests")
    return [str(finding) for finding in verify(experiment).findings]


def test_everything_is_kept_by_default(project):
    run(project, iterations=3)
    assert policies(project) == {0, 1, 2, 3}


@pytest.mark.slow
def test_the_newest_can_always_be_made_again(project):
    """The newest iteration's inputs stay: the policy before it, and the reference."""
    run(project, iterations=5, retention={"keep_last": 1})
    assert policies(project) == {0, 4, 5}
    assert check(project) == []
    assert Rerunner(opened(project.path, "x")).rerun(Request("update_policy", "5")).same_bytes


def test_the_best_are_kept(project):
    # The toy's score is iteration / 10, validated every second iteration.
    run(project, iterations=7, retention={"keep_best": 3})
    assert policies(project) == {0, 4, 6, 7}


@pytest.mark.slow
def test_what_was_not_scored_is_not_among_the_best(project):
    run(project, iterations=7, retention={"keep_best": 3}, evaluation={"unscored": [2]})
    assert policies(project) == {0, 4, 6, 7}


@pytest.mark.slow
def test_manifests_say_what_was_pruned_and_tables_stay(project):
    run(project, iterations=4, retention={"keep_last": 1})
    store = ManifestStore(project.path / "data/08_reporting/x/manifests")
    pruned = store.newest("iter_00001.update_policy").pruned
    assert set(pruned) == {f"iter_00001.{name}" for name in ("policy", "critic", "trainer_state")}
    assert store.newest("iter_00004.update_policy").pruned == ()
    rollouts = store.committed("iter_00001.rollouts")
    assert (project.path / rollouts.record.path).is_file()


def test_a_pruned_experiment_goes_on_as_an_unpruned_one(project):
    run(project, iterations=4)
    run_experiment(
        project.path, {"experiment": "y", "iterations": 3, "retention": {"keep_last": 1}}
    )
    run_experiment(
        project.path, {"experiment": "y", "iterations": 4, "retention": {"keep_last": 1}}
    )
    shas = [
        ManifestStore(project.path / f"data/08_reporting/{name}/manifests")
        .committed("iter_00004.policy")
        .record.sha256
        for name in ("x", "y")
    ]
    assert shas[0] == shas[1]


@pytest.mark.slow
@pytest.mark.parametrize("crash", ["score_rewards", "update_policy", "validate_policy"])
def test_an_iteration_that_is_under_way_keeps_what_it_needs(project, crash):
    run_experiment(project.path, {"experiment": "undisturbed", "iterations": 4})
    params = {"iterations": 4, "retention": {"keep_last": 1}}
    project.fail_at.add(f"iter_00004/{crash}")
    with pytest.raises(RuntimeError, match="told to fail"):
        run(project, **params)
    project.fail_at.clear()
    run(project, **params)
    assert policies(project) == {0, 3, 4}
    shas = [
        ManifestStore(project.path / f"data/08_reporting/{name}/manifests")
        .committed("iter_00004.policy")
        .record.sha256
        for name in ("x", "undisturbed")
    ]
    assert shas[0] == shas[1]


@pytest.mark.slow
def test_a_rerun_that_needs_a_pruned_checkpoint_says_so(project):
    run(project, iterations=4, retention={"keep_last": 1})
    with pytest.raises(LineageError, match=r"'iter_00001.policy'.* was pruned by retention"):
        Rerunner(opened(project.path, "x")).rerun(Request("compute_logprobs", "2"))
    # Rewards and advantages need no model.
    assert Rerunner(opened(project.path, "x")).rerun(Request("score_rewards", "2")).same_bytes
    assert Rerunner(opened(project.path, "x")).rerun(Request("compute_advantages", "2")).same_bytes


@pytest.mark.slow
def test_what_a_fork_shares_is_kept(project):
    run(project, iterations=2)
    Rerunner(opened(project.path, "x")).rerun(Request("generate_rollouts", "2", "fork", "fork"))
    run(project, iterations=5, retention={"keep_last": 1})
    assert policies(project) == {0, 1, 4, 5}


@pytest.mark.slow
def test_a_crash_between_the_mark_and_the_deletion_is_finished(project, monkeypatch):
    run(project, iterations=3)

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("agent_r1.lineage.retention._delete", killed)
        with pytest.raises(KeyboardInterrupt):
            run(project, iterations=3, retention={"keep_last": 1})
    assert 1 in policies(project)
    assert check(project) == []
    run(project, iterations=3, retention={"keep_last": 1})
    assert policies(project) == {0, 2, 3}
    assert check(project) == []
