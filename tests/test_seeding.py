"""A seed depends only on the coordinates of its draw."""

from hypothesis import given
from hypothesis import strategies as st

from agent_r1.seeding import derive_seed


def test_a_seed_is_the_same_in_every_process():
    # A fixed value: PYTHONHASHSEED and the platform must not matter.
    assert derive_seed(0, "iter_00001", "generate_rollouts", 3) == 3363503833266100900


def test_coordinates_are_separated():
    assert derive_seed(0, "a", "bc") != derive_seed(0, "ab", "c")
    assert derive_seed(0, 1, 23) != derive_seed(0, 12, 3)
    assert derive_seed(1) != derive_seed(2)


@given(st.integers(), st.lists(st.text() | st.integers(), max_size=4))
def test_seeds_fit_an_int64(seed, coordinates):
    assert 0 <= derive_seed(seed, *coordinates) < 2**63


def test_p39_the_samples_of_a_group_have_different_seeds():
    seeds = {derive_seed(0, "iter_00001", f"t/{i}", step) for i in range(64) for step in range(8)}
    assert len(seeds) == 512
