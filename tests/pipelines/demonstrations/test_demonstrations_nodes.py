import json

import pandas as pd
import pytest

from agent_r1 import tables
from agent_r1.chat import ChatParameters, load_tokenizer, make_format
from agent_r1.parameters import ParameterError
from agent_r1.pipelines.report.exposure import measure_exposure
from agent_r1.pipelines.reward.nodes import score_rewards
from agent_r1.tasks.demonstrations import DemonstrationError
from agent_r1.tasks.knowledge_base import FOLDER
from agent_r1.tasks.multihop import build_tasks
from agent_r1.tasks.parameters import TasksParameters
from tests.support import REPOSITORY
from tests.support.nodes import build_demonstrations

ROLLOUT = {"max_tokens_per_step": 200, "max_context_tokens": 4000}
COUNT = 120


@pytest.fixture(scope="module")
def world():
    tables = (
        pd.read_parquet(REPOSITORY / FOLDER / f"{name}.parquet")
        for name in ("countries", "cities", "elements")
    )
    return build_tasks(*tables, TasksParameters())


@pytest.fixture(scope="module")
def demonstrate(world, policy_folder):
    def demonstrate(seed=0, **demonstrations):
        parameters = {"count": COUNT} | demonstrations
        return build_demonstrations(policy_folder, *world, parameters, {}, {}, ROLLOUT, seed)

    return demonstrate


@pytest.fixture(scope="module")
def perfect(demonstrate):
    return demonstrate(error_rate=0.0)


@pytest.fixture(scope="module")
def imperfect(demonstrate):
    return demonstrate(error_rate=0.5)


def solved(rollouts, tasks):
    rewards = score_rewards(rollouts, tasks, {})
    return rewards.drop_duplicates("trajectory_id")["correct"].astype(bool)


def test_they_are_rollouts_of_training_tasks(perfect, world):
    table = tables.conform(perfect, "rollouts", extra="error")
    tasks, _ = world
    split = dict(zip(tasks["task_id"], tasks["split"], strict=True))
    assert {split[task] for task in table["task_id"]} == {"train"}
    assert table["trajectory_id"].nunique() == COUNT
    assert set(table["policy_version"]) == {"scripted"}
    assert all(name.startswith("demonstrations/") for name in table["trajectory_id"])


def test_nothing_was_sampled_so_every_logprob_is_zero(perfect):
    tokens = tables.ragged(perfect["action_token_ids"])
    logprobs = tables.ragged(perfect["action_logprobs"])
    assert (tokens.lengths == logprobs.lengths).all()
    assert not logprobs.values.any()


def test_a_perfect_agent_reads_each_fact_off_the_page_it_asked_for(perfect, world):
    tasks, _ = world
    assert solved(perfect, tasks).all()
    payload = dict(zip(tasks["task_id"], map(json.loads, tasks["payload"]), strict=True))
    for _, steps in perfect.groupby("trajectory_id"):
        chain = payload[steps["task_id"].iloc[0]]["chain"]
        assert len(steps) == len(chain) + 1
        for hop, observation in zip(chain, steps["observation"], strict=False):
            assert observation.startswith(hop["title"] + "\n")
            assert f"{hop['label']}: {hop['value']}" in observation.split("\n")


def test_every_call_succeeds_and_every_episode_ends_with_an_answer(imperfect):
    results = [result for text in imperfect["tool_results"] for result in json.loads(text)]
    assert {result["status"] for result in results} == {"ok"}
    last = imperfect.groupby("trajectory_id").last()
    assert set(last["end_reason"]) == {"answered"}
    assert last["terminated"].all()


def test_half_of_the_imperfect_episodes_are_wrong(imperfect, world):
    assert solved(imperfect, world[0]).mean() == pytest.approx(0.5, abs=0.12)


def test_no_held_out_or_validation_entity_is_ever_asked_for_or_answered(demonstrate, world):
    wrong = demonstrate(error_rate=1.0, count=400)
    for split in ("held_out", "validation"):
        rows = measure_exposure(world[0], wrong, split)
        assert rows
        assert sum(row.in_demonstrations + row.in_training for row in rows) == 0


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(demonstrate, imperfect):
    pd.testing.assert_frame_equal(demonstrate(error_rate=0.5), imperfect)
    other = demonstrate(seed=1, error_rate=0.5)
    assert set(other["trajectory_id"]) != set(imperfect["trajectory_id"])


def test_actions_read_back_as_what_was_scripted(imperfect, policy_folder):
    format_ = make_format(ChatParameters(), load_tokenizer(policy_folder))
    for row in imperfect.head(20).to_dict("records"):
        ids = list(row["action_token_ids"])
        assert ids[-1] in format_.stop_token_ids
        assert format_.parse(ids, "stop").type == row["action_type"]


def test_an_action_that_is_too_long_for_the_rollout_says_so(world, policy_folder):
    message = r"more than the limit of 5: increase rollout\.max_tokens_per_step \(5\)"
    with pytest.raises(DemonstrationError, match=message):
        build_demonstrations(
            policy_folder, *world, {"count": 1}, {}, {}, ROLLOUT | {"max_tokens_per_step": 5}, 0
        )


def test_no_demonstrations_are_an_empty_table_of_the_same_schema(demonstrate, perfect):
    none = demonstrate(count=0)
    assert len(none) == 0
    assert dict(none.dtypes) == dict(perfect.dtypes)


def test_a_format_that_cannot_write_the_script_says_so(world, policy_folder):
    with pytest.raises(DemonstrationError) as caught:
        build_demonstrations(
            policy_folder, *world, {"count": 1}, {}, {"format": "code"}, ROLLOUT, 0
        )
    message = str(caught.value)
    assert 'the code format cannot express tool_call \'search({"query": ' in message
    assert message.endswith("set demonstrations.count to 0 and sft.enabled to false")


def test_prompts_without_room_say_so(world, policy_folder):
    limits = {"on_overflow": "window", "max_context_tokens": 70, "max_tokens_per_step": 64}
    with pytest.raises(ParameterError, match="no prompt fits into the context: the shortest has"):
        build_demonstrations(policy_folder, *world, {"count": 2}, {}, {}, limits, 0)
