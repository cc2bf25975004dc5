"""Chat templates of well-known models, and tiny tokenizers with their control tokens.

Those in ``templates/`` are the originals. That of Llama 3 is not free to be copied: it is written
anew, and says less, but keeps what matters to a format: where tools and results stand, what becomes
of blanks, what ends a turn.
"""

from __future__ import annotations

import functools

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from tests.support import REPOSITORY
from tests.support.toy_tokenizer import TEXTS

_ORIGINALS = REPOSITORY / "tests/chat/templates"

LLAMA3 = (
    "{{ bos_token }}{% set date = strftime_now('%d %b %Y') %}"
    "{% if messages[0].role == 'system' %}{% set system = messages[0].content | trim %}"
    "{% set messages = messages[1:] %}{% else %}{% set system = '' %}{% endif %}"
    "<|start_header_id|>system<|end_header_id|>\n\n{% if tools %}Environment: ipython\n{% endif %}"
    "Cutting Knowledge Date: December 2023\nToday Date: {{ date + '\n\n' + system }}<|eot_id|>"
    "{% if tools %}<|start_header_id|>user<|end_header_id|>\n\nGiven the following functions, "
    'respond in the format {"name": function name, "parameters": dictionary of argument name and '
    "its value}.\n\n{% for tool in tools %}{{ tool | tojson(indent=4) + '\n\n' }}{% endfor %}"
    "{{ messages[0].content | trim }}<|eot_id|>{% set messages = messages[1:] %}{% endif %}"
    "{% for m in messages %}{% if m.tool_calls %}"
    "{% if m.tool_calls | length != 1 %}{{ raise_exception('one call at once') }}{% endif %}"
    "<|start_header_id|>assistant<|end_header_id|>\n\n"
    '{"name": "{{ m.tool_calls[0].function.name }}", '
    '"parameters": {{ m.tool_calls[0].function.arguments | tojson }}}<|eot_id|>'
    "{% elif m.role == 'tool' %}<|start_header_id|>ipython<|end_header_id|>\n\n"
    "{{ m.content | tojson }}<|eot_id|>{% else %}"
    "<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n{{ m.content | trim }}<|eot_id|>"
    "{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
).replace("%}\n", "%}{{ '\n' }}")  # transformers takes away a line break right behind a block

_CHATML = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_LLAMA = (
    "<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>",
    "<|eot_id|>", "<|eom_id|>", "<|python_tag|>",
)  # fmt: skip
_HARMONY = (
    "<|startoftext|>", "<|endoftext|>", "<|return|>", "<|constrain|>", "<|channel|>", "<|start|>",
    "<|end|>", "<|message|>", "<|call|>",
)  # fmt: skip
_TAGS = ("<tool_call>", "</tool_call>")

MODELS = {
    "qwen2.5": ("qwen2_5.jinja", _CHATML, _TAGS, "<|im_end|>"),
    "qwen3": ("qwen3.jinja", _CHATML, (*_TAGS, "<think>", "</think>"), "<|im_end|>"),
    "llama3": (None, _LLAMA, (), "<|eot_id|>"),
    "smollm2": ("smollm2.jinja", _CHATML, (), "<|im_end|>"),
    "gpt-oss": ("gpt_oss.jinja", _HARMONY, (), "<|return|>"),
}
"""Name → original template, control tokens, added tokens that are not special, end of text."""

_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How all of these models cut text before BPE."""


@functools.cache
def model_tokenizer(name: str) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer for a template; not to be changed by a test."""
    template, control, added, end = MODELS[name]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_WORDS), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=list(control),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.add_tokens([AddedToken(tag, special=False, normalized=False) for tag in added])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=end, bos_token=control[0])
    original = _ORIGINALS / template if template else None
    fast.chat_template = original.read_text(encoding="utf-8") if original else LLAMA3
    return fast
