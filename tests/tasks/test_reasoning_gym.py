"""Tasks of reasoning-gym: split by seed, scored by their own verifiers."""

import json

import pytest

from agent_r1 import tables
from agent_r1.extras import MissingExtraError
from agent_r1.mdp import EnvironmentFailure
from agent_r1.parameters import ParameterError
from agent_r1.tasks import reasoning_gym

SIZES = {"train": 7, "validation": 4, "held_out": 4}


class Package:
    """A fake of the package, which may not be installed: entry ``i`` is twice seed plus place."""

    @staticmethod
    def create_dataset(name, seed, size, most=9):
        if name != "doubles":
            raise ValueError(f"Dataset '{name}' not registered")

        assert size <= max(SIZES.values())  # some data sets allocate memory for each entry

        class Dataset:
            def __getitem__(self, place):
                number = (seed + place) % most
                return {"question": f"{number}+{number}?", "answer": str(2 * number)}

            def score_answer(self, answer, entry):
                return 1.0 if answer == entry["answer"] else 0.01

        return Dataset()


@pytest.fixture
def package(monkeypatch):
    reasoning_gym._dataset.cache_clear()
    monkeypatch.setattr(reasoning_gym, "extra_package", lambda name, extra: Package)
    yield
    reasoning_gym._dataset.cache_clear()


def test_a_task_names_its_entry_and_the_data_set_scores_answers(package):
    tasks, documents = reasoning_gym.make_tasks(SIZES, {"doubles": {"most": 10**6}}, seed=1)
    tables.to_arrow(tasks, "tasks")
    assert tasks["split"].value_counts().to_dict() == SIZES
    assert documents.empty
    task = tasks.to_dict("records")[0]
    verifier = json.loads(task["payload"])["verifier"]
    assert reasoning_gym.score_answer(verifier, task["answers"][0]) == 1.0
    assert reasoning_gym.score_answer(verifier, "no") == 0.01


def test_another_version_of_the_package_scores_nothing(package):
    tasks, _ = reasoning_gym.make_tasks(SIZES, {"doubles": {"most": 10**6}}, seed=1)
    verifier = json.loads(tasks["payload"][0])["verifier"]
    moved = verifier | {"seed": verifier["seed"] + 1}  # as if the seed gave another number
    with pytest.raises(EnvironmentFailure, match="version of reasoning-gym generates other tasks"):
        reasoning_gym.score_answer(moved, tasks["answers"][0][0])


def test_splits_do_not_share_tasks(package):
    tasks, _ = reasoning_gym.make_tasks(
        {"train": 7, "held_out": 7}, {"doubles": {"most": 9}}, seed=1
    )
    assert tasks["prompt"].is_unique
    assert len(tasks) == 9  # there are not more


@pytest.mark.parametrize("datasets", [{"trebles": {}}, {"doubles": {"least": 1}}])
def test_an_unknown_data_set_or_setting_is_named(package, datasets):
    (name,) = datasets
    with pytest.raises(ParameterError, match=rf"tasks.sources.reasoning_gym.datasets.{name}: "):
        reasoning_gym.make_tasks(SIZES, datasets, seed=1)


def test_without_the_package_the_error_says_how_to_install_it(monkeypatch):
    reasoning_gym._dataset.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "reasoning_gym", None)
    with pytest.raises(MissingExtraError, match=r"pip install -e '.\[reasoning-gym\]'"):
        reasoning_gym.make_tasks(SIZES, {"chain_sum": {}}, seed=1)


def test_the_real_package():
    pytest.importorskip("reasoning_gym")
    datasets = {"chain_sum": {}, "gsm_symbolic": {}}
    tasks, _ = reasoning_gym.make_tasks(SIZES, datasets, seed=1)
    assert set(tasks["family"]) == set(datasets)
    for task in tasks.to_dict("records"):
        verifier = json.loads(task["payload"])["verifier"]
        assert reasoning_gym.score_answer(verifier, task["answers"][0]) == 1.0
        assert reasoning_gym.score_answer(verifier, "no") < 1.0
