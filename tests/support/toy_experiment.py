"""The real catalog, hooks, registry and driver in a throw-away project, with nodes of a line each.

The nodes have the signatures of the real ones, and compute something of their inputs, so that a
wrong version of an input changes the result.
"""

from __future__ import annotations

import atexit
import hashlib
import shutil
import sys
import tempfile
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pandas as pd
import pytest
from kedro.framework.startup import bootstrap_project
from matplotlib.figure import Figure

from agent_r1 import schemas, tables
from agent_r1.advantages import AdvantageParameters
from agent_r1.configuration import groups as parameter_groups
from agent_r1.configuration import references
from agent_r1.lineage import Experiment
from agent_r1.parameters import Parameters
from agent_r1.storage.hashing import folder_sha256
from tests.support import REPOSITORY

NOT_STEERED = AdvantageParameters()
"""What `update_policy` has for ``advantage`` by default."""
CALLS: list[str] = []
"""Names of the nodes that ran, in order."""
FAIL_AT: set[str] = set()
"""``iteration/node`` of calls that raise."""


class ToyEvaluation(Parameters):
    every: int = 2
    splits: tuple[str, ...] = ("in_domain", "held_out", "ood")
    unscored: tuple[int, ...] = ()
    """Iterations in whose evaluation the infrastructure failed."""


class ToyRollout(Parameters):
    temperature: float = 1.0
    top_p: float = 1.0


class ToyModel(Parameters):
    path: str = "data/01_raw/base"


class ToyAnything(Parameters):
    value: int = 0


class ToyUpdate(ToyAnything):
    objective: str = "ppo_clip"
    """``build_preferences`` reads it by itself."""


class ToyEnvironment(ToyAnything):
    name: str = "toy"


def toy_groups() -> dict[str, str]:
    """What stands for `agent_r1.configuration.groups.GROUPS`."""
    kept = {name: parameter_groups.GROUPS[name] for name in ("stop", "mlflow", "retention")}
    toys = {"evaluation": "ToyEvaluation", "rollout": "ToyRollout", "model": "ToyModel"}
    toys |= {"update": "ToyUpdate", "environment": "ToyEnvironment"}
    rest = ("tasks", "chat", "demonstrations", "sft", "reward", "logprobs", "advantage")
    toys |= dict.fromkeys(rest, "ToyAnything")
    return kept | {name: f"{__name__}:{model}" for name, model in toys.items()}


class ToyEngine:
    """Counts how often it is made."""

    made = 0

    def __init__(self) -> None:
        type(self).made += 1


def _called(name: str, iteration: str = "") -> None:
    CALLS.append(f"{iteration}.{name}" if iteration else name)
    if f"{iteration}/{name}" in FAIL_AT:
        raise RuntimeError(f"{name} of {iteration} was told to fail")


def _folder(content: str) -> Path:
    root = Path("data/.staging")
    folder = root / hashlib.sha256(content.encode()).hexdigest()[:16]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_text(content)
    return folder


def _text(*values: object) -> str:
    return hashlib.sha256(repr(values).encode()).hexdigest()[:12]


def _rollouts(trajectory: str, key: str, split: str = "train") -> pd.DataFrame:
    row = dict.fromkeys(schemas.ROLLOUTS.names)
    for field in schemas.ROLLOUTS:
        if not field.nullable:
            kind = str(field.type)
            row[field.name] = [] if kind.startswith("list") else {"string": "x"}.get(kind, 0)
    row |= {"trajectory_id": trajectory, "state_key": key, "terminated": True, "truncated": False}
    return tables.from_rows([row | {"task_id": split, "completion_tokens": 3}], "rollouts")


def prepare_tasks(countries, cities, elements, parameters, environment="multihop_qa", files=None):
    _called("prepare_tasks")
    files.find("benchmark.json")  # some tests put one there
    task = {"task_id": "t", "environment": "e", "split": "train", "family": "f", "prompt": "p"}
    tasks = tables.from_rows([task | {"answers": [], "payload": "{}"}], "tasks")
    document = {"document_id": "d", "title": _text(len(countries)), "text": "x"}
    return tasks, tables.from_rows([document], "documents")


def build_demonstrations(
    policy, tasks, documents, demonstrations, environment, chat, rollout, seed
):
    _called("build_demonstrations")
    return _rollouts("demonstration", folder_sha256(policy))


def import_policy(model):
    _called("import_policy", "base")
    return _folder("base")


def train_sft(base_policy, demonstrations, sft, model, seed):
    _called("train_sft", "iter_00000")
    text = _text(folder_sha256(base_policy), demonstrations["state_key"][0], seed)
    return (*_trained(text), _metrics(0))


def _trained(text):
    return _folder(text), _folder(text + "critic"), _folder(text + "state"), {"kl_coef": text}


def _metrics(value):
    rows = [{"step": step, "metric": "loss", "value": value + step} for step in range(2)]
    return tables.from_rows(rows, "metrics")


def generate_rollouts(
    engine, policy, tasks, documents, memory, rollout, environment, chat, reward, seed, *,
    iteration,
):  # fmt: skip
    _called("generate_rollouts", iteration)
    assert isinstance(engine, ToyEngine)
    assert memory == []
    rollouts = _rollouts(f"{iteration}/t/0", _text(folder_sha256(policy), seed, rollout))
    return rollouts, tables.empty("rollout_timings"), tables.empty("sampled_groups")


def score_rewards(rollouts, tasks, parameters):
    iteration = rollouts["trajectory_id"][0].split("/")[0]
    _called("score_rewards", iteration)
    value = int(iteration.removeprefix("iter_")) / 10 + dict(parameters or {}).get("value", 0)
    row = {"trajectory_id": rollouts["trajectory_id"][0], "step_index": 0, "reward": value}
    row |= {"components": rollouts["state_key"][0], "trajectory_reward": value, "correct": True}
    return tables.from_rows([row], "rewards")


def compute_logprobs(rollouts, policy, reference, critic, parameters, model):
    _called("compute_logprobs", rollouts["trajectory_id"][0].split("/")[0])
    return tables.empty("logprobs")


def compute_advantages(rollouts, rewards, logprobs, parameters, controllers=None):
    _called("compute_advantages", rollouts["trajectory_id"][0].split("/")[0])
    row = {"trajectory_id": rewards["components"][0], "step_index": 0, "group_size": 1}
    row |= {"advantages": [float(rewards["reward"][0])], "loss_mask": [True]}
    return tables.from_rows([row], "advantages")


def build_preferences(rollouts, rewards, objective=None):
    _called("build_preferences", rollouts["trajectory_id"][0].split("/")[0])
    return tables.empty("preferences")


def update_policy(
    policy, reference, critic, trainer_state, controllers, rollouts, logprobs, advantages,
    preferences, parameters, model, seed, advantage=NOT_STEERED, *, iteration,
):  # fmt: skip
    _called("update_policy", iteration)
    parts = [folder_sha256(path) for path in (policy, reference, critic, trainer_state)]
    row = advantages.iloc[0]
    text = _text(*parts, controllers, row["trajectory_id"], list(row["advantages"]))
    return (*_trained(text), _metrics(1))


def evaluate_policy(
    engine, policy, tasks, documents, evaluation, rollout, environment, chat, reward, seed, *,
    iteration,
):  # fmt: skip
    splits = evaluation["splits"]
    _called("validate_policy" if splits == ["validation"] else "evaluate_policy", iteration)
    index = 0 if iteration == "base" else int(iteration.removeprefix("iter_"))
    numbers = dict.fromkeys(schemas.EVALUATION.names, index / 10)
    if index in evaluation.get("unscored", ()):
        numbers["exact_match"] = None
    rows = [numbers | {"split": split, "family": None, "n": 1} for split in splits]
    key = folder_sha256(policy)
    rollouts = _rollouts(f"{iteration}/t/0", key)
    return tables.from_rows(rows, "evaluation"), rollouts, tables.empty("rewards")


def validate_policy(
    engine, policy, tasks, documents, evaluation, rollout, environment, chat, reward, seed, *,
    iteration,
):  # fmt: skip
    validation = {**evaluation, "splits": ["validation"]}
    return evaluate_policy(
        engine, policy, tasks, documents, validation, rollout, environment, chat, reward, seed,
        iteration=iteration,
    )  # fmt: skip


def build_report(history, tasks, demonstrations, parameters):
    _called("build_report")
    iterations = [name for name in history.iterations("rewards") if name != "iter_00000"]
    summary = {"experiment": parameters["experiment"], "iterations": len(iterations)}
    summary["temperature"] = parameters["rollout"]["temperature"]
    rewards = {name: t["reward"].tolist() for name, t in history.iterations("rewards").items()}
    return Figure(), f"<p>{rewards}</p>", summary


_STAGES = {
    "prepare_tasks": ("prepare_tasks",),
    "demonstrations": ("build_demonstrations",),
    "sft": ("import_policy", "train_sft"),
    "rollout": ("generate_rollouts",),
    "reward": ("score_rewards",),
    "logprobs": ("compute_logprobs",),
    "advantage": ("compute_advantages",),
    "preferences": ("build_preferences",),
    "update": ("update_policy",),
    "evaluation": ("evaluate_policy", "validate_policy"),
    "report": ("build_report",),
}


def make_project(folder: Path) -> Path:
    """A Kedro project with the repository's configuration and toy data."""
    for name in ("src", "conf/base", "conf/local", "data/01_raw/knowledge_base"):
        (folder / name).mkdir(parents=True)
    shutil.copy(REPOSITORY / "pyproject.toml", folder)
    shutil.copy(REPOSITORY / "conf/logging.yml", folder / "conf")
    for name in ("catalog.yml", "globals.yml"):
        shutil.copy(REPOSITORY / "conf/base" / name, folder / "conf/base")
    (folder / "conf/local/catalog.yml").write_text(
        f"engine:\n  type: agent_r1.datasets.EngineDataset\n  engine: {__name__}.ToyEngine\n"
    )
    toys = sorted(set(toy_groups()) - {"mlflow", "stop", "retention"})
    # What a node reads by itself must stand there.
    read = {"update": "objective: ppo_clip", "environment": "name: toy"}
    groups = "".join(f"{name}: {{{read.get(name, '')}}}\n" for name in toys)
    (folder / "conf/base/parameters.yml").write_text(
        "experiment: ${globals:experiment}\nseed: 0\niterations: 3\n"
        "mlflow: {enabled: false}\nstop: {exact_match: null}\n" + groups
    )
    (folder / "conf/algorithms").mkdir()
    (folder / "conf/algorithms/grpo.yml").write_text("{}\n")
    (folder / "data/01_raw/memory.json").write_text("[]\n")
    for name in ("countries", "cities", "elements"):
        table = pd.DataFrame({"name": [name]})
        table.to_parquet(folder / f"data/01_raw/knowledge_base/{name}.parquet")
    return folder


def toy_modules() -> dict[str, ModuleType]:
    """Name → module, with the toy nodes where the pipelines look for the real ones."""
    modules = {}
    for stage, functions in _STAGES.items():
        module = ModuleType(f"agent_r1.pipelines.{stage}.nodes")
        for function in functions:
            setattr(module, function, globals()[function])
        modules[module.__name__] = module
    return modules


_FINISHED: dict[int, Path] = {}
"""Iterations → the ``data/`` that an undisturbed experiment ``x`` leaves."""


def opened(project: Path, name: str) -> Experiment:
    """An experiment of the toy project."""
    return Experiment(project, project / f"data/08_reporting/{name}/manifests")


def finish_experiment(project: Path, iterations: int) -> None:
    """Leave ``project`` as an experiment ``x`` that ran to its end does.

    It runs once per number of iterations; other projects get a copy, as no recorded path or hash
    depends on where the project is.
    """
    from agent_r1.experiments.driver import run_experiment

    if iterations in _FINISHED:
        shutil.copytree(_FINISHED[iterations], project / "data", dirs_exist_ok=True)
    else:
        run_experiment(project, {"experiment": "x", "iterations": iterations})
        folder = Path(tempfile.mkdtemp(prefix="toy-experiment-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        _FINISHED[iterations] = folder / "data"
        shutil.copytree(project / "data", _FINISHED[iterations])
    CALLS.clear()


@pytest.fixture
def project(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> SimpleNamespace:
    """A bootstrapped project with toy nodes; ``.path``, ``.calls``, ``.fail_at``.

    A test that parametrizes it, indirectly, says in which folder below ``tmp_path`` it is.
    """
    for name, module in toy_modules().items():
        monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.delitem(sys.modules, f"{name.removesuffix('.nodes')}.pipeline", raising=False)
    monkeypatch.delitem(sys.modules, "agent_r1.pipelines.iteration.pipeline", raising=False)
    monkeypatch.setattr(parameter_groups, "GROUPS", toy_groups())
    for check in ("check_references", "check_base"):
        monkeypatch.setattr(references, check, lambda *_: None)
    monkeypatch.setattr("os.fsync", lambda _: None)  # no test pulls the plug
    monkeypatch.setattr(sys, "path", list(sys.path))
    path = make_project(tmp_path / getattr(request, "param", ""))
    monkeypatch.chdir(path)
    bootstrap_project(path)
    CALLS.clear()
    FAIL_AT.clear()
    yield SimpleNamespace(path=path, calls=CALLS, fail_at=FAIL_AT, engine=ToyEngine)
    for stage in (*_STAGES, "iteration"):
        sys.modules.pop(f"agent_r1.pipelines.{stage}.pipeline", None)
