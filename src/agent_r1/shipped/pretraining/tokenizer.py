"""The tokenizer of the tiny base model: byte-level BPE in which a word always has the same ids.

Usual BPE merges the space before a word into its token. So ``Paris`` after a space, after a quote
and at the start of a line are different tokens, and copying a name means translating it. Here
whitespace and punctuation are separate tokens. Copying a name is copying ids, which a small model
can learn.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from agent_r1.shipped.pretraining.formats import END_OF_TEXT, TURN_END, TURN_START

MARKUP = ("<tool_call>", "</tool_call>", "<answer>", "</answer>")
"""Tokens reserved for the agent's own format. Pretraining never uses them."""

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""ChatML. All roles, including ``tool``, are rendered alike."""

_PIECES = (
    r" (?:is the|of the|that|of|the|is in|is|does|have) "  # frequent function words are one token
    r"|\b[a-z]+(?: (?!(?:is|of|that|the|does|have)\b)[a-z]+)+"  # "time zone" can be one token
    r"|: (?=[^\s\"{\[])|, (?=\w)"  # between label and value, and in lists
    r"|[^\w\s]+(?: [^\w\s]+)*"  # punctuation, including that of JSON
    r"|\d{1,2}|\s"  # digits in pairs: numbers are copied, not memorised
)


_JSON = (
    '{"name": "lookup", "arguments": {"title": "x"}}',
    '{"name": "search", "arguments": {"query": "x", "limit": "y"}}',
)
"""JSON tool calls, so that their punctuation is few tokens. The model never trains on them."""


def train_tokenizer(texts: Iterable[str], vocabulary: int) -> PreTrainedTokenizerFast:
    """Train a tokenizer with ``vocabulary`` ids on ``texts`` and JSON tool calls."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[END_OF_TEXT, TURN_START, TURN_END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(chain(texts, _JSON * 500), trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=TURN_END,
        pad_token=END_OF_TEXT,
        clean_up_tokenization_spaces=False,
    )
    fast.add_special_tokens({"additional_special_tokens": [TURN_START]})
    fast.add_tokens(list(MARKUP))
    fast.chat_template = CHAT_TEMPLATE
    return fast
