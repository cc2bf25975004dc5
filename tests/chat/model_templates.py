"""Chat templates in the manner of well-known models, and tiny tokenizers with their control tokens.

They are written anew and say less than the originals, but keep what matters to a format: where
tools and results stand, what becomes of reasoning and blanks, what ends a turn.
"""

from __future__ import annotations

import functools

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from toy_tokenizer import TEXTS
from transformers import PreTrainedTokenizerFast

_CHATML_TOOLS = (
    "# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are "
    "provided with function signatures within <tools></tools> XML tags:\n<tools>"
    "{% for tool in tools %}\n{{ tool | tojson }}{% endfor %}\n</tools>\n\nFor each function call, "
    "return a json object with function name and arguments within <tool_call></tool_call> XML tags:"
    '\n<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
)
_CHATML_RESULT = (
    "{% if loop.first or messages[loop.index0 - 1].role != 'tool' %}<|im_start|>user{% endif %}"
    "\n<tool_response>\n{{ m.content }}\n</tool_response>"
    "{% if loop.last or messages[loop.index0 + 1].role != 'tool' %}<|im_end|>\n{% endif %}"
)
_HEADER = "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"

QWEN2_5 = (
    "<|im_start|>system\n{% if messages[0].role == 'system' %}{{ messages[0].content }}"
    "{% else %}You are a helpful assistant.{% endif %}"
    "{% if tools %}\n\n" + _CHATML_TOOLS + "{% endif %}<|im_end|>\n"
    "{% for m in messages %}{% if m.role == 'user' or (m.role == 'assistant' and not m.tool_calls) "
    "%}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% elif m.role == 'assistant' %}"
    "<|im_start|>assistant{% if m.content %}\n{{ m.content }}{% endif %}"
    "{% for call in m.tool_calls %}\n<tool_call>\n"
    '{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}\n'
    "</tool_call>{% endfor %}<|im_end|>\n"
    "{% elif m.role == 'tool' %}" + _CHATML_RESULT + "{% endif %}{% endfor %}" + _HEADER
)

QWEN3 = (
    "{% if tools %}<|im_start|>system\n{% if messages[0].role == 'system' %}"
    "{{ messages[0].content + '\n\n' }}{% endif %}" + _CHATML_TOOLS + "<|im_end|>\n"
    "{% elif messages[0].role == 'system' %}<|im_start|>system\n{{ messages[0].content }}<|im_end|>"
    "\n{% endif %}{% set last = namespace(query=0) %}"
    "{% for m in messages %}{% if m.role == 'user' %}{% set last.query = loop.index0 %}{% endif %}"
    "{% endfor %}"
    "{% for m in messages %}{% if m.role == 'user' %}<|im_start|>user\n{{ m.content }}<|im_end|>\n"
    "{% elif m.role == 'assistant' %}{% set reasoning = '' %}{% set content = m.content %}"
    "{% if '</think>' in content %}"
    "{% set reasoning = content.split('</think>')[0].split('<think>')[-1].strip('\n') %}"
    "{% set content = content.split('</think>')[-1].lstrip('\n') %}{% endif %}"
    "<|im_start|>assistant\n{% if loop.index0 > last.query and (loop.last or reasoning) %}<think>\n"
    "{{ reasoning + '\n' }}</think>\n\n{% endif %}{{ content }}"
    "{% for call in m.tool_calls or [] %}{% if content or not loop.first %}\n{% endif %}<tool_call>"
    '\n{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}\n'
    "</tool_call>{% endfor %}<|im_end|>\n"
    "{% elif m.role == 'tool' %}" + _CHATML_RESULT + "{% endif %}{% endfor %}" + _HEADER
)

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
)

SMOLLM2 = (
    "{% if messages[0].role != 'system' %}<|im_start|>system\nYou are a helpful AI assistant named "
    "SmolLM.<|im_end|>\n{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "<|im_end|>\n{% endfor %}" + _HEADER
)

GPT_OSS = (
    "<|start|>system<|message|>You are a large language model.\n"
    "Current date: {{ strftime_now('%Y-%m-%d') }}\n\nReasoning: {{ reasoning_effort or 'medium' }}"
    "\n\n# Valid channels: analysis, commentary, final.<|end|>"
    "{% set system = messages[0].role == 'system' %}{% if system or tools %}"
    "<|start|>developer<|message|>{% if system %}# Instructions\n\n{{ messages[0].content }}\n\n"
    "{% endif %}{% if tools %}# Tools\n\nnamespace functions {\n{% for tool in tools %}"
    "// {{ tool.function.description }}\ntype {{ tool.function.name }} = "
    "{{ tool.function.parameters | tojson }};\n{% endfor %}}{% endif %}<|end|>{% endif %}"
    "{% set called = namespace(name=none) %}"
    "{% for m in messages %}{% if m.role == 'user' %}<|start|>user<|message|>{{ m.content }}<|end|>"
    "{% elif m.role == 'tool' %}{% if called.name is none %}"
    "{{ raise_exception('there was no tool call') }}{% endif %}<|start|>functions.{{ called.name }}"
    " to=assistant<|channel|>commentary<|message|>{{ m.content | tojson }}<|end|>"
    "{% elif m.tool_calls %}{% set answered = namespace(later=false) %}"
    "{% for later in messages[loop.index:] %}"
    "{% if later.role == 'assistant' and not later.tool_calls %}{% set answered.later = true %}"
    "{% endif %}{% endfor %}{% if m.thinking and not answered.later %}"
    "<|start|>assistant<|channel|>analysis<|message|>{{ m.thinking }}<|end|>{% endif %}"
    "<|start|>assistant to=functions.{{ m.tool_calls[0].function.name }}<|channel|>commentary json"
    "<|message|>{{ m.tool_calls[0].function.arguments | tojson }}<|call|>"
    "{% set called.name = m.tool_calls[0].function.name %}"
    "{% elif m.role == 'assistant' %}<|start|>assistant<|channel|>final<|message|>{{ m.content }}"
    "<|end|>{% set called.name = none %}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant{% endif %}"
)

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
    "qwen2.5": (QWEN2_5, _CHATML, _TAGS, "<|im_end|>"),
    "qwen3": (QWEN3, _CHATML, (*_TAGS, "<think>", "</think>"), "<|im_end|>"),
    "llama3": (LLAMA3, _LLAMA, (), "<|eot_id|>"),
    "smollm2": (SMOLLM2, _CHATML, (), "<|im_end|>"),
    "gpt-oss": (GPT_OSS, _HARMONY, (), "<|return|>"),
}
"""Name → template, control tokens, added tokens that are not special, end of text."""

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
    # transformers takes away a line break right behind a block.
    fast.chat_template = template.replace("%}\n", "%}{{ '\n' }}")
    return fast
