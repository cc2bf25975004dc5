"""``algorithm=NAME``: a preset over conf/base, under the environment and ``--params``."""

from __future__ import annotations

import pytest
from kedro.config import OmegaConfigLoader

from agent_r1 import settings
from agent_r1.configuration.groups import read_parameters
from agent_r1.configuration.loader import ProjectConfigLoader
from agent_r1.parameters import ParameterError
from tests.support import REPOSITORY

SHIPPED = sorted(path.stem for path in (REPOSITORY / "conf/algorithms").glob("*.yml"))


@pytest.fixture
def conf(tmp_path):
    """Three layers and a preset, each with a key of its own and one that all have."""
    files = {
        "base/parameters.yml": "algorithm: plain\nseed: 0\n",
        "base/parameters_update.yml": (
            "update: {rate: base, clip: base, steps: base, nested: {a: 1}}"
        ),
        "local/parameters.yml": "update: {steps: local}",
        "fast/parameters.yml": "algorithm: other\nupdate: {steps: fast}",
        "algorithms/plain.yml": "{}",
        "algorithms/other.yml": (
            "update: {clip: preset, steps: preset, rate: preset, nested: {b: 2}}"
        ),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    def load(env: str | None = None, **params):
        loader = ProjectConfigLoader(
            str(tmp_path), env=env, runtime_params=params, **settings.CONFIG_LOADER_ARGS
        )
        loader.validates = False  # these groups are made up
        return loader["parameters"]

    load.folder = tmp_path
    return load


def test_without_another_algorithm_there_is_what_base_and_the_environment_say(conf):
    assert conf()["update"] == {
        "rate": "base", "clip": "base", "steps": "local", "nested": {"a": 1},
    }  # fmt: skip


def test_the_layers_from_below(conf):
    values = conf(algorithm="other", update={"rate": "params"})
    assert values["algorithm"] == "other"
    assert values["update"] == {
        "rate": "params", "clip": "preset", "steps": "local", "nested": {"a": 1, "b": 2},
    }  # fmt: skip


def test_an_environment_can_choose_the_algorithm(conf):
    assert conf(env="fast")["update"]["clip"] == "preset"
    assert conf(env="fast")["update"]["steps"] == "fast"
    assert conf(env="fast", algorithm="plain")["update"]["clip"] == "base"


def test_an_unknown_algorithm_names_the_nearest(conf):
    with pytest.raises(ParameterError, match=r"'othr'. Did you mean 'other'"):
        conf(algorithm="othr")


def test_a_preset_of_an_unknown_group_is_refused(conf):
    (conf.folder / "algorithms/wrong.yml").write_text("updat: {clip: 1}")
    with pytest.raises(ParameterError, match=r"unknown group 'updat'. Did you mean 'update'"):
        conf(algorithm="wrong")


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_preset_is_valid_and_is_what_it_says(name):
    loader = ProjectConfigLoader(
        str(REPOSITORY / "conf"),
        env="base",
        runtime_params={"algorithm": name},
        **settings.CONFIG_LOADER_ARGS,
    )
    resolved = read_parameters(loader["parameters"])
    assert resolved["algorithm"] == name
    update, advantage = resolved["update"], resolved["advantage"]
    assert update["objective"] in (name, "ppo_clip")
    assert advantage["estimator"] in (name, "gae" if name == "ppo" else "grpo")


def test_dapo_adds_to_the_reward_and_to_the_rollouts_what_its_paper_says():
    loader = ProjectConfigLoader(
        str(REPOSITORY / "conf"),
        env="base",
        runtime_params={"algorithm": "dapo"},
        **settings.CONFIG_LOADER_ARGS,
    )
    groups = read_parameters(loader["parameters"])
    assert set(groups["reward"]["terms"]) == {"outcome", "format", "overlong"}
    assert groups["rollout"]["dynamic_sampling"] == {"enabled": True, "max_rounds": 4}
    assert groups["rollout"]["tasks_per_iteration"] == 32
    shown = {name: groups["update"][name] for name in ("clip_low", "clip_high", "dual_clip")}
    assert shown == {"clip_low": 0.2, "clip_high": 0.28, "dual_clip": None}
    assert groups["update"]["kl_coef"] == groups["advantage"]["kl_coef"] == 0


def test_the_default_is_a_preset_that_changes_nothing():
    loaders = (
        kind(str(REPOSITORY / "conf"), env="base", **settings.CONFIG_LOADER_ARGS)
        for kind in (ProjectConfigLoader, OmegaConfigLoader)
    )
    with_preset, plain = (loader["parameters"] for loader in loaders)
    assert with_preset == read_parameters(plain)


def test_what_kedro_gets_is_validated_and_has_all_defaults(tmp_path):
    (tmp_path / "base").mkdir()
    parameters = tmp_path / "base/parameters.yml"
    parameters.write_text("rollout: {group_size: 2}\n")
    loader = ProjectConfigLoader(str(tmp_path), env="base", **settings.CONFIG_LOADER_ARGS)
    values = loader["parameters"]
    assert values == read_parameters({"rollout": {"group_size": 2}})
    parameters.write_text("rollout: {group_sise: 2}\nsed: 3\n")
    loader = ProjectConfigLoader(str(tmp_path), env="base", **settings.CONFIG_LOADER_ARGS)
    with pytest.raises(ParameterError) as caught:
        loader["parameters"]
    assert [(each.path, each.nearest) for each in caught.value.problems] == [
        ("sed", "seed"), ("rollout.group_sise", "group_size"),
    ]  # fmt: skip
    loader.validates = False
    assert loader["parameters"] == {"rollout": {"group_sise": 2}, "sed": 3}
