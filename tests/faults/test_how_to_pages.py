"""What pages do with experiments is done: the how-to pages train, the page on audits finds."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pandas as pd
import pytest
import yaml

from agent_r1.lineage.branches import flatten
from tests.support.pages import DOCS, blocks, commands, text_of, write_program
from tests.support.small_experiment import PARAMETERS, SmallExperiments, environment

pytestmark = pytest.mark.slow

ENVIRONMENT = DOCS / "add_an_environment.md"
REWARD_TERM = DOCS / "add_a_reward_term.md"
_VALUES = flatten(yaml.safe_load(PARAMETERS)).items()
SHORT = ",".join(f"{name}={json.dumps(value)}" for name, value in _VALUES)


@pytest.fixture(scope="module")
def hunted(experiments: SmallExperiments):
    """The page's benchmark after its ``kedro run``, on short settings."""
    conf = experiments.project / "conf/treasure"
    conf.mkdir()
    name, parameters = blocks(text_of(ENVIRONMENT), "yaml")
    (conf / "globals.yml").write_text(name, encoding="utf-8")
    (conf / "parameters.yml").write_text(parameters, encoding="utf-8")
    program = write_program(ENVIRONMENT, experiments.project / "src")
    assert "kedro run --env treasure" in commands(text_of(ENVIRONMENT))
    ended = experiments.command("run", "--params", SHORT, env="treasure")
    assert ended.returncode == 0, ended.output
    yield experiments
    program.unlink()
    shutil.rmtree(conf)


def table(experiments: SmallExperiments, name: str, aside: bool = False) -> pd.DataFrame:
    """The committed table, or the one that a rerun left aside."""
    store = experiments.store("treasure")
    left = [m.output(name) for _, m in store.all() if m.aside and m.output(name)]
    record = left[-1] if aside else store.committed(name).record
    return pd.read_parquet(experiments.project / record.path, partitioning=None)


def test_the_environment_is_trained_on(hunted):
    played = table(hunted, "iter_00002.rollouts")
    assert set(played["environment"]) == {"treasure:TreasureEnv"}
    assert "infrastructure" not in set(played["end_reason"])
    rewards = table(hunted, "iter_00002.rewards")
    assert rewards["reward"].notna().all()
    assert {name for text in rewards["components"] for name in json.loads(text)} == {"outcome"}
    shown = table(hunted, "demonstrations")
    assert 1.0 in set(shown["env_reward"])
    assert set(table(hunted, "tasks")["split"]) == {
        "train", "validation", "in_domain", "held_out", "ood",
    }  # fmt: skip
    for command in (["verify"], ["replay", "--iteration", "1"]):
        done = hunted.command(*command, env="treasure")
        assert done.returncode == 0, done.output


def test_the_reward_term_scores_an_iteration_again(hunted):
    program = write_program(REWARD_TERM, hunted.project / "src")
    (command,) = (line for line in commands(text_of(REWARD_TERM)) if "rerun" in line)
    # Nobody says please after so little training; a letter is in some turns.
    letter = "reward.terms.politeness:TERM.word=e"
    done = hunted.command(*f"{command},{letter}".split()[1:], env="treasure")
    program.unlink()
    assert done.returncode == 0, done.output
    said = table(hunted, "iter_00001.rollouts")
    said["value"] = [0.05 * ("e" in text.lower()) for text in said["action_text"]]
    scored = table(hunted, "iter_00001.rewards", aside=True)
    scored["value"] = [json.loads(c)["politeness:TERM"] for c in scored["components"]]
    paid = scored.groupby("trajectory_id")["value"].sum()
    assert paid.max() > 0
    pd.testing.assert_series_equal(
        paid, said.groupby("trajectory_id")["value"].sum().clip(upper=0.1)
    )
    kept = table(hunted, "iter_00001.rewards")
    assert not any("politeness" in text for text in kept["components"])


def test_the_page_on_audits_finds_a_wrong_answer_and_who_gave_it(experiments, undisturbed):
    (program,) = blocks(text_of(DOCS / "audit.md"), "python")
    here = program.replace("/default/", "/undisturbed/").replace("iter_00018", "iter_00002")
    done = subprocess.run(
        [sys.executable, "-c", here],
        cwd=experiments.project, env=environment(), capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "exact match: 0.0\n" in done.stdout
    assert "('action_text', " in done.stdout
    policy = experiments.store("undisturbed").committed("iter_00002.policy").record.sha256
    assert done.stdout.splitlines()[-1] == f"policy_version: {policy}"
