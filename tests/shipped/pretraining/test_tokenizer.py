"""The tokenizer of the tiny base model: a name always has the same ids."""

import pytest

from agent_r1.shipped.pretraining.tokenizer import MARKUP, train_tokenizer

TEXTS = ["What is the river of Sao Tome?\nriver: Lyon, Rio Negro\npopulation: 12,345"] * 50


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(TEXTS, 420)


@pytest.mark.parametrize(
    "text",
    [
        "What is the river of {}?",
        "{}: what is its river?",
        "Which river does {} have?",
        "Which river does the country that {} is in have?",
        "Find the river listed for {}.",
        "a river {} in b",
        "river: {}",
        "rivers: Nile, {}, Don",
        '{{"query": "{}"}}',
        "[{}]\n",
        "Asia/{}",
        "<tool_call>{}</tool_call>",
    ],
)
@pytest.mark.parametrize("name", ["Lyon", "Rio Negro", "Reykjavik"])
def test_a_name_has_the_same_ids_everywhere(tokenizer, text, name):
    alone = tokenizer.encode(name, add_special_tokens=False)
    inside = tokenizer.encode(text.format(name), add_special_tokens=False)
    spots = range(len(inside) - len(alone) + 1)
    assert any(inside[i : i + len(alone)] == alone for i in spots)


@pytest.mark.parametrize(
    "text", ["Łódź — 東京\t x  y\r\n", "a: .fr, +33; 1,234.5", "<|im_start|>x"]
)
def test_text_survives_the_round_trip(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text, add_special_tokens=False)) == text


@pytest.mark.parametrize(("number", "tokens"), [("7", 1), ("20", 1), ("2024", 2), ("120245", 3)])
def test_digits_are_split_into_pairs(number, tokens):
    numbers = [" ".join(f"{number:02}" for number in range(100))] * 3
    tokenizer = train_tokenizer([*TEXTS, *numbers], 520)
    assert len(tokenizer.encode(number, add_special_tokens=False)) == tokens


def test_a_label_of_two_words_can_be_one_token():
    texts = ["What is the time zone of Lyon?\ntime zone: Lyon"] * 50
    tokenizer = train_tokenizer(texts, 420)
    label = tokenizer.encode("time zone", add_special_tokens=False)
    assert len(label) == 1
    assert tokenizer.encode(texts[0], add_special_tokens=False).count(label[0]) == 2


def test_roles_and_markup_are_single_tokens(tokenizer):
    for text in ("<|im_start|>", "<|im_end|>", "<|endoftext|>", *MARKUP):
        assert len(tokenizer.encode(text, add_special_tokens=False)) == 1


def test_the_chat_template_renders_every_role_alike(tokenizer):
    messages = [{"role": "user", "content": "q"}, {"role": "tool", "content": "r"}]
    assert tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True) == (
        "<|im_start|>user\nq<|im_end|>\n<|im_start|>tool\nr<|im_end|>\n<|im_start|>assistant\n"
    )


def test_pad_and_end_of_turn_are_different_tokens(tokenizer):
    assert tokenizer.pad_token_id != tokenizer.eos_token_id
