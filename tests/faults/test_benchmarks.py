"""The same ``kedro run`` trains on each benchmark: two keys say which, and what is rewarded."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from agent_r1.schemas import SPLITS
from tests.support.small_experiment import SmallExperiments

pytestmark = pytest.mark.slow


def trained(experiments: SmallExperiments, name: str, *params: str) -> SmallExperiments:
    """An experiment that ran to its end with these parameters."""
    ended = experiments.command("run", "--params", ",".join((f"experiment={name}", *params)))
    assert ended.returncode == 0, ended.output
    verified = experiments.command("verify", "--experiment", name)
    assert verified.returncode == 0, verified.output
    return experiments


def table(experiments: SmallExperiments, experiment: str, name: str) -> pd.DataFrame:
    record = experiments.store(experiment).committed(name).record
    return pd.read_parquet(experiments.project / record.path, partitioning=None)


def check(experiments: SmallExperiments, name: str, environment: str) -> None:
    """Both iterations acted in the environment, and were scored and learned from."""
    for iteration in ("iter_00001", "iter_00002"):
        rollouts = table(experiments, name, f"{iteration}.rollouts")
        assert set(rollouts["environment"]) == {environment}
        assert "infrastructure" not in set(rollouts["end_reason"])
        rewards = table(experiments, name, f"{iteration}.rewards")
        assert rewards["reward"].notna().all()
        assert rewards["correct"].notna().all()
    policies = [
        experiments.store(name).committed(f"iter_0000{i}.policy").record.sha256 for i in range(3)
    ]
    assert len(set(policies)) == 3
    replayed = experiments.command("replay", "--iteration", "1", "--experiment", name)
    assert replayed.returncode == 0, replayed.output


def test_questions_over_the_knowledge_base(experiments, undisturbed):
    check(experiments, "undisturbed", "multihop_qa")


def test_math(experiments):
    trained(experiments, "math", "environment.name=math", "reward.terms.outcome.metric=numeric")
    check(experiments, "math", "math")
    solved = table(experiments, "math", "demonstrations")
    assert "calculate" in {
        json.loads(calls)[0]["name"] for calls in solved["tool_calls"] if calls != "[]"
    }


def test_code(experiments):
    trained(experiments, "code", "environment.name=code", "reward.terms.outcome.metric=environment")
    check(experiments, "code", "code")
    solved = table(experiments, "code", "demonstrations")
    assert 1.0 in set(solved["env_reward"])


def test_text_games(experiments):
    pytest.importorskip("textworld")
    source = "tasks.sources.textworld"
    small = (f"{source}.{size}" for size in ("rooms=2", "objects=2", "quest_length=3"))
    few = (f"{source}.max_games.{split}={4 if split == 'train' else 1}" for split in SPLITS)
    trained(
        experiments,
        "textworld",
        "environment.name=textworld",
        "environment.options.reward=progress",
        "reward.terms.outcome.metric=environment",
        "rollout.max_context_tokens=1024",
        f"{source}.ood_quest_length=4",
        *small,
        *few,
    )
    check(experiments, "textworld", "textworld")
    assert len(table(experiments, "textworld", "tasks")) == 8
    solved = table(experiments, "textworld", "demonstrations")
    assert "environment" in set(solved["end_reason"])
    games = experiments.project / "data/03_primary/textworld_games"
    story, logic = min(games.glob("*.z8")), max(games.glob("*.json"))
    changed, gone = story.read_bytes(), logic.read_bytes()
    story.write_bytes(changed[:-1] + bytes([changed[-1] ^ 1]))
    logic.unlink()
    verified = experiments.command("verify", "--experiment", "textworld")
    story.write_bytes(changed)
    logic.write_bytes(gone)
    assert verified.returncode == 1
    assert f"{story.name}: has changed" in verified.output
    assert f"{logic.name}: is gone" in verified.output


def test_questions_in_a_file(experiments, tmp_path):
    rows = [
        {
            "_id": str(number),
            "question": f"Who built bridge {number}?",
            "answer": f"Ann {number}",
            "type": "bridge",
            "level": "easy",
            "supporting_facts": [[f"Bridge {number}", 0]],
            "context": [[f"Bridge {number}", [f"Built by Ann {number}."]], ["Oak", ["A tree."]]],
        }
        for number in range(60)
    ]
    path = tmp_path / "hotpot.json"
    path.write_text(json.dumps(rows))
    files = (f"tasks.sources.hotpotqa.files.{split}={path}" for split in SPLITS)
    trained(experiments, "hotpotqa", *files)
    check(experiments, "hotpotqa", "multihop_qa")
    inputs = experiments.store("hotpotqa").newest("prepare_tasks").inputs
    assert str(path) in {record.path for record in inputs}


def test_a_mixture(experiments):
    trained(
        experiments,
        "mixture",
        "tasks.sources.knowledge_base.share=1",
        "tasks.sources.word_problems.share=1",
        "reward.environments.math.terms.outcome.metric=numeric",
        "rollout.tasks_per_iteration=8",
    )
    tasks = table(experiments, "mixture", "tasks")
    train = tasks[tasks["split"] == "train"]
    assert train["environment"].value_counts().to_dict() == {"multihop_qa": 20, "math": 20}
    played = table(experiments, "mixture", "iter_00001.rollouts")
    assert set(played["environment"]) == {"multihop_qa", "math"}
