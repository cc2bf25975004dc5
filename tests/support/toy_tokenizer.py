"""A tiny byte-level BPE tokenizer with the control tokens of the agent's format."""

from __future__ import annotations

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TAGS = ["<tool_call>", "</tool_call>", "<answer>", "</answer>"]
TEXTS = [
    "the capital of France is Paris and the capital of Spain is Madrid",
    '{"name": "search", "arguments": {"query": "France"}}',
    "system user assistant tool search answer question page\n\n\nwith  blanks\n\nand lines",
] * 4


def build_tokenizer(template=CHATML, *, tags_are_special=True, regex=True):
    """See the module; ``regex=False`` lets BPE merge across words and line breaks."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=regex)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=[*SPECIALS, *TAGS] if tags_are_special else SPECIALS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    if not tags_are_special:
        tokenizer.add_tokens([AddedToken(tag, special=False, normalized=False) for tag in TAGS])
    return wrap(tokenizer, template)


def wrap(tokenizer, template=CHATML):
    """A tokenizers object as transformers has it."""
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    fast.chat_template = template
    return fast
