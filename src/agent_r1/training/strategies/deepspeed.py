"""DeepSpeed: ZeRO over torch's AdamW, in a process group of one.

1. The optimizer is torch's AdamW, passed as a client optimizer, so nothing is compiled.
2. Our losses are already weighted over the whole mini-batch. So DeepSpeed runs with one
   accumulation per step, and we mark the last backward pass; it never divides by the number of
   micro-batches. (Over several ranks it takes the mean, so losses would need a factor of their
   number.)
3. The loss is computed inside the engine's forward, because its hooks prepare the backward pass.
4. The process group needs no port: its store is in memory. It is created once and lives as long as
   the process, because DeepSpeed keeps groups derived from it.
5. The trainer state is read and written through DeepSpeed's view of whole parameters, in the format
   of `agent_r1.training.optimizer`.

The engine moves the model to DeepSpeed's accelerator; the environment variable ``DS_ACCELERATOR``
selects another (``cpu``). Weights, gradients and moments are float32.

The critic always uses plain torch (`agent_r1.training.critic_update`), even as a head on this
policy's hidden states.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import torch
from torch import distributed, nn
from transformers import PreTrainedModel

from agent_r1.parameters import ParameterError
from agent_r1.training.optimizer import (
    MOMENTS,
    OptimizerParameters,
    finite_norm,
    make_optimizer,
    read_state,
    write_state,
)
from agent_r1.training.policy import save_policy
from agent_r1.training.strategies.base import Block, DeepSpeedParameters

_BUCKET = 1 << 26
"""Largest number of elements reduced at a time: 256 MiB. DeepSpeed's default is 2 GB."""


class DeepSpeedStrategy:
    """The strategy ``deepspeed``; see `agent_r1.training.strategies.base.TrainerStrategy`."""

    def __init__(
        self,
        model: PreTrainedModel,
        parameters: DeepSpeedParameters,
        optimizer: OptimizerParameters,
        state: Path | None = None,
    ) -> None:
        """Trains ``model`` in place; ``state`` is the previous trainer state, None at the start.

        Raises:
            ParameterError: DeepSpeed cannot be imported, the weights are not float32, or this
                process is one of several ranks.
            TrainerStateError: the folder is not a trainer state, or belongs to another model.
        """
        if model.dtype != torch.float32:
            raise ParameterError(
                "update.strategy deepspeed trains in float32: set model.dtype to float32, or "
                "update.strategy to torch"
            )
        self.steps, moments = (0, {}) if state is None else read_state(model, state)
        self.model = model
        self._deepspeed = _import()
        _join_group_of_one(self._deepspeed)
        self._engine = _engine(self._deepspeed, model, parameters, optimizer)
        if moments:
            self._restore(moments)

    def accumulate(
        self, blocks: Sequence[Block], loss_of: Callable[[PreTrainedModel, Block], torch.Tensor]
    ) -> None:
        runs: list[tuple[Callable[[PreTrainedModel, Any], torch.Tensor], Any]]
        runs = [(loss_of, block) for block in blocks] or [(_nothing, None)]
        for number, run in enumerate(runs, 1):
            self._engine.set_gradient_accumulation_boundary(number == len(runs))
            self._engine.backward(self._engine(*run), scale_wrt_gas=False)

    def gradients(self) -> dict[str, torch.Tensor]:
        whole = self._deepspeed.utils.safe_get_full_grad
        return {name: whole(p).to("cpu", copy=True) for name, p in self._named()}

    def step(self, learning_rate: float) -> float:
        for group in self._engine.optimizer.param_groups:
            group["lr"] = learning_rate
        self._engine.step()  # skips the step if the gradient is not finite
        norm = finite_norm(float(self._engine.get_global_grad_norm()))
        self.steps += 1
        return norm

    def discard(self) -> None:
        self._engine.optimizer.zero_grad(set_to_none=True)
        # ZeRO keeps the accumulated gradients itself, not in the parameters.
        for group in self._engine.optimizer.averaged_gradients:
            self._engine.optimizer.averaged_gradients[group] = None

    def save(self, tokenizer_folder: Path, policy_folder: Path, state_folder: Path) -> None:
        save_policy(self.model, tokenizer_folder, policy_folder)
        whole = self._deepspeed.utils.safe_get_full_optimizer_state
        moments = {name: {key: whole(p, key) for key in MOMENTS} for name, p in self._named()}
        write_state(moments, self.steps, state_folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._engine.destroy()

    def _named(self) -> Iterator[tuple[str, nn.Parameter]]:
        return self.model.named_parameters()

    def _restore(self, moments: dict[str, dict[str, torch.Tensor]]) -> None:
        zero = self._engine.optimizer
        for flat in zero.single_partition_of_fp32_groups:
            empty = {key: torch.zeros_like(flat) for key in MOMENTS}
            zero.state[flat] = {"step": torch.tensor(float(self.steps)), **empty}
        zero._lazy_init_hp_params_optimizer_state()  # otherwise only the first step creates it
        for name, parameter in self._named():
            for key in MOMENTS:
                moment = moments[name][key].to(parameter.device)
                self._deepspeed.utils.safe_set_full_optimizer_state(parameter, moment, key)


class _Losses(nn.Module):
    """The module that the engine runs: any function of the model."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, loss_of: Callable[[PreTrainedModel, Block], torch.Tensor], block: Block
    ) -> torch.Tensor:
        return loss_of(self.model, block)


def _nothing(model: PreTrainedModel, _: None) -> torch.Tensor:
    """A loss whose gradient is 0."""
    terms = ((parameter * 0).sum() for parameter in model.parameters())
    return sum(terms, start=torch.zeros(()))


def _import() -> ModuleType:
    try:
        return import_module("deepspeed")
    except Exception as error:  # its import checks compilers and drivers, and fails in many ways
        raise ParameterError(
            f"update.strategy is deepspeed, and deepspeed cannot be imported ({error}): install it "
            "with pip install 'deepspeed~=0.19.8', or set update.strategy to torch"
        ) from error


def _join_group_of_one(deepspeed: ModuleType) -> None:
    """Join a process group of only this process; all updates share it."""
    if distributed.is_initialized():
        if distributed.get_world_size() > 1:
            raise ParameterError(
                f"this process is one of {distributed.get_world_size()} ranks, but "
                "update.strategy deepspeed runs in one process: start it without a launcher"
            )
    else:
        backend = deepspeed.get_accelerator().communication_backend_name()
        distributed.init_process_group(backend, store=distributed.HashStore(), rank=0, world_size=1)
        atexit.register(_leave_group)
    # Otherwise DeepSpeed compiles an op for ranks that share memory, with any compiler it finds.
    communication: Any = import_module("deepspeed.comm.torch")
    communication.build_shm_op = lambda: None
    deepspeed.comm.init_distributed(verbose=False)


def _leave_group() -> None:
    if distributed.is_initialized():
        distributed.destroy_process_group()


def _engine(
    deepspeed: ModuleType,
    model: PreTrainedModel,
    parameters: DeepSpeedParameters,
    optimizer: OptimizerParameters,
) -> Any:
    size = sum(parameter.numel() for parameter in model.parameters())
    config = {
        "train_micro_batch_size_per_gpu": 1,  # required; DeepSpeed only counts samples with it
        "gradient_accumulation_steps": 1,
        "gradient_clipping": optimizer.max_grad_norm,
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
        "zero_optimization": {
            "stage": parameters.zero_stage,
            "reduce_bucket_size": min(size, _BUCKET),
            "allgather_bucket_size": min(size, _BUCKET),
        },
    }
    with _local_rank():
        engine, *_ = deepspeed.initialize(
            model=_Losses(model).eval(), optimizer=make_optimizer(model, optimizer), config=config
        )
    return engine


@contextmanager
def _local_rank() -> Iterator[None]:
    """Set the one environment variable of a launcher that DeepSpeed requires."""
    before = os.environ.get("LOCAL_RANK")
    os.environ.setdefault("LOCAL_RANK", "0")
    try:
        yield
    finally:
        if before is None:
            del os.environ["LOCAL_RANK"]
