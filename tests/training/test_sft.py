"""Supervised fine-tuning: only on the agent's tokens, and reproducible."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from agent_r1.training import sft
from agent_r1.training.logprobs import token_logprobs
from agent_r1.training.sequences import build_sequences
from agent_r1.training.sft import SftParameters, batch_order, fine_tune
from tests.support.step_tables import rollouts, step
from tests.support.tiny_models import VOCABULARY, flat_gradient, flat_weights, random_model


def demonstrations(count: int = 6) -> pd.DataFrame:
    random = np.random.default_rng(0)

    def ids(length: int) -> list[int]:
        return random.integers(0, VOCABULARY, length).tolist()

    return rollouts(
        *(
            step(f"q/{name}", index, ids(3 + name), ids(4), temperature=0.0)
            for name in range(count)
            for index in range(2)
        )
    )


def column(metrics: pd.DataFrame, name: str) -> list[float]:
    return metrics.loc[metrics["metric"] == name, "value"].tolist()


def sft_parameters(**values: Any) -> SftParameters:
    """Without a warm-up."""
    return SftParameters(**{"steps": 120, "learning_rate": 3e-4, "warmup_steps": 0} | values)


def test_the_demonstrations_are_learned() -> None:
    model, table = random_model(), demonstrations()
    parameters = sft_parameters(steps=30, batch_size=6, learning_rate=0.01)
    metrics = fine_tune(model, table, parameters, seed=0)
    losses = column(metrics, "loss")
    assert len(losses) == 30
    assert losses[-1] < 0.3 * losses[0]
    logprobs = token_logprobs(model, build_sequences(table))
    assert logprobs.mean() > -losses[0] / 2


def test_the_loss_is_the_cross_entropy_of_the_action_tokens_only() -> None:
    table = demonstrations()
    expected = -token_logprobs(random_model(), build_sequences(table)).mean()
    parameters = sft_parameters(steps=1, batch_size=6)
    metrics = fine_tune(random_model(), table, parameters, seed=0)
    assert column(metrics, "loss") == pytest.approx([expected], abs=1e-5)
    assert column(metrics, "tokens") == [6 * 2 * 4]


@pytest.mark.parametrize("stop", [True, False])
def test_p02_the_stop_token_is_learned_exactly_where_it_was_written(stop: bool) -> None:
    end = 7
    actions = [[3, 4, end] if stop else [3, 4]] * 4
    table = rollouts(*(step(f"q/{i}", 0, [1, 2], action) for i, action in enumerate(actions)))
    model = random_model()
    fine_tune(model, table, sft_parameters(steps=40, learning_rate=0.01), seed=0)
    probed = rollouts(step("q/0", 0, [1, 2], [3, 4, end]))
    logprobs = token_logprobs(model, build_sequences(probed))
    assert (logprobs[:2] > -0.1).all()
    assert (logprobs[2] > -0.1) == stop


def test_p03_injected_context_is_never_a_target(monkeypatch: pytest.MonkeyPatch) -> None:
    targets = []
    original = sft.score

    def spy(model, head, batch, temperature_N):
        targets.extend(batch.targets_N.tolist())
        return original(model, head, batch, temperature_N)

    monkeypatch.setattr(sft, "score", spy)
    table = rollouts(step("q/0", 0, [1, 2], [3, 4]), step("q/0", 1, [5, 6], [7]))
    fine_tune(random_model(), table, sft_parameters(steps=1), seed=0)
    assert sorted(targets) == [3, 4, 7]


@pytest.mark.parametrize("size", [1, 2, 4])
def test_p22_the_gradient_does_not_depend_on_the_micro_batch(size: int) -> None:
    gradients = []
    for micro in (100, size):
        model = random_model()
        sequences = build_sequences(demonstrations())
        chosen = np.arange(len(sequences.trajectory))
        parameters = sft_parameters(micro_batch_sequences=micro)
        sft.accumulate_cross_entropy(model, sft.head_of(model), sequences, chosen, parameters)
        gradients.append(flat_gradient(model))
    assert (gradients[0] - gradients[1]).norm() <= 1e-5 * gradients[0].norm()


def test_equal_seeds_give_equal_weights_in_any_row_order_and_other_seeds_do_not() -> None:
    parameters = sft_parameters(steps=4, batch_size=2, learning_rate=0.01)
    table = demonstrations()
    shuffled = table.sample(frac=1, random_state=1).reset_index(drop=True)
    weights = []
    for rows, seed in ((table, 0), (shuffled, 0), (table, 1)):
        model = random_model()
        fine_tune(model, rows, parameters, seed)
        weights.append(flat_weights(model))
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_an_epoch_has_each_item_once_and_the_next_another_order() -> None:
    batches = batch_order(7, 3, seed=0)
    first, second = ([next(batches) for _ in range(3)] for _ in range(2))
    for epoch in (first, second):
        assert [len(batch) for batch in epoch] == [3, 3, 1]
        assert sorted(np.concatenate(epoch).tolist()) == list(range(7))
    assert np.concatenate(first).tolist() != np.concatenate(second).tolist()


def test_the_learning_rate_follows_its_schedule() -> None:
    parameters = sft_parameters(steps=4, learning_rate=1.0, warmup_steps=1, schedule="linear")
    assert [parameters.rate(step) for step in range(4)] == pytest.approx([0.5, 0.75, 0.5, 0.25])
    assert sft_parameters(steps=4, learning_rate=1.0).rate(3) == 1.0


def test_progress_is_reported_step_by_step() -> None:
    reported = []
    fine_tune(
        random_model(),
        demonstrations(),
        sft_parameters(steps=3),
        seed=0,
        on_step=lambda step, values: reported.append((step, values["loss"] > 0)),
    )
    assert reported == [(0, True), (1, True), (2, True)]


def test_demonstrations_without_actions_are_refused() -> None:
    table = rollouts(step("q/0", 0, [1], [], action_type="none"))
    with pytest.raises(ValueError, match="no action token"):
        fine_tune(random_model(), table, sft_parameters(), seed=0)


def test_the_trained_policy_is_written(policy_folder: Path, tmp_path: Path) -> None:
    parameters = sft_parameters(steps=2, batch_size=4)
    model = sft.ModelParameters(path=policy_folder)
    metrics = sft.train_sft(policy_folder, demonstrations(), parameters, model, 0, tmp_path / "p")
    assert metrics["step"].max() == 1
    trained = sft.load_policy(tmp_path / "p")
    assert not torch.equal(flat_weights(trained), flat_weights(sft.load_policy(policy_folder)))
