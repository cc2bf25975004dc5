"""Loads a policy's tokenizer: from its folder, never from a network."""

from __future__ import annotations

from pathlib import Path

from transformers import AutoTokenizer, PreTrainedTokenizerFast

from agent_r1.parameters import ParameterError


def load_tokenizer(path: Path | str) -> PreTrainedTokenizerFast:
    """The tokenizer of a Hugging Face folder.

    Raises:
        ParameterError: the folder is missing, or has no fast tokenizer that can be loaded.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise ParameterError(f"model folder '{folder}' does not exist")
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        # transformers raises any of these for a folder without (readable) tokenizer files.
        reason = str(error).strip().splitlines()[:1]
        raise ParameterError(
            f"model folder '{folder}' has no tokenizer that can be loaded "
            f"(tokenizer.json and tokenizer_config.json): {' '.join(reason)}"
        ) from None
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise ParameterError(f"the tokenizer in '{folder}' has no fast version (tokenizer.json)")
    return tokenizer
