"""Policies on disk: Hugging Face folders with safetensors weights and a tokenizer."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Literal

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

from agent_r1.errors import UserError
from agent_r1.parameters import Parameters
from agent_r1.storage.atomic import named_in_errors

_PICKLES = {".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle"}
_TOKENIZER_FILES = {
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "tokenizer.model",
    "spiece.model",
    "chat_template.jinja",
    "chat_template.json",
}
_VOCABULARIES = {"tokenizer.json", "tokenizer.model", "spiece.model", "vocab.json", "vocab.txt"}
"""A tokenizer needs at least one of these files."""


class ModelFolderError(UserError, ValueError):
    """A folder cannot be used as a policy; the message says why."""


class ModelParameters(Parameters):
    """``model`` in ``conf/``: the base policy, the dtype and the threads."""

    path: Path = Path("data/01_raw/tiny_base")
    """A Hugging Face folder: ``config.json``, safetensors weights, a tokenizer."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Dtype of the weights in training. In bfloat16, small AdamW updates are rounded away."""
    threads: int | None = None
    """CPU threads of torch; null: torch decides."""

    @property
    def torch_dtype(self) -> torch.dtype:
        """``dtype`` as a torch dtype."""
        return getattr(torch, self.dtype)


def check_model_folder(path: Path) -> Path:
    """``path``, if a policy can be loaded from it. Called before any work starts.

    Raises:
        ModelFolderError: the folder is missing, lacks a config, weights or a tokenizer, or holds
            pickles.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise ModelFolderError(
            f"model folder '{folder}' does not exist: set model.path to a folder with config.json, "
            "safetensors weights and a tokenizer"
        )
    names = {file.name for file in refuse_pickles(folder).iterdir() if file.is_file()}
    if "config.json" not in names:
        raise ModelFolderError(
            f"model folder '{folder}' has no config.json: set model.path to a Hugging Face folder"
        )
    if not any(name.endswith(".safetensors") for name in names):
        raise ModelFolderError(
            f"model folder '{folder}' has no safetensors weights: finish its download, or convert "
            "its weights"
        )
    if not names & _VOCABULARIES:
        raise ModelFolderError(
            f"model folder '{folder}' has no tokenizer: copy the model's into it (one of "
            f"{', '.join(sorted(_VOCABULARIES))})"
        )
    return folder


def refuse_pickles(folder: Path) -> Path:
    """``folder``, if it holds no file that can run code when it is read.

    Raises:
        ModelFolderError: it holds pickles; the message names them.
    """
    pickles = sorted(file.name for file in folder.iterdir() if file.suffix in _PICKLES)
    if pickles:
        raise ModelFolderError(
            f"model folder '{folder}' holds pickled files ({', '.join(pickles)}), which can run "
            "code when they are read: convert the weights to safetensors and delete these files"
        )
    return folder


def load_policy(path: Path, dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    """The causal language model in a folder, in eval mode (no dropout), with gradients enabled.

    Dropout stays off in training too. With dropout, the ratio to the sampling policy would not be 1
    before the first step.

    Raises:
        ModelFolderError: see `check_model_folder`.
    """
    model = AutoModelForCausalLM.from_pretrained(
        check_model_folder(path),
        dtype=dtype,
        use_safetensors=True,
        local_files_only=True,
    )
    return model.eval()


def save_policy(model: PreTrainedModel, tokenizer_folder: Path, folder: Path) -> Path:
    """Write the model and a copy of the tokenizer's files into ``folder``.

    Equal weights give equal bytes.

    Raises:
        OSError: the folder cannot be written; the message names it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with named_in_errors(folder):
        model.save_pretrained(folder)
        for name in sorted(_TOKENIZER_FILES):
            source = Path(tokenizer_folder) / name
            if source.is_file():
                shutil.copyfile(source, folder / name)
    return folder


def copy_checkpoint(source: Path, folder: Path) -> Path:
    """Copy a checkpoint's content unchanged, without markers (names starting with ``_``)."""
    shutil.copytree(
        source, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("_*", ".*"),
        copy_function=shutil.copyfile,
    )  # fmt: skip
    return folder


def import_model(path: Path, folder: Path) -> Path:
    """Copy a policy's files from any Hugging Face folder: config, weights, tokenizer.

    Raises:
        ModelFolderError: see `check_model_folder`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    wanted = _TOKENIZER_FILES | {"config.json", "generation_config.json"}
    for file in sorted(check_model_folder(path).iterdir()):
        weights = file.name.endswith((".safetensors", ".safetensors.index.json"))
        if file.is_file() and (weights or file.name in wanted):
            shutil.copyfile(file, folder / file.name)
    return folder


def use_threads(model: ModelParameters) -> None:
    """Apply ``model.threads`` to torch."""
    if model.threads is not None:
        torch.set_num_threads(model.threads)
