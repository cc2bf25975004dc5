"""An experiment's parameters: refused when they change, recorded when they may."""

from __future__ import annotations

import json

import pytest

from agent_r1.experiments.driver import run_experiment
from agent_r1.lineage import LineageError, ManifestStore
from agent_r1.lineage.branches import (
    Branch,
    BranchBook,
    ChangedParametersError,
    continued,
    differences,
    flatten,
    nested,
)


def test_dotted_names_come_back_as_groups():
    groups = {"seed": 0, "reward": {"terms": {"outcome": {"weight": 1.0}}, "none": {}}, "l": [1]}
    flat = flatten(groups)
    assert flat == {"seed": 0, "reward.terms.outcome.weight": 1.0, "reward.none": {}, "l": [1]}
    assert nested(flat) == groups


def test_names_with_a_dot_stay_in_their_group():
    groups = {"reward": {"environments": {"games.chess:Chess": {"terms": {"outcome": None}}}}}
    flat = flatten(groups)
    assert flat == {"reward.environments": groups["reward"]["environments"]}
    assert nested(flat) == groups


def test_what_is_put_into_an_empty_group_is_not_put_into_the_recorded_one():
    recorded = {"reward.environments": {}}
    assert nested(recorded | {"reward.environments.a": 1}) == {"reward": {"environments": {"a": 1}}}
    assert recorded == {"reward.environments": {}}


def test_only_what_can_change_a_result_differs():
    old = {"seed": 0, "iterations": 3, "mlflow.enabled": True, "evaluation.every": 5, "sft.lr": 1}
    new = {"seed": 1, "iterations": 9, "mlflow.enabled": False, "evaluation.every": 1, "sft.x": 2}
    assert differences(old, new) == {
        "seed": (0, 1), "sft.lr": (1, "(none)"), "sft.x": ("(none)", 2),
    }  # fmt: skip


def test_a_parameter_that_is_newer_than_the_experiment_may_have_its_default(tmp_path):
    book = BranchBook(tmp_path)
    book.write(Branch(0, {"seed": 0}))

    def go_on(**parameters):
        def meaning(recorded):
            return {"seed": 5, "new": None} | recorded

        return continued(book, parameters, "x", allow_changes=False, meaning=meaning)

    assert go_on(seed=0, new=None).index == 0
    with pytest.raises(ChangedParametersError, match="new: None -> 1"):
        go_on(seed=0, new=1)
    with pytest.raises(ChangedParametersError, match="seed: 0 -> 5"):
        go_on(seed=5, new=None)  # it was another one, so the default is a change


def test_a_parameter_that_is_no_more_is_a_change_only_if_it_said_something_else():
    assert differences({"tasks.environment": "multihop_qa"}, {}) == {}
    assert differences({"tasks.environment": "games:Chess"}, {}) == {
        "tasks.environment": ("games:Chess", "(none)")
    }


def test_a_branch_compares_what_a_node_read():
    branch = Branch(0, {"rollout.temperature": 1.0, "rollout_other": 2, "evaluation.every": 5})
    assert branch.differing("params:rollout", {"temperature": 1.0}) == {}
    assert branch.differing("params:rollout", {"temperature": 0.5}) == {
        "rollout.temperature": (1.0, 0.5)
    }
    assert branch.differing("params:evaluation", {"every": 1}) == {}
    assert branch.differing("parameters", {"anything": 1}) == {}


def test_branches_come_back_and_are_not_rewritten(tmp_path):
    book = BranchBook(tmp_path / "branches")
    assert book.newest() is None
    first = Branch(0, {"seed": 0})
    second = Branch(1, {"seed": 1}, "changes", None, {"seed": (0, 1)}, created_at="now")
    book.write(first)
    book.write(second)
    book.write(second)  # the same again is the same
    assert book.all() == [first, second]
    with pytest.raises(LineageError, match="another branch"):
        book.write(Branch(1, {"seed": 2}))


def test_an_edited_or_missing_branch_is_named(tmp_path):
    book = BranchBook(tmp_path)
    for index in range(3):
        book.write(Branch(index, {"seed": index}))
    path = book.path(2)
    path.write_text(path.read_text().replace('"seed": 2', '"seed": 3'))
    with pytest.raises(LineageError, match=r"00002\.json.*was edited"):
        book.all()
    path.unlink()
    book.path(0).unlink()
    with pytest.raises(LineageError, match="branch 0 is missing"):
        book.all()


# ------------------------------------------------------------------------- through the driver


def run(project, allow_changes=False, **params):
    project.calls.clear()
    return run_experiment(project.path, {"experiment": "x", **params}, allow_changes=allow_changes)


@pytest.fixture
def book(project) -> BranchBook:
    return BranchBook(project.path / "data/08_reporting/x/branches")


def test_other_parameters_are_refused_with_a_diff(project, book):
    run(project, iterations=1)
    with pytest.raises(ChangedParametersError) as caught:
        run(project, iterations=2, rollout={"temperature": 0.5}, seed=3)
    lines = str(caught.value).splitlines()
    assert lines[0] == "experiment 'x' was run with other parameters:"
    assert lines[1:3] == ["  rollout.temperature: 1.0 -> 0.5", "  seed: 0 -> 3"]
    assert "--allow-changes" in lines[-1]
    assert project.calls == []
    assert len(book.all()) == 1


@pytest.mark.parametrize("params", [{"iterations": 2}, {"evaluation": {"every": 1}}])
def test_what_changes_no_result_is_no_change(project, book, params):
    run(project, iterations=1)
    run(project, **{"iterations": 1, **params})
    assert len(book.all()) == 1


def test_allowed_changes_start_a_branch_and_leave_what_is_done(project, book):
    run(project, iterations=1)
    before = ManifestStore(project.path / "data/08_reporting/x/manifests")
    done = {path: path.read_bytes() for path in before.every_path()}
    run(project, iterations=2, rollout={"temperature": 0.5}, allow_changes=True)
    branch = book.newest()
    assert (branch.index, branch.reason, branch.start) == (1, "changes", None)
    assert branch.changes == {"rollout.temperature": (1.0, 0.5)}
    assert {path: path.read_bytes() for path in done} == done
    assert not any(call.startswith("iter_00001.generate") for call in project.calls)
    assert before.newest("iter_00001.generate_rollouts").branch == 0
    second = before.newest("iter_00002.generate_rollouts")
    assert (second.branch, second.parameters["params:rollout"]["temperature"]) == (1, 0.5)
    with pytest.raises(ChangedParametersError):  # the branch is what is continued
        run(project, iterations=3)
    assert run(project, iterations=2, rollout={"temperature": 0.5}).ran == []


def test_allowed_changes_with_nothing_left_to_do_record_nothing(project, book):
    run(project, iterations=1)
    assert run(project, iterations=1, seed=5, allow_changes=True).ran == []
    assert len(book.all()) == 1


def test_a_branch_is_recorded_before_the_first_manifest_that_names_it(project, book):
    project.fail_at.add("iter_00002/generate_rollouts")
    with pytest.raises(RuntimeError):
        run(project, iterations=2)
    assert len(book.all()) == 1
    with pytest.raises(RuntimeError):
        run(project, iterations=2, seed=1, allow_changes=True)
    assert len(book.all()) == 1  # nothing was committed with the new parameters
    project.fail_at.clear()
    run(project, iterations=2)
    seeds = [
        json.loads(path.read_text())["seed"]
        for path in sorted((project.path / "data/08_reporting/x/manifests").glob("iter_*/*/*.json"))
    ]
    assert set(seeds) == {0}
