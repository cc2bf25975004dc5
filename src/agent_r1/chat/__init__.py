"""Between text and tokens: how an agent's turns are written, read, and appended to its context.

1. The tokenizer's own chat template renders a conversation once (`ChatFormat.prompt_ids`).
2. What the policy samples is kept as sampled: no turn is ever rendered or encoded again.
3. After an action only new ids are appended (`ChatFormat.observation_ids`): what the template
   writes between two turns of the agent. Making a format proves that this equals the template's
   rendering of the whole conversation, and refuses a template for which it does not.
4. Text from outside (questions, tool results) is plain text: it never becomes control tokens.
"""

from __future__ import annotations

from transformers import PreTrainedTokenizerFast

from agent_r1.chat.base import FORMATS, ChatParameters, observation_messages, observation_text
from agent_r1.chat.rendering import ChatTemplateError
from agent_r1.chat.tokenizer import load_tokenizer
from agent_r1.chat.turns import ChatFormat
from agent_r1.extras import named_object

__all__ = [
    "FORMATS",
    "ChatFormat",
    "ChatParameters",
    "ChatTemplateError",
    "load_tokenizer",
    "make_format",
    "observation_messages",
    "observation_text",
]


def make_format(params: ChatParameters, tokenizer: PreTrainedTokenizerFast) -> ChatFormat:
    """The call format that ``params.format`` names, for this tokenizer.

    Raises:
        ChatTemplateError: the tokenizer's chat template cannot be extended turn by turn.
    """
    return named_object("chat format", params.format, FORMATS, type)(params, tokenizer)
