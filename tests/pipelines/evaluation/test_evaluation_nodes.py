import json

import pandas as pd
import pytest

from agent_r1 import tables
from agent_r1.chat import ChatParameters, load_tokenizer, make_format
from agent_r1.engines.scripted import ScriptedEngine
from agent_r1.mdp import Action, ActionType, ToolCall
from agent_r1.parameters import ParameterError
from agent_r1.pipelines.evaluation.nodes import (
    EvaluationParameters,
    evaluated_tasks,
    evaluation_requests,
)
from agent_r1.rewards import RewardParameters, rewards_table
from agent_r1.rollout import RolloutParameters, replay_trajectories
from agent_r1.storage.hashing import folder_sha256
from agent_r1.tables.differences import compare_tables
from tests.support.nodes import evaluate_policy

ROLLOUT = {"max_tokens_per_step": 200, "max_context_tokens": 2000, "max_steps": 3}


def task(number, split, family="city.country", answers=("Arland",)):
    return {
        "task_id": f"{split}{number}",
        "environment": "multihop_qa",
        "split": split,
        "family": family,
        "prompt": "What is the country of Aton?",
        "answers": list(answers),
        "hops": 1,
        "payload": json.dumps({"entities": ["Aton"]}),
    }


def table(*rows):
    return tables.from_rows(rows, "tasks")


def search(title, tool="search"):
    return Action(ActionType.TOOL_CALL, "", tool_calls=(ToolCall(tool, {"query": title}),))


def answer(text):
    return Action(ActionType.ANSWER, "", answer=text)


@pytest.fixture
def evaluate(policy_folder, documents):
    def evaluate(tasks, scripts, iteration="iter_00003", reward=None, **evaluation):
        format_ = make_format(ChatParameters(), load_tokenizer(policy_folder))
        engine = ScriptedEngine(
            {
                f"{iteration}/{name}": [format_.render_action(a) for a in actions]
                for name, actions in scripts.items()
            },
            version=folder_sha256(policy_folder),
        )
        return evaluate_policy(
            engine,
            policy_folder,
            tasks,
            documents,
            evaluation,
            ROLLOUT,
            {},
            {},
            reward or {},
            0,
            iteration=iteration,
        )

    return evaluate


def test_p40_a_policy_gets_the_scores_that_were_computed_by_hand(evaluate):
    tasks = table(task(0, "held_out"), task(1, "held_out", "country.capital", ["Aburg", "Burg A"]))
    scripts = {
        "held_out0/0": [search("Aton"), answer("the Arland.")],  # right, normalised
        "held_out0/1": [search("x", tool="find"), search("Aton"), answer("Arland Aton")],
        "held_out0/2": [answer("Arland")],  # greedy
        "held_out1/0": [search("Arland"), search("Arland"), search("Arland")],  # max_steps
        "held_out1/1": [search("Arland"), answer("burg a")],
        "held_out1/2": [answer("Bburg")],
    }
    reward = {"terms": {"outcome": {"weight": 2.0}}}
    evaluation, rollouts, rewards = evaluate(
        tasks, scripts, splits=["held_out"], samples=2, reward=reward
    )
    whole = evaluation[evaluation["family"].isna()].iloc[0]
    assert (whole["split"], whole["n"]) == ("held_out", 2)
    assert whole["exact_match"] == pytest.approx(2 / 4)
    assert whole["greedy_exact_match"] == pytest.approx(1 / 2)
    assert whole["f1"] == pytest.approx((1 + 2 / 3 + 0 + 1) / 4)
    assert whole["mean_steps"] == pytest.approx((2 + 3 + 3 + 2) / 4)
    assert whole["tool_error_rate"] == pytest.approx(1 / 7)
    assert whole["mean_return"] == pytest.approx((2 + 0 + 0 + 2) / 4)
    by_family = evaluation.set_index("family")["exact_match"]
    assert by_family["city.country"] == pytest.approx(1 / 2)
    assert by_family["country.capital"] == pytest.approx(1 / 2)
    assert len(rollouts) == len(rewards) == 2 + 3 + 1 + 3 + 2 + 1
    tables.conform(evaluation, "evaluation", extra="error")
    tables.conform(rollouts, "rollouts", extra="error")
    tables.conform(rewards, "rewards", extra="error")


def test_greedy_attempts_stand_last_with_temperature_zero(evaluate):
    tasks = table(task(0, "ood"))
    scripts = {f"ood0/{i}": [answer("Arland")] for i in range(3)}
    _, rollouts, _ = evaluate(tasks, scripts, splits=["ood"], samples=2)
    assert rollouts["temperature"].tolist() == [1.0, 1.0, 0.0]
    assert rollouts["sample_index"].tolist() == [0, 1, 2]


def test_a_replay_finds_what_was_recorded_and_its_rewards(evaluate, policy_folder, documents):
    tasks = table(task(0, "ood"), task(1, "ood"))
    scripts = {f"ood{t}/{i}": [search("Aton"), answer("Arland")] for t in range(2) for i in (0, 1)}
    _, rollouts, rewards = evaluate(tasks, scripts, splits=["ood"], samples=1)
    evaluation = EvaluationParameters(splits=("ood",), samples=1)
    chosen, limits = evaluated_tasks(tasks, evaluation), RolloutParameters(**ROLLOUT)
    wanted = evaluation_requests(chosen, evaluation, limits, 0, "iter_00003")
    found = replay_trajectories(rollouts, wanted, documents, policy_folder, limits, {}, {})
    assert found.differences == []
    again = rewards_table(found.rollouts, chosen, RewardParameters())
    assert compare_tables(rewards, again, "rewards") == []
    forged = rewards.assign(correct=[True, True, False, True] * 2)
    assert [str(one) for one in compare_tables(forged, again, "rewards")] == [
        f"iter_00003/ood{t}/1, step 0, correct: recorded False, replayed True" for t in range(2)
    ]


def test_p39_all_seeds_differ(evaluate):
    tasks = table(task(0, "ood"), task(1, "ood"))
    scripts = {f"ood{t}/{i}": [answer("Arland")] for t in range(2) for i in range(5)}
    _, rollouts, _ = evaluate(tasks, scripts, splits=["ood"])
    assert rollouts["seed"].is_unique


def test_without_greedy_attempts_there_is_no_greedy_score(evaluate):
    scripts = {"ood0/0": [answer("Arland")]}
    evaluation, rollouts, _ = evaluate(
        table(task(0, "ood")), scripts, splits=["ood"], samples=1, greedy=False
    )
    assert len(rollouts) == 1
    assert evaluation["greedy_exact_match"].isna().all()
    assert evaluation["exact_match"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("metric", "found"), [("numeric", [0.0, 0.0]), ("exact_match", [1.0, 1.0])]
)
def test_p40_the_reward_says_how_answers_are_compared(evaluate, metric, found):
    """Texts without their punctuation: "25" is an exact match of "2.5"."""
    evaluation, _, _ = evaluate(
        table(task(0, "ood", answers=("2.5",))),
        {"ood0/0": [answer("25")]},
        reward={"environments": {"multihop_qa": {"terms": {"outcome": {"metric": metric}}}}},
        splits=["ood"],
        samples=1,
        greedy=False,
    )
    assert evaluation["exact_match"].tolist() == evaluation["f1"].tolist() == found


def test_tasks_are_chosen_families_in_turn_and_never_by_chance():
    rows = [task(n, "held_out", "a") for n in range(9)] + [
        task(n, "held_out", "b") for n in range(90, 92)
    ]
    tasks = table(*rows, *(task(n, "validation") for n in range(9)))
    parameters = EvaluationParameters(
        splits=("held_out", "validation"), max_tasks_per_split=5, validation_tasks=3
    )
    chosen = evaluated_tasks(tasks, parameters)
    assert chosen["task_id"].tolist() == [
        *("held_out0", "held_out90", "held_out1", "held_out91", "held_out2"),
        *("validation0", "validation1", "validation2"),
    ]


def test_a_split_without_tasks_is_an_error_and_not_a_zero():
    with pytest.raises(
        ValueError, match="names 'ood', which has no tasks; splits with tasks: held_out"
    ):
        evaluated_tasks(table(task(0, "held_out")), EvaluationParameters(splits=("ood",)))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"splits": ["heldout"]}, "Did you mean 'held_out'"),
        ({"splits": []}, "at least one split"),
        ({"splits": ["ood", "ood"]}, "no split twice"),
        ({"sampels": 4}, "Did you mean 'samples'"),
        ({"samples": 0}, r"evaluation\.samples"),
    ],
)
def test_bad_parameters_are_explained(values, message):
    with pytest.raises(ParameterError, match=message):
        EvaluationParameters.read(values, "evaluation")


def test_the_order_of_the_tasks_table_within_a_family_decides(evaluate):
    tasks = pd.concat([table(task(1, "ood")), table(task(0, "ood"))])
    parameters = EvaluationParameters(splits=("ood",), max_tasks_per_split=1)
    assert evaluated_tasks(tasks, parameters)["task_id"].tolist() == ["ood1"]


def test_what_the_infrastructure_ended_counts_for_nothing(evaluate):
    tasks = table(task(0, "ood"), task(1, "ood") | {"payload": "no JSON"})
    scripts = {"ood0/0": [search("Aton"), answer("Arland")], "ood1/0": [search("Aton")]}
    evaluation, rollouts, rewards = evaluate(
        tasks, scripts, splits=["ood"], samples=1, greedy=False
    )
    assert set(rollouts["end_reason"].dropna()) == {"answered", "infrastructure"}
    assert rewards["trajectory_reward"].isna().sum() == 1
    assert evaluation["n"].tolist() == [2, 2]
    assert evaluation["exact_match"].tolist() == [1.0, 1.0]
