"""What users get wrong, and what each of these mistakes is answered with.

Every answer is one message of at most `MOST_LINES` lines that names what is wrong, where, and what
to change or to type next; never a traceback. The commands run as a user types them, with the real
pipelines, on a small experiment ``x`` that ran to its end.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from agent_r1.lineage.lock import locked
from tests.support.broken_projects import (
    Break,
    append,
    break_project,
    delete,
    edit,
    file_in_place_of,
)
from tests.support.forked_runs import ForkedRuns
from tests.support.small_experiment import (
    PARAMETERS,
    SmallExperiments,
    environment,
    make_project,
)

MOST_LINES = 12
_FAULTS = "--env faults"
_NEW = f"run {_FAULTS} --params experiment=y"
_OF_X = f"{_FAULTS} --experiment x"
_PART = f"run {_FAULTS} --params experiment=x --pipelines iter_00001"
_LONG = "a" * 300
_REWARDS = "data/04_feature/x/iter_00001/rewards.parquet/*/rewards.parquet"
_MANIFEST = "data/08_reporting/x/manifests/iter_00001/score_rewards/*.json"
_BRANCH = "data/08_reporting/x/branches/*.json"


class Mistake(NamedTuple):
    """A mistake, and what its answer must hold."""

    command: str
    """What is typed after ``kedro``."""
    fragments: tuple[str, ...]
    """Texts of the answer: what is wrong, where, and the remedy."""
    broken: Break | None = None
    """What was done to the project before."""
    code: int = 1
    """Exit code; 2 if click refuses the command itself."""


def _new(parameters: str, *fragments: str) -> Mistake:
    """A new experiment with these ``--params``."""
    return Mistake(f"{_NEW},{parameters}", fragments)


def _conf(env: str, *fragments: str) -> Mistake:
    """A new experiment with a broken configuration."""
    return Mistake(f"run --env {env} --params experiment={env}", fragments)


PARAMETERS_OF_CONF = {
    "unknown key": _new("update.learnin_rate=1", "'update.learnin_rate'", "'learning_rate'?"),
    "misspelt group": _new("updaet.learning_rate=1", "'updaet'", "Did you mean 'update'?"),
    "text for a number": _new("update.learning_rate=fast", "'update.learning_rate'", "number"),
    "no value": _new("update.learning_rate=", "'update.learning_rate'", "number"),
    "a word for a group": _new("update.critic=own", "'update.critic'", "a group of keys"),
    "fraction for an integer": _new("iterations=1.5", "'iterations'", "integer"),
    "negative iterations": _new("iterations=-1", "'iterations'", "greater than or equal to 0"),
    "threshold above 1": _new("stop.exact_match=2", "'stop.exact_match'", "less than or equal"),
    "unknown algorithm": _new("algorithm=gpro", "no algorithm 'gpro'", "grpo"),
    "unknown estimator": _new("advantage.estimator=gea", "'gea'", "Did you mean 'gae'?"),
    "unknown objective": _new("update.objective=ppo", "'ppo'", "ppo_clip"),
    "unknown chat format": _new("chat.format=hremes", "'hremes'", "Did you mean 'hermes'?"),
    "unknown split": _new("evaluation.splits=[test]", "'test'", "held_out"),
    "unknown type of weights": _new("model.dtype=fp8", "'model.dtype'", "'bfloat16'"),
    "estimator without a critic": _new(
        "advantage.estimator=gae",
        "without a critic",
        "set update.critic.backbone to own or shared, and logprobs.values to true",
    ),
    "critic without an estimator": _new(
        "update.critic.backbone=own,logprobs.values=true", "set advantage.estimator to one of gae"
    ),
    "KL without a reference": _new(
        "update.kl_coef=0.1,logprobs.reference=false", "set logprobs.reference to true"
    ),
    "groups of one": _new("rollout.group_size=1", "set rollout.group_size to 2 or more"),
    "no training tasks": _new("tasks.sizes.train=0", "tasks.sizes.train is 0: set it to 1 or more"),
    "unknown reward term": _conf("bad_term", "unknown reward term 'exact_match'", "outcome"),
    "unknown metric": _conf("bad_metric", "reward.terms.outcome.metric", "exact_match"),
    "unknown option": _conf("bad_option", "'environment.options.topk'", "'top_k'?"),
    "broken YAML": _conf("broken_yaml", "conf/broken_yaml/parameters.yml", "line 1"),
    "a key twice": _conf("repeated_key", "duplicate key update", "line 2"),
    "unknown global": _conf("no_global", "sede", "full_key: seed"),
    "unknown folder of conf/": _conf("nope", "conf/nope", "--env names a folder in conf/"),
    "name with a path": Mistake(
        f"run {_FAULTS} --params experiment=../../x", ("'experiment'", "letters, digits")
    ),
    "name of 300 letters": Mistake(
        f"run {_FAULTS} --params experiment={_LONG}", ("'experiment'", "at most 100 letters")
    ),
    "name of 300 letters to verify": Mistake(
        f"verify {_FAULTS} --experiment {_LONG}", ("'experiment'", "at most 100 letters")
    ),
    "other parameters": Mistake(
        f"run {_FAULTS} --params experiment=x,seed=5", ("seed: 0 -> 5", "--allow-changes")
    ),
}

WHAT_PARAMETERS_NAME = {
    "unknown environment": _new("environment.name=maths", "'maths'", "Did you mean 'math'?"),
    "own module missing": _new("environment.name=my_env:Env", "'my_env:Env'", "No module named"),
    "own module not Python": _new("environment.name=broken_env:Env", "src/broken_env.py, line 2"),
    "own module imports nothing": _new(
        "environment.name=unimportable_env:Env", "'unimportable_env:Env'", "'no_such_package'"
    ),
    "own class is another": _new(
        "environment.name=not_an_env:Env", "'not_an_env:Env' is not a subclass of BaseEnv"
    ),
    "own class missing": _new("environment.name=not_an_env:Enw", "no attribute 'Enw'"),
    "package of an extra missing": _new(
        "environment.name=gymnasium,reward.terms.outcome.metric=environment", "pip install"
    ),
    "model folder missing": _new("model.path=data/nope", "data/nope", "set model.path"),
    "model without config": _new("model.path=data/no_config", "no config.json", "set model.path"),
    "model without weights": _new("model.path=data/no_weights", "safetensors", "convert"),
    "model without tokenizer": _new("model.path=data/no_tokenizer", "no tokenizer", "copy"),
    "model with pickles": _new("model.path=data/pickled", "optimizer.bin", "convert the weights"),
    "no chat template": _new(
        "model.path=data/no_template", "no chat template: add chat_template.jinja"
    ),
    "unknown source": _conf("bad_source", "'hotpot_qa'", "Did you mean 'hotpotqa'?"),
    "unknown split of a file": _conf("bad_split", "'trian'", "Did you mean 'train'?"),
    "split without a file": _conf("one_split", "'validation'", "give it a file or a source"),
    "task file missing": _conf("missing_file", "data/01_raw/nope.json"),
    "malformed task": _conf("bad_row", "data/01_raw/bad_row.json", "row 1", "answer"),
    "task file is not JSON": _conf("not_json", "data/01_raw/not_json.json", "JSON"),
    "MCP server does not start": _conf("no_server", "'pages'", "environment.options.mcp.pages"),
    "MCP server without http": _conf("no_address", "an address begins with http://"),
    "sandbox missing": _conf("no_sandbox", "no program bwrap; install the package bubblewrap"),
    "unknown isolation": _conf("bad_sandbox", "unknown level 'jail'", "bubblewrap"),
    "template of a missing model": Mistake(f"check-template nope {_FAULTS}", ("nope",)),
}

SELECTIONS = {
    "unknown pipeline": Mistake(
        f"run {_FAULTS} --pipelines iteration_1", ("no pipeline 'iteration_1'", "iter_00000")
    ),
    "misspelt node": Mistake(
        f"{_PART} --nodes iter_00001.score_reward", ("--nodes", "iter_00001.score_rewards")
    ),
    "node without namespace": Mistake(
        f"{_PART} --nodes score_rewards", ("--nodes", "Did you mean iter_00001.score_rewards?")
    ),
    "from a misspelt node": Mistake(
        f"{_PART} --from-nodes score_rewards", ("--from-nodes", "iter_00001.score_rewards?")
    ),
    "node of another pipeline": Mistake(
        f"run {_FAULTS} --nodes iter_00002.score_rewards", ("Add --pipelines iter_00002",)
    ),
    "misspelt dataset": Mistake(
        f"{_PART} --to-outputs iter_00001.reward", ("--to-outputs", "iter_00001.rewards")
    ),
    "tag": Mistake(f"{_PART} --tags rewards", ("--tags", "It has none: leave --tags out")),
    "unknown namespace": Mistake(f"{_PART} --namespaces iter_1", ("--namespaces", "iter_00001")),
    "nothing selected": Mistake(
        f"{_PART} --from-nodes iter_00001.update_policy --to-nodes iter_00001.score_rewards",
        ("--from-nodes with --to-nodes selects no node",),
    ),
    "unknown runner": Mistake(f"{_PART} --runner Fast", ("'Fast'", "SequentialRunner")),
    "version of an output": Mistake(
        f"{_PART} --load-versions iter_00001.rewards:2020-01-01T00.00.00.000Z",
        ("makes 'iter_00001.rewards' itself", "--nodes"),
    ),
    "version that does not exist": Mistake(
        f"{_PART} --nodes iter_00001.compute_advantages "
        "--load-versions iter_00001.rewards:2020-01-01T00.00.00.000Z",
        ("version 2020-01-01T00.00.00.000Z of 'iter_00001.rewards'", "make it with: kedro run"),
    ),
    "inputs not made yet": Mistake(
        f"{_NEW} --pipelines iter_00001",
        ("'iter_00000.policy' is not yet committed", "make it with: kedro run --pipelines"),
    ),
    "changes with a selection": Mistake(
        f"{_PART} --allow-changes", ("--allow-changes is for the whole",), code=2
    ),
    "--params without a value": Mistake(
        f"run {_FAULTS} --params experiment", ("separated by `=`",), code=2
    ),
}

_RERUN = f"rerun score_rewards -i 1 {_OF_X}"
_CRITIC = "update.critic.backbone=own,logprobs.values=true,advantage.estimator=gae"

HISTORY = {
    "unknown stage": Mistake(f"rerun score_reward -i 1 {_OF_X}", ("'score_rewards'?",)),
    "stage without iteration": Mistake(f"rerun score_rewards {_OF_X}", ("see --iteration",)),
    "iteration that did not run": Mistake(
        f"rerun score_rewards -i 99 {_OF_X}",
        ("no iteration '99'", "base, 0, 1, 2", "--params experiment=x,iterations=99"),
    ),
    "iteration in words": Mistake(f"replay -i one {_OF_X}", ("'one'", "base, 0, 1, 2")),
    "experiment that did not run": Mistake(
        f"rerun score_rewards -i 1 {_FAULTS} --experiment xx",
        ("'xx' has not run here", "'x'?", "kedro run --params experiment=xx"),
    ),
    "verify a path": Mistake(f"verify {_FAULTS} --experiment ../x", ("'experiment'", "letters")),
    "two experiments": Mistake(f"{_RERUN} --params experiment=z", ("different",), code=2),
    "fork onto itself": Mistake(
        f"{_RERUN} --downstream fork --as x", ("an experiment 'x' already", "name another")
    ),
    "fork with blanks": Mistake(
        f"{_RERUN} --downstream fork --as 'a b'", ("'experiment'", "letters, digits")
    ),
    "--as without a fork": Mistake(f"{_RERUN} --as z", ("--downstream fork",), code=2),
    "rerun with an unknown key": Mistake(
        f"{_RERUN} --params reward.term=1", ("'reward.term'", "Did you mean 'terms'?")
    ),
    "critic of a table without values": Mistake(
        f"rerun update_policy -i 1 {_OF_X} --params {_CRITIC}",
        (
            "table 'logprobs' has no values",
            "kedro rerun compute_logprobs --downstream cascade",
            "Node: iter_00001.update_policy",
        ),
    ),
    "unknown dataset": Mistake(f"lineage reward -i 1 {_OF_X}", ("iter_00001.rewards",)),
    "unknown hash": Mistake(f"lineage deadbeef {_OF_X}", ("sha256 deadbeef",)),
    "stage not played": Mistake(
        f"replay -i 1 --stage validate_policy {_OF_X}", ("iter_00000 … iter_00002",)
    ),
}

DAMAGE = {
    "manifest edited": Mistake(
        f"lineage rewards -i 1 {_OF_X}", ("score_rewards", "it was edited"),
        edit(_MANIFEST, '"seed": 0', '"seed": 1'),
    ),
    "manifest cut": Mistake(
        f"lineage rewards -i 1 {_OF_X}", ("score_rewards",), append(_MANIFEST, "}")
    ),
    "branch edited": Mistake(
        f"run {_FAULTS} --params experiment=x", ("cannot read the branch",), append(_BRANCH, "}")
    ),
    "input deleted": Mistake(
        f"rerun compute_advantages -i 1 {_OF_X}", ("rewards.parquet", "is gone"), delete(_REWARDS)
    ),
    "input changed": Mistake(
        f"rerun compute_advantages -i 1 {_OF_X}", ("rewards.parquet", "has changed"),
        append(_REWARDS),
    ),
    "input of a part deleted": Mistake(
        f"{_PART} --nodes iter_00001.compute_advantages",
        ("rewards.parquet is gone", "make it with: kedro run --pipelines iter_00001"),
        delete(_REWARDS),
    ),
    "raw data deleted": Mistake(
        f"run {_FAULTS} --params experiment=z", ("knowledge_base/cities.parquet",),
        delete("data/01_raw/knowledge_base/cities*"),
    ),
    "folder not writable": Mistake(
        f"{_PART} --nodes iter_00001.score_rewards", ("data/04_feature",),
        file_in_place_of("data/04_feature"),
    ),
}  # fmt: skip

_SLOW = {
    *DAMAGE,
    "sandbox missing",
    "MCP server does not start",
    "fork onto itself",
}
"""Work begins before these are found, or the project is copied."""
EVERY = PARAMETERS_OF_CONF | WHAT_PARAMETERS_NAME | SELECTIONS | HISTORY | DAMAGE


@pytest.fixture(scope="module")
def experiments(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallExperiments]:
    """A project with a finished experiment ``x``, where no program but Python is found."""
    project = make_project(tmp_path_factory.mktemp("mistakes"))
    with ForkedRuns(environment() | {"PATH": ""}) as forked:
        experiments = SmallExperiments(project, forked)
        ended = experiments.run("x")
        assert ended.returncode == 0, ended.output
        break_project(project, PARAMETERS)
        yield experiments


@pytest.fixture(scope="module")
def forked(experiments: SmallExperiments) -> ForkedRuns:
    """Runs commands in any project."""
    return experiments._forked


def _check(mistake: Mistake, project: Path, forked: ForkedRuns) -> None:
    ended = forked.run(project, shlex.split(mistake.command), None)
    assert ended.returncode == mistake.code, ended.output
    assert "Traceback" not in ended.output
    assert len(ended.output.splitlines()) <= MOST_LINES, ended.output
    for fragment in mistake.fragments:
        assert fragment in ended.output


@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=pytest.mark.slow) if each in _SLOW else each for each in EVERY],
)
def test_a_mistake_is_one_message_with_the_remedy(name, experiments, forked, tmp_path):
    mistake, project = EVERY[name], experiments.project
    if mistake.broken is not None:
        project = Path(shutil.copytree(project, tmp_path / "project", symlinks=True))
        mistake.broken(project)
    _check(mistake, project, forked)


def test_an_experiment_in_use_says_by_whom(experiments, forked):
    with locked(experiments.project / "data/08_reporting/x"):
        mistake = Mistake(
            f"{_PART} --nodes iter_00001.score_rewards",
            ("experiment 'x' is in use by process", "Wait until it ends, or name another"),
        )
        _check(mistake, experiments.project, forked)


def test_the_list_is_long_enough():
    assert len(EVERY) >= 40
