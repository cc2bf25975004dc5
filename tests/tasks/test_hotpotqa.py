import json
import re

import pytest

from agent_r1.tasks.hotpotqa import TaskFileError, load_hotpotqa

ROW = {
    "_id": "5a8b57f25542995d1e6f1371",
    "question": "Were Scott Derrickson and Ed Wood of the same nationality?",
    "answer": "yes",
    "type": "comparison",
    "level": "hard",
    "supporting_facts": [["Scott Derrickson", 0], ["Ed Wood", 0]],
    "context": [
        ["Ed Wood", ["Edward Davis Wood Jr. was an American filmmaker.", " He was born in 1924."]],
        ["Scott Derrickson", ["Scott Derrickson is an American director."]],
    ],
}


@pytest.fixture
def write(tmp_path):
    def write(rows):
        path = tmp_path / "hotpot_dev.json"
        path.write_text(rows if isinstance(rows, str) else json.dumps(rows))
        return path

    return write


def test_a_question_becomes_a_task_and_its_context_becomes_documents(write):
    tasks, documents = load_hotpotqa(write([ROW]), "held_out")
    task = tasks.iloc[0]
    assert task["task_id"] == "hotpotqa:5a8b57f25542995d1e6f1371"
    assert (task["split"], task["family"], task["hops"]) == ("held_out", "comparison", 2)
    assert task["prompt"] == ROW["question"]
    assert list(task["answers"]) == ["yes"]
    payload = json.loads(task["payload"])
    assert payload["supporting_facts"] == ROW["supporting_facts"]
    assert payload["context"] == ROW["context"]
    assert payload["entities"] == ["Scott Derrickson", "Ed Wood"]
    texts = dict(zip(documents["title"], documents["text"], strict=True))
    assert (
        texts["Ed Wood"] == "Edward Davis Wood Jr. was an American filmmaker. He was born in 1924."
    )


def test_a_paragraph_that_several_questions_share_is_one_document(write):
    other = ROW | {"_id": "2"}
    tasks, documents = load_hotpotqa(write([ROW, other]), "train")
    assert len(tasks) == 2
    assert sorted(documents["title"]) == ["Ed Wood", "Scott Derrickson"]


def test_an_empty_file_gives_empty_tables(write):
    tasks, documents = load_hotpotqa(write([]), "train")
    assert len(tasks) == len(documents) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer": None}, r"hotpot_dev.json: row 1, key 'answer': expected text, got None"),
        ({"question": "  "}, r"row 1, key 'question': expected text"),
        ({"supporting_facts": [["Ed Wood"]]}, r"row 1, key 'supporting_facts'"),
        ({"context": [["Ed Wood", "one text"]]}, r"row 1, key 'context'"),
        ({"context": [["Ed Wood", [1]]]}, r"row 1, key 'context'"),
        ({}, r"row 1, key '_id': has the same value in row 0"),
    ],
)
def test_a_malformed_row_is_named_by_file_row_and_key(write, change, message):
    broken = ROW | ({"_id": "2"} if change else {}) | change
    with pytest.raises(TaskFileError, match=message):
        load_hotpotqa(write([ROW, broken]), "train")


def test_the_test_set_without_answers_is_refused(write):
    row = {key: ROW[key] for key in ROW if key != "answer"}
    with pytest.raises(TaskFileError, match=r"row 0: key 'answer' is missing"):
        load_hotpotqa(write([row]), "train")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{not json", "not JSON"),
        ('{"a": 1}', "expected a list"),
        ("[3]", "row 0: expected an object"),
    ],
)
def test_a_file_that_is_not_a_list_of_questions_is_refused(write, content, message):
    with pytest.raises(TaskFileError, match=message):
        load_hotpotqa(write(content), "train")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(TaskFileError, match=re.escape(f"{tmp_path / 'none.json'}: no such file")):
        load_hotpotqa(tmp_path / "none.json", "train")


def test_an_unknown_split_is_refused_before_the_file_is_read(tmp_path):
    with pytest.raises(ValueError, match="unknown split 'test'"):
        load_hotpotqa(tmp_path / "none.json", "test")
