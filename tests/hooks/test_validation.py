"""What the hooks do with parameters around a Kedro run."""

from __future__ import annotations

import pytest
from kedro.framework.session.service_session import KedroServiceSession
from kedro.io import DataCatalog

from agent_r1.hooks import ValidationHooks
from agent_r1.parameters import ParameterError
from agent_r1.training.update_parameters import UpdateParameters


def test_every_key_of_a_group_is_a_node_input_also_where_the_model_has_parts():
    update = UpdateParameters(clip_low=0.1)
    parameters = {"parameters": {"update": update, "seed": 3}, "params:update.epochs": 1}
    catalog = DataCatalog()
    ValidationHooks().after_catalog_created(catalog, parameters)
    assert catalog.load("params:update.clip_low") == 0.1
    assert catalog.load("params:update.deepspeed") == {"zero_stage": 1}
    assert "params:update.epochs" not in catalog, "Kedro has offered it"


def test_a_notebook_is_told_all_problems_before_kedro_makes_a_model(project):
    """Kedro would name one group at a time, in words of Python."""
    session = KedroServiceSession.create(project_path=project.path)
    bad = {"experiment": "x", "rollout": {"temprature": 1}, "model": {"pth": "a"}, "sed": 1}
    with pytest.raises(ParameterError) as caught:
        session.run(pipeline_names=["prepare_tasks"], runtime_params=bad)
    named = {problem.path for problem in caught.value.problems}
    assert named == {"sed", "model.pth", "rollout.temprature"}
    assert project.calls == []
