"""The driver: which nodes run, in which order, and what is left alone; with toy nodes."""

from __future__ import annotations

import json

import pytest
from kedro.pipeline import Node, Pipeline

from agent_r1.cli.lines import rerun_lines
from agent_r1.experiments.driver import run_experiment
from agent_r1.experiments.session import Session
from agent_r1.lineage import ManifestStore
from agent_r1.parameters import ParameterError
from tests.support.toy_experiment import opened

STEPS = {
    "generate_rollouts", "score_rewards", "compute_logprobs", "compute_advantages",
    "build_preferences", "update_policy",
}  # fmt: skip

_ENDED: dict[str, dict[str, str]] = {}
"""What the undisturbed experiment ends with; every interrupted one must end so."""


def run(project, **params):
    project.calls.clear()
    return run_experiment(project.path, {"experiment": "x", **params})


def evaluated(project) -> list[str]:
    return [call for call in project.calls if call.endswith(("evaluate_policy", "validate_policy"))]


def hashes(project, experiment: str) -> dict[str, str]:
    store = ManifestStore(project.path / f"data/08_reporting/{experiment}/manifests")
    skip = ("summary", "report_html", "learning_curves_figure")
    return {
        record.dataset: record.sha256
        for _, manifest in store.all()
        for record in manifest.outputs
        if record.dataset not in skip
    }


def test_a_whole_experiment_runs_in_order(project):
    outcome = run(project, iterations=2)
    calls = project.calls
    assert calls[:3] == ["prepare_tasks", "base.import_policy", "base.evaluate_policy"]
    assert calls[3:5] == ["build_demonstrations", "iter_00000.train_sft"]
    for name in ("iter_00001", "iter_00002"):
        assert {f"{name}.{step}" for step in STEPS} <= set(calls)
    assert calls.index("iter_00001.update_policy") < calls.index("iter_00002.generate_rollouts")
    assert calls[-1] == "build_report"
    assert sorted(outcome.ran) == sorted(calls)
    summary = json.loads((project.path / "data/08_reporting/x/summary.json").read_text())
    assert summary == {"experiment": "x", "iterations": 2, "temperature": 1.0}


def test_all_splits_for_base_sft_and_the_last_validation_in_between(project):
    run(project, iterations=5)  # evaluation.every: 2
    assert sorted(evaluated(project)) == [
        "base.evaluate_policy",
        "iter_00000.evaluate_policy", "iter_00000.validate_policy",
        "iter_00002.validate_policy",
        "iter_00004.validate_policy",
        "iter_00005.evaluate_policy", "iter_00005.validate_policy",
    ]  # fmt: skip


def test_the_engine_outlives_the_runs(project):
    run(project, iterations=3)
    assert project.engine.made <= 1


def test_a_finished_experiment_is_left_alone(project):
    run(project, iterations=1)
    assert run(project, iterations=1).ran == []
    assert project.calls == []


@pytest.mark.slow  # tests/faults does it with real nodes, too
@pytest.mark.parametrize(
    "crash",
    ["/prepare_tasks", "iter_00000/train_sft", "iter_00002/generate_rollouts",
     "iter_00002/compute_advantages", "iter_00002/update_policy", "iter_00003/evaluate_policy",
     "/build_report"],
)  # fmt: skip
def test_p37_an_interrupted_experiment_ends_as_the_undisturbed_one(project, crash):
    project.fail_at.add(crash)
    with pytest.raises(RuntimeError, match="told to fail"):
        run(project, iterations=3)
    failed = list(project.calls)
    project.fail_at.clear()
    run(project, iterations=3)
    assert set(failed[:-1]).isdisjoint(project.calls)  # what was committed did not run again
    assert project.calls[0] == failed[-1]
    if not _ENDED:
        run_experiment(project.path, {"experiment": "undisturbed", "iterations": 3})
        _ENDED["hashes"] = hashes(project, "undisturbed")
    assert hashes(project, "x") == _ENDED["hashes"]


def test_p37_more_iterations_continue(project):
    run_experiment(project.path, {"experiment": "at_once", "iterations": 4})
    run(project, iterations=2)
    outcome = run(project, iterations=4)
    assert {name.partition(".")[0] for name in outcome.ran} == {
        "iter_00003", "iter_00004", "build_report",
    }  # fmt: skip
    mine, theirs = hashes(project, "x"), hashes(project, "at_once")
    assert {name: mine[name] for name in theirs} == theirs  # mine also evaluated iteration 2


@pytest.mark.slow
def test_a_report_that_missed_the_last_iterations_is_made_again(project):
    run(project, iterations=1)
    project.fail_at.add("/build_report")
    with pytest.raises(RuntimeError):
        run(project, iterations=2)
    project.fail_at.clear()
    assert run(project, iterations=2).ran == ["build_report"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["report.html", "learning_curves.png", "summary.json"])
def test_a_torn_report_is_made_again(project, name):
    run(project, iterations=1)
    path = project.path / "data/08_reporting/x" / name
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert run(project, iterations=1).ran == ["build_report"]
    assert path.read_bytes() == whole
    path.unlink()
    assert run(project, iterations=1).ran == ["build_report"]


def test_what_depends_on_a_node_that_runs_again_runs_again_as_far_as_bytes_change(project):
    run(project, iterations=2)
    for path in (project.path / "data/08_reporting/x/manifests/iter_00001").glob("score_rewards/*"):
        path.unlink()
    ran = run(project, iterations=2).ran
    assert set(ran) == {
        "iter_00001.score_rewards", "iter_00001.compute_advantages",
        "iter_00001.build_preferences", "iter_00001.update_policy", "build_report",
    }  # fmt: skip
    # The new policy has the bytes of the old one, so the second iteration still stands.
    assert run(project, iterations=2).ran == []
    assert "iter_00000.train_sft" not in ran


@pytest.mark.slow
def test_another_seed_gives_other_results(project):
    run(project, iterations=1)
    run_experiment(project.path, {"experiment": "y", "iterations": 1, "seed": 1})
    assert hashes(project, "x")["iter_00001.policy"] != hashes(project, "y")["iter_00001.policy"]


def test_it_stops_when_the_validation_split_is_solved(project):
    # The toy's exact match is iteration / 10, validated every second iteration.
    outcome = run(project, iterations=8, stop={"exact_match": 0.3})
    assert outcome.stopped_at == 4
    assert "iter_00004.evaluate_policy" in project.calls
    assert not any(call.startswith("iter_00005") for call in project.calls)
    again = run(project, iterations=8, stop={"exact_match": 0.3})
    assert again.ran == []
    assert again.stopped_at == 4


def test_overrides_reach_the_nodes_and_leave_the_rest_of_the_group(project):
    run(project, iterations=1, rollout={"temperature": 0.5})
    store = ManifestStore(project.path / "data/08_reporting/x/manifests")
    read = store.newest("iter_00001.generate_rollouts").parameters["params:rollout"]
    assert read == {"temperature": 0.5, "top_p": 1.0}


def test_nodes_read_the_parameters_that_the_manifest_records(project):
    run(project, iterations=0)  # conf/ of the toy project has empty groups
    store = ManifestStore(project.path / "data/08_reporting/x/manifests")
    recorded = store.newest("build_report").parameters["parameters"]
    assert recorded["rollout"] == {"temperature": 1.0, "top_p": 1.0}
    summary = json.loads((project.path / "data/08_reporting/x/summary.json").read_text())
    assert summary["temperature"] == 1.0


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"rolout": {"temperature": 1}}, "unknown parameter 'rolout'. Did you mean 'rollout'?"),
        ({"rollout": {"temprature": 1}}, "'rollout.temprature'. Did you mean 'temperature'?"),
        ({"rollout": {"temperature": "hot"}}, "parameter 'rollout.temperature'"),
        ({"iterations": -1}, "parameter 'iterations'"),
        ({"experiment": "a/b"}, "parameter 'experiment'"),
    ],
)
def test_bad_parameters_stop_it_before_anything_runs(project, params, message):
    with pytest.raises(ParameterError) as caught:
        run(project, **params)
    assert message in str(caught.value)
    assert project.calls == []
    assert not (project.path / "data/08_reporting").exists()


def test_an_experiment_named_in_the_wrong_file_is_refused(project):
    (project.path / "conf/local/parameters.yml").write_text("experiment: elsewhere\n")
    with pytest.raises(ParameterError, match=r"set it in globals\.yml"):
        run_experiment(project.path, {})


def test_an_environment_can_name_the_experiment(project):
    (project.path / "conf/small").mkdir()
    (project.path / "conf/small/globals.yml").write_text("experiment: small\n")
    (project.path / "conf/small/parameters.yml").write_text("iterations: 1\n")
    catalog = project.path / "conf/local/catalog.yml"
    (project.path / "conf/small/catalog.yml").write_text(catalog.read_text())
    assert run_experiment(project.path, {}, env="small").experiment == "small"
    assert (project.path / "data/08_reporting/small/summary.json").is_file()


def test_a_plain_partial_run_after_the_experiment(project):
    run(project, iterations=2)
    project.calls.clear()
    Session(project.path, {"experiment": "x"}).run("iter_00002", ["iter_00002.compute_advantages"])
    assert project.calls == ["iter_00002.compute_advantages"]


def test_an_experiment_from_before_a_stage_had_all_its_results_goes_on(project, monkeypatch):
    """Its manifests do not name ``sampled_groups`` nor the reward that ``generate_rollouts`` reads
    now. What is committed stays; a stage that runs again says what is new."""
    import agent_r1.pipelines.iteration.pipeline as iteration
    from agent_r1.experiments.rerun import Request, Rerunner

    def without_sampled_groups(name: str) -> Pipeline:
        (node,) = create_rollout(name).nodes
        *inputs, seed = (each for each in node.inputs if each != "params:reward")

        def generate(*values):
            return node.func(*values[:-1], {}, values[-1])[:2]

        outputs = ["rollouts", "rollout_timings"]
        return Pipeline([Node(generate, [*inputs, seed], outputs, name=node.name)])

    create_rollout = iteration.create_rollout
    with monkeypatch.context() as patch:
        patch.setattr(iteration, "create_rollout", without_sampled_groups)
        run(project, iterations=1)
    assert run(project, iterations=1).ran == []
    ran = run(project, iterations=2).ran
    assert "iter_00002.generate_rollouts" in ran
    assert "iter_00001.generate_rollouts" not in ran
    store = ManifestStore(project.path / "data/08_reporting/x/manifests")
    assert store.committed("iter_00001.sampled_groups") is None
    again = Rerunner(opened(project.path, "x")).rerun(Request("generate_rollouts", "1"))
    assert again.same_bytes
    assert "iter_00001.sampled_groups: new (sha256 " in "\n".join(rerun_lines(again))
    assert store.committed("iter_00001.sampled_groups").version == again.version
