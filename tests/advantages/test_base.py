"""The parameters of ``advantage``, and their values in ``conf/base``."""

from __future__ import annotations

import pytest
import yaml

from agent_r1.advantages import AdvantageParameters
from agent_r1.parameters import ParameterError
from tests.support import REPOSITORY

CONF = REPOSITORY / "conf/base/parameters_advantage.yml"


def test_conf_shows_the_defaults() -> None:
    shown = yaml.safe_load(CONF.read_text(encoding="utf-8"))["advantage"]
    assert shown == AdvantageParameters().model_dump()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"gama": 1}, "'advantage.gama'. Did you mean 'gamma'"),
        ({"gamma": 1.1}, "'advantage.gamma'"),
        ({"level": "turn"}, "'token' or 'step'"),
        ({"whiten_by": "task"}, "'batch' or 'environment'"),
        ({"kl_coef": -1}, "'advantage.kl_coef'"),
    ],
)
def test_errors_name_the_parameter(values: dict, message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        AdvantageParameters.read(values, "advantage")
    assert message in str(caught.value)
