import json
from html.parser import HTMLParser

import pandas as pd
import pytest

from agent_r1 import tables
from agent_r1.datasets import History
from agent_r1.pipelines.report.exposure import measure_exposure
from agent_r1.pipelines.report.nodes import build_report

PARAMETERS = {
    "experiment": "first<try>",
    "seed": 7,
    "environment": {"name": "multihop_qa"},
    "advantage": {"estimator": "grpo"},
}


def evaluation(exact_match, splits=("in_domain", "held_out", "ood"), greedy=0.5):
    rows = [
        {
            "split": split,
            "family": family,
            "n": 200,
            "exact_match": exact_match,
            "greedy_exact_match": greedy,
            "f1": 0.25,
            "mean_steps": 2.5,
            "tool_error_rate": 0.125,
            "mean_return": 0.75,
        }
        for split in splits
        for family in (None, "city.country")
    ]
    return tables.from_rows(rows, "evaluation")


def rewards(iteration, *values):
    rows = [
        {
            "trajectory_id": f"{iteration}/t{number}/0",
            "step_index": step,
            "reward": value,
            "components": "{}",
            "trajectory_reward": value,
            "correct": None if value is None else value >= 1,
        }
        for number, value in enumerate(values)
        for step in range(2)
    ]
    return tables.from_rows(rows, "rewards")


def metrics(**values):
    rows = [
        {"step": step, "metric": name, "value": value}
        for name, by_step in values.items()
        for step, value in enumerate(by_step)
    ]
    return tables.from_rows(rows, "metrics")


def task(task_id, split, *entities):
    return {
        "task_id": task_id,
        "environment": "multihop_qa",
        "split": split,
        "family": "city.country",
        "prompt": "?",
        "answers": ["x"],
        "hops": 1,
        "payload": json.dumps({"entities": entities}),
    }


TASKS = tables.from_rows(
    [
        task("a", "train", "Lyon", "France"),
        task("b", "held_out", "Oslo", "Norway"),
        task("c", "held_out", "Bergen", "Norway"),
    ],
    "tasks",
)


def demonstrations(*turns):
    """A turn per (query of a tool call, text)."""
    calls = [[{"name": "search", "arguments": {"query": q}}] if q else [] for q, _ in turns]
    return pd.DataFrame(
        {"action_text": [text for _, text in turns], "tool_calls": [json.dumps(c) for c in calls]}
    )


@pytest.fixture
def history():
    return History(
        tables={
            "base.evaluation": evaluation(0.0),
            "iter_00000.evaluation": evaluation(0.25),
            "iter_00000.validation": evaluation(0.25, ["validation"]),
            "iter_00000.update_metrics": metrics(loss=[1.0]),
            "iter_00001.rewards": rewards("iter_00001", 1.0, 0.0, None),
            "iter_00001.update_metrics": metrics(reference_kl=[0.0, 0.5], entropy=[1.0, 1.0]),
            "iter_00002.rewards": rewards("iter_00002", 1.0, 1.0),
            "iter_00002.update_metrics": metrics(reference_kl=[1.0]),
            "iter_00002.evaluation": evaluation(0.75),
        },
        node_runs=pd.DataFrame(
            {
                "iteration": ["iter_00001", "iter_00002", "iter_00002"],
                "node": ["update_policy", "update_policy", "generate_rollouts"],
                "seconds": [1.5, 2.5, 6.0],
            }
        ),
    )


def report(history, tasks=TASKS, demos=None):
    demos = demonstrations() if demos is None else demos
    return build_report(history, tasks, demos, PARAMETERS)


def test_the_summary_has_exactly_what_is_specified(history):
    _, _, summary = report(history)
    cell = {
        "n": 200,
        "exact_match": 0.75,
        "greedy_exact_match": 0.5,
        "f1": 0.25,
        "mean_steps": 2.5,
        "tool_error_rate": 0.125,
        "mean_return": 0.75,
    }
    assert summary == {
        "experiment": "first<try>",
        "iterations": 2,
        "wall_seconds": 10.0,
        "evaluations": {
            policy: {
                split: cell | {"exact_match": value} for split in ("in_domain", "held_out", "ood")
            }
            for policy, value in (("base", 0.0), ("sft", 0.25), ("rl", 0.75))
        },
    }


def test_p41_the_summary_is_strict_json_of_plain_numbers(history):
    _, _, summary = report(history)
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


def test_a_metric_that_was_not_measured_is_null(history):
    history.tables["base.evaluation"] = evaluation(0.0, greedy=None)
    _, page, summary = report(history)
    assert summary["evaluations"]["base"]["held_out"]["greedy_exact_match"] is None
    assert "nan" not in page.lower().replace("financ", "")


def test_the_last_evaluated_iteration_is_the_rl_policy(history):
    history.tables["iter_00010.evaluation"] = evaluation(0.9)
    _, _, summary = report(history)
    assert summary["evaluations"]["rl"]["held_out"]["exact_match"] == pytest.approx(0.9)


def test_curves_show_the_committed_numbers(history):
    figure, _, _ = report(history)
    reward, exact, drift = figure.axes
    lines = {line.get_label(): line.get_xydata().tolist() for line in reward.lines}
    assert lines["mean reward"] == [[1, 0.5], [2, 1.0]]  # the unscored trajectory is no zero
    assert lines["share correct"] == [[1, 0.5], [2, 1.0]]
    lines = {line.get_label(): line.get_xydata().tolist() for line in exact.lines}
    assert lines["validation, sampled"] == [[0, 0.25]]
    assert lines["held out, RL: 0.75"] == [[2, 0.75]]
    lines = {line.get_label(): line.get_xydata().tolist() for line in drift.lines}
    assert lines["KL to the reference"] == [[1, 0.25], [2, 1.0]]


class Page(HTMLParser):
    """Checks that tags are closed and nothing is loaded from elsewhere."""

    void = frozenset({"meta", "br", "link", "path", "use"})

    def __init__(self, text):
        super().__init__()
        self.open, self.loads, self.text = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.loads += [v for k, v in attrs if k in ("src", "href") and not v.startswith("#")]
        if tag not in self.void:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        if tag not in self.void:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data.strip())


def test_the_page_is_complete_and_self_contained(history):
    _, text, _ = report(history)
    page = Page(text)
    assert page.open == []
    assert page.loads == []
    assert "<script" not in text
    assert "first&lt;try&gt;" in text
    assert "first<try>" not in text
    assert "city → country" in page.text


def test_entities_are_not_mentioned_if_tasks_name_none(history):
    tasks = tables.from_rows([task("a", "train"), task("b", "held_out")], "tasks")
    _, text, _ = report(history, tasks)
    assert Page(text).open == []
    assert "entit" not in text.lower()
    assert "over SFT, held out" in text
    assert "tasks held out of training" in text
    assert "over SFT, entities never seen" in report(history)[1]


def test_the_page_and_the_figure_are_the_same_for_the_same_results(history):
    assert report(history)[1] == report(history)[1]


@pytest.mark.parametrize(
    "tables",
    [
        [],
        ["base.evaluation"],
        ["base.evaluation", "iter_00000.evaluation"],
        ["iter_00001.rewards", "iter_00001.update_metrics"],
    ],
)
def test_the_beginning_of_an_experiment_can_be_reported(history, tables):
    beginning = History(
        tables={name: history.tables[name] for name in tables},
        node_runs=history.node_runs.iloc[:0],
    )
    figure, text, summary = report(beginning)
    assert Page(text).open == []
    assert "rl" not in summary["evaluations"]
    assert len(figure.axes) == 3


def test_exposure_counts_held_out_entities_and_finds_none_of_them_in_training():
    (row,) = measure_exposure(TASKS, demonstrations(("Lyon", ""), ("", "<answer>France</answer>")))
    assert (row.family, row.questions, row.entities) == ("city.country", 2, 3)
    assert (row.in_training, row.in_demonstrations) == (0, 0)


def test_exposure_reports_a_leak_wherever_it_is():
    tasks = pd.concat([TASKS, tables.from_rows([task("d", "train", "Norway")], "tasks")])
    (row,) = measure_exposure(tasks, demonstrations(("Oslo", ""), ("", "<answer>Bergen</answer>")))
    assert (row.in_training, row.in_demonstrations) == (1, 2)


@pytest.mark.parametrize(
    "turn",
    [
        "country: Oslo\n<answer>France</answer>",
        "I see Lyon\nOslo\n<answer>France</answer>",
        "neighbours: France, Oslo\n<answer>France</answer>",
        "country: France\n<answer>Oslo</answer>",
    ],
)
def test_exposure_finds_what_a_thought_mentions(turn):
    (row,) = measure_exposure(TASKS, demonstrations(("", turn)))
    assert row.in_demonstrations == 1


def test_a_leak_is_shown_in_the_page(history):
    _, clean, _ = report(history)
    _, leaked, _ = report(history, demos=demonstrations(("Oslo", "")))
    assert 'class="leak"' not in clean
    assert '<td class="leak">1</td>' in leaked
