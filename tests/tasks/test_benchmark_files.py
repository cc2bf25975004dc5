"""Loaders of official formats: what a row becomes, and how errors name a malformed row."""

import gzip
import json

import pytest

from agent_r1 import tables
from agent_r1.tasks.fanoutqa import load_fanoutqa
from agent_r1.tasks.files import TaskFileError, TaskFiles
from agent_r1.tasks.gsm8k import load_gsm8k
from agent_r1.tasks.humaneval import load_humaneval
from agent_r1.tasks.mbpp import load_mbpp
from agent_r1.tasks.musique import load_musique
from agent_r1.tasks.parameters import TasksParameters
from agent_r1.tasks.preparation import load_tasks
from agent_r1.tasks.two_wiki import load_two_wiki
from agent_r1.tasks.wikipedia import load_wikipedia

TWO_WIKI = {
    "_id": "13f5ad2c",
    "type": "compositional",
    "question": "Where was the builder of the Low Bridge born?",
    "context": [
        ["Low Bridge", ["The Low Bridge is a bridge.", " It was built by Ann Poe."]],
        ["Ann Poe", ["Ann Poe was born in Oslo."]],
        ["High Bridge", ["Another bridge."]],
    ],
    "supporting_facts": [["Low Bridge", 1], ["Ann Poe", 0]],
    "evidences": [["Low Bridge", "builder", "Ann Poe"], ["Ann Poe", "place of birth", "Oslo"]],
    "answer": "Oslo",
}
MUSIQUE = {
    "id": "2hop__1_2",
    "paragraphs": [
        {"idx": 0, "title": "Ann Poe", "paragraph_text": "Born in Oslo.", "is_supporting": True},
        {"idx": 1, "title": "Oak", "paragraph_text": "A tree.", "is_supporting": False},
        {"idx": 2, "title": "Low Bridge", "paragraph_text": "By Ann Poe.", "is_supporting": True},
    ],
    "question": "Where was the builder of the Low Bridge born?",
    "question_decomposition": [
        {"id": 1, "question": "Low Bridge >> builder", "answer": "Ann Poe",
         "paragraph_support_idx": 2},
        {"id": 2, "question": "#1 >> place of birth", "answer": "Oslo", "paragraph_support_idx": 0},
    ],
    "answer": "Oslo",
    "answer_aliases": ["Oslo, Norway", "Oslo"],
    "answerable": True,
}  # fmt: skip
FANOUT = {
    "id": "f1",
    "question": "How old are the two founders?",
    "decomposition": [
        {"id": "a", "question": "Who are they?", "decomposition": [], "answer": ["Ann", "Bo"],
         "depends_on": [], "evidence": {"pageid": 1, "revid": 2, "title": "Firm", "url": "u"}},
        {"id": "b", "question": "How old?", "answer": 7, "depends_on": ["a"], "evidence": None,
         "decomposition": [
             {"id": "c", "question": "Ann?", "decomposition": [], "answer": 7, "depends_on": [],
              "evidence": {"pageid": 3, "revid": 4, "title": "Ann", "url": "u"}}]},
    ],
    "answer": {"Ann": 7, "Bo": [8, True]},
    "categories": ["Business", "People"],
}  # fmt: skip
GSM8K = {
    "question": "Tom has 3 bags of 4 nuts and eats 2. How many are left?",
    "answer": "He has 3*4=<<3*4=12>>12 nuts.\nThere are 12-2=<<12-2=10>>10 left.\n#### 10",
}
HUMANEVAL = {
    "task_id": "HumanEval/0",
    "prompt": 'import math\n\n\ndef double(x: int) -> int:\n    """ Twice x. """\n',
    "entry_point": "double",
    "canonical_solution": "    return 2 * x\n",
    "test": "def check(candidate):\n    assert candidate(2) == 4\n",
}
MBPP = {
    "task_id": 11,
    "text": "Write a function to add two numbers.",
    "code": "def helper(x):\n    return x\ndef add(a, b=1):\n    return helper(a) + b",
    "test_list": ["assert add(1, 2) == 3", "assert add(4) == 5"],
    "test_setup_code": "",
    "challenge_test_list": ["assert add(-1, 1) == 0"],
}


def listed(path, *rows):
    path.write_text(json.dumps(rows))
    return path


def lines(path, *rows):
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n")
    return path


FORMATS = {
    "2wikimultihopqa": (load_two_wiki, listed, TWO_WIKI, "_id"),
    "musique": (load_musique, lines, MUSIQUE, "id"),
    "fanoutqa": (load_fanoutqa, listed, FANOUT, "id"),
    "gsm8k": (load_gsm8k, lines, GSM8K, "question"),
    "humaneval": (load_humaneval, lines, HUMANEVAL, "task_id"),
    "mbpp": (load_mbpp, lines, MBPP, "task_id"),
}


def load(name, tmp_path, *rows):
    loader, write, _, _ = FORMATS[name]
    return loader(write(tmp_path / "file", *rows))


def one(name, tmp_path, **changes):
    """The task of a file with one row, its payload, and the documents."""
    tasks, documents = load(name, tmp_path, FORMATS[name][2] | changes)
    tables.to_arrow(tasks, "tasks")
    (task,) = tasks.to_dict("records")
    return task, json.loads(task["payload"]), documents


def searched(payload):
    return [turn["call"]["arguments"]["query"] for turn in payload["script"][:-1]]


def test_2wikimultihopqa(tmp_path):
    task, payload, documents = one("2wikimultihopqa", tmp_path)
    assert (task["task_id"], task["family"]) == ("2wikimultihopqa:13f5ad2c", "compositional")
    assert (task["hops"], list(task["answers"])) == (2, ["Oslo"])
    assert searched(payload) == ["Low Bridge", "Ann Poe"]
    assert payload["context"] == TWO_WIKI["context"]
    assert documents["title"].tolist() == ["Low Bridge", "Ann Poe", "High Bridge"]
    assert documents["text"][0] == "The Low Bridge is a bridge. It was built by Ann Poe."


def test_musique_accepts_aliases_and_searches_in_the_order_of_the_decomposition(tmp_path):
    task, payload, documents = one("musique", tmp_path)
    assert (task["task_id"], task["family"], task["hops"]) == ("musique:2hop__1_2", "2hop", 2)
    assert list(task["answers"]) == ["Oslo", "Oslo, Norway"]
    assert searched(payload) == ["Low Bridge", "Ann Poe"]  # in the order of the decomposition
    assert payload["context"][1] == ["Oak", ["A tree."]]
    assert len(documents) == 3


NAMES = [
    {"Q_id": "Q585", "aliases": ["Kristiania", " Oslo "], "demonyms": ["Osloite", ""]},
    {"Q_id": "Q1", "aliases": ["cosmos"], "demonyms": []},
]


@pytest.mark.parametrize(
    ("changes", "accepted"),
    [
        ({"answer_id": "Q585"}, ["Oslo", "Kristiania", "Osloite"]),
        ({"answer_id": "Q9"}, ["Oslo"]),
        ({"answer_id": None}, ["Oslo"]),
        ({}, ["Oslo"]),
    ],
)
def test_2wikimultihopqa_accepts_the_names_of_the_answer_in_wikidata(tmp_path, changes, accepted):
    listed(tmp_path / "dev.json", TWO_WIKI | changes)
    lines(tmp_path / "id_aliases.json", *NAMES)
    own = {"files": {"held_out": "dev.json"}, "aliases": "id_aliases.json"}
    parameters = TasksParameters.read({"sources": {"2wikimultihopqa": own}}, "tasks")
    files = TaskFiles(tmp_path)
    tasks, _ = load_tasks(parameters, "multihop_qa", (), files)
    assert list(tasks["answers"][0]) == accepted
    assert [path.name for path in files.used] == ["dev.json", "id_aliases.json"]


def test_2wikimultihopqa_names_a_malformed_line_of_the_aliases(tmp_path):
    path = lines(tmp_path / "id_aliases.json", NAMES[0], {"Q_id": "Q2", "aliases": []})
    with pytest.raises(TaskFileError, match=r"id_aliases\.json: line 2: key 'demonyms' is missing"):
        load_two_wiki(listed(tmp_path / "dev.json", TWO_WIKI), aliases=path)


def test_different_paragraphs_with_one_title_are_kept_once_each(tmp_path):
    """MuSiQue splits pages into paragraphs, and each question may need another one."""
    other = {"idx": 0, "title": "Ann Poe", "paragraph_text": "Died in Rome.", "is_supporting": True}
    second = MUSIQUE | {"id": "2hop__3", "paragraphs": [other, *MUSIQUE["paragraphs"][1:]]}
    files = {"train": "a.jsonl", "held_out": "b.jsonl"}
    lines(tmp_path / "a.jsonl", MUSIQUE)
    lines(tmp_path / "b.jsonl", second)
    own = {"musique": {"files": files, "pages": "shared"}}
    parameters = TasksParameters.read({"sources": own}, "tasks")
    _, documents = load_tasks(parameters, "multihop_qa", (), TaskFiles(tmp_path))
    assert sorted(documents["text"]) == ["A tree.", "Born in Oslo.", "By Ann Poe.", "Died in Rome."]
    assert documents["document_id"].is_unique
    one_file, _ = load_musique(lines(tmp_path / "c.jsonl", MUSIQUE, second))
    assert len(load_musique(tmp_path / "c.jsonl")[1]) == 4
    assert len(one_file) == 2


def test_musique_questions_without_an_answer_are_skipped(tmp_path):
    tasks, _ = load("musique", tmp_path, MUSIQUE, MUSIQUE | {"id": "x", "answerable": False})
    assert tasks["task_id"].tolist() == ["musique:2hop__1_2"]


def test_fanoutqa_answers_of_any_shape_become_one_string(tmp_path):
    task, payload, documents = one("fanoutqa", tmp_path)
    assert list(task["answers"]) == ["Ann: 7; Bo: 8, yes"]
    assert (task["family"], task["hops"]) == ("Business", 2)
    assert searched(payload) == ["Firm", "Ann"]
    assert payload["answer"] == FANOUT["answer"]
    assert documents.empty


def test_gsm8k_annotations_become_calculator_calls(tmp_path):
    task, payload, _ = one("gsm8k", tmp_path)
    assert list(task["answers"]) == ["10"]
    *calls, last = payload["script"]
    assert [turn["call"]["arguments"]["expression"] for turn in calls] == ["3*4", "12-2"]
    assert last == {"answer": "10"}
    assert payload["mistakes"][0][-1] == {"answer": "12"}  # one computation too early


@pytest.mark.parametrize(
    ("solution", "accepted", "calls"),
    [
        ("#### 1,234", "1234", 0),
        ("20% is <<20%*5=1>>1\n#### -2.5", "-2.5", 0),
        ("<<6/2=3>>3\n####  3\n", "3", 1),
    ],
)
def test_gsm8k_skips_annotations_that_are_not_computable(tmp_path, solution, accepted, calls):
    task, payload, _ = one("gsm8k", tmp_path, answer=solution)
    assert list(task["answers"]) == [accepted]
    assert len(payload["script"]) == calls + 1
    assert "mistakes" not in payload


def test_humaneval_shows_the_prompt_and_hides_the_tests(tmp_path):
    task, payload, _ = one("humaneval", tmp_path)
    assert "def double(x: int)" in task["prompt"]
    assert (payload["prelude"], payload["entry_point"]) == (HUMANEVAL["prompt"], "double")
    assert payload["tests"] == HUMANEVAL["test"]
    scope = {}
    exec(payload["prelude"] + HUMANEVAL["canonical_solution"], scope)
    assert scope["double"](4) == 8
    assert list(task["answers"]) == []


def test_mbpp_shows_the_signature_of_the_function_that_the_tests_call(tmp_path):
    task, payload, _ = one("mbpp", tmp_path)
    assert task["prompt"].endswith("```python\ndef add(a, b=1):\n```")
    assert payload["tests"] == "assert add(1, 2) == 3\nassert add(4) == 5"
    sanitized = {"prompt": "Add.", "test_imports": ["import math"], "text": None}
    row = {k: v for k, v in (MBPP | sanitized).items() if v is not None and k != "test_setup_code"}
    tasks, _ = load("mbpp", tmp_path, row)
    assert tasks["prompt"][0].startswith("Add.\n")
    assert json.loads(tasks["payload"][0])["prelude"] == "import math"


PAIRS = {
    "code": "import math\r\nclass Pair(object):\r\n"
    "\tdef __init__(self, a, b):\r\n\t\tself.a = a\r\n"
    "\tdef width(self):\r\n\t\treturn 7\r\n\tdef _secret(self):\r\n\t\treturn 8\r\n"
    "class Unused:\r\n\tpass\r\ndef chain(arr, n):\r\n\treturn 9",
    "test_setup_code": "import math\nTOP = 5\nroot = Pair(1, 2)\nroot.b = math.pi",
    "test_list": ["assert chain([Pair(5, 24), root], 2) == 9 and root.width() == 7"],
}


def test_mbpp_shows_the_classes_whose_objects_the_tests_create(tmp_path):
    task, payload, _ = one("mbpp", tmp_path, **PAIRS)
    head = task["prompt"].partition("```python\n")[2]
    assert head == (
        "import math\nclass Pair(object):\n\n    def __init__(self, a, b):\n        self.a = a\n\n"
        "    def width(self):\n        ...\ndef chain(arr, n):\n```"
    )
    assert payload["classes"] == ["Pair"]
    # Set-up code that uses the solution runs before the tests. The rest runs before the solution.
    assert payload["prelude"] == "import math\nTOP = 5"
    assert payload["tests"].startswith("root = Pair(1, 2)\nroot.b = math.pi\nassert chain(")


@pytest.mark.parametrize(("name", "entry_point"), [("add", None), ("sum", "sum"), ("bisect",) * 2])
def test_mbpp_has_an_entry_point_if_python_has_a_function_of_this_name(tmp_path, name, entry_point):
    changes = {
        "code": f"def {name}(a, b): return a + b",
        "test_list": [f"assert {name}(1, 2) == 3"],
        "challenge_test_list": [],
    }
    assert one("mbpp", tmp_path, **changes)[1]["entry_point"] == entry_point


def test_mbpp_reads_the_sanitized_list(tmp_path):
    row = {key: MBPP[key] for key in ("task_id", "code", "test_list")}
    row |= {"prompt": "Add.", "test_imports": [], "source_file": "a.ipynb"}
    tasks, _ = load_mbpp(listed(tmp_path / "sanitized-mbpp.json", row, row | {"task_id": 12}))
    assert tasks["task_id"].tolist() == ["mbpp:11", "mbpp:12"]
    assert json.loads(tasks["payload"][0])["prelude"] == ""
    with pytest.raises(TaskFileError, match=r"mbpp\.json: row 1: key 'test_list' is missing"):
        load_mbpp(listed(tmp_path / "mbpp.json", row, {"task_id": 1, "code": "x = 1"}))


def test_mbpp_uses_challenge_tests_only_if_configured(tmp_path):
    lines(tmp_path / "mbpp.jsonl", MBPP)
    own = {"files": {"train": "mbpp.jsonl"}, "challenge_tests": True}
    parameters = TasksParameters.read({"sources": {"mbpp": own}}, "tasks")
    tasks, _ = load_tasks(parameters, "code", (), TaskFiles(tmp_path))
    assert json.loads(tasks["payload"][0])["tests"].endswith("\nassert add(-1, 1) == 0")


@pytest.mark.parametrize("name", ["humaneval", "mbpp"])
def test_p34_the_agent_sees_no_test(tmp_path, name):
    task, payload, _ = one(name, tmp_path)
    assert "assert" not in task["prompt"]
    for line in payload["tests"].splitlines():
        assert line.strip() not in task["prompt"]


@pytest.mark.parametrize("name", FORMATS)
def test_a_duplicate_id_is_named(tmp_path, name):
    _, _, row, key = FORMATS[name]
    with pytest.raises(
        TaskFileError, match=rf"file: \w+ [12], key '{key}': has the same value in \w+ [01]"
    ):
        load(name, tmp_path, row, row)


@pytest.mark.parametrize("name", FORMATS)
def test_the_error_for_a_missing_file_says_where_to_get_it(tmp_path, name):
    with pytest.raises(
        TaskFileError, match=r"absent: no such file; (the official|it is in the pack)"
    ):
        FORMATS[name][0](tmp_path / "absent")


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_that_is_not_json_is_named(tmp_path, name):
    path = tmp_path / "broken.json"
    path.write_text('{"a": ')
    with pytest.raises(TaskFileError, match=r"broken\.json: .*not JSON"):
        FORMATS[name][0](path)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("2wikimultihopqa", {"answer": " "}, r"row 0, key 'answer': expected text"),
        (
            "2wikimultihopqa",
            {"evidences": [["a", "b"]]},
            r"row 0, key 'evidences': expected \[\[",
        ),
        ("2wikimultihopqa", {"context": [["a", "b"]]}, r"row 0, key 'context': expected \[\[title"),
        (
            "musique",
            {"answer_aliases": [1]},
            r"line 1, key 'answer_aliases': expected a list of",
        ),
        (
            "musique",
            {"paragraphs": [{"idx": 0}]},
            r"line 1, key 'paragraphs', item 0: key 'title'",
        ),
        ("musique", {"paragraphs": []}, r"item 0, key 'paragraph_support_idx': no paragraph"),
        ("fanoutqa", {"answer": None}, r"row 0, key 'answer': expected an answer"),
        (
            "fanoutqa",
            {"decomposition": [1]},
            r"row 0, key 'decomposition': expected a list of",
        ),
        (
            "gsm8k",
            {"answer": "It is 3."},
            r"line 1, key 'answer': expected an answer that ends in '####",
        ),
        ("humaneval", {"entry_point": "triple"}, r"line 1, key 'entry_point': the prompt does not"),
        ("humaneval", {"test": "assert 1"}, r"line 1, key 'test': expected a function check"),
        ("mbpp", {"test_list": ["assert other(1)"]}, r"line 1, key 'test_list': the tests call"),
        ("mbpp", {"code": "def ("}, r"line 1, key 'code': not valid Python"),
    ],
)
def test_a_malformed_row_is_named_with_its_key(tmp_path, name, changes, message):
    with pytest.raises(TaskFileError, match=message):
        load(name, tmp_path, FORMATS[name][2] | changes)


def test_a_row_that_is_not_an_object_is_named(tmp_path):
    with pytest.raises(TaskFileError, match="line 2: expected an object, got int"):
        load("gsm8k", tmp_path, GSM8K, 7)


def test_gzipped_lines_are_read(tmp_path):
    path = tmp_path / "file.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(HUMANEVAL).encode()))
    assert len(load_humaneval(path)[0]) == 1
    path.write_bytes(b"no gzip")
    with pytest.raises(TaskFileError, match=r"file\.jsonl\.gz: cannot be read as text"):
        load_humaneval(path)


def test_a_line_may_hold_a_line_separator(tmp_path):
    assert len(load("gsm8k", tmp_path, GSM8K | {"question": "a\u2028b"})[0]) == 1


ARTICLES = {"Oslo": {"title": "Oslo", "extract": " A city. " * 9, "description": "d", "topic": "t"}}


def test_wikipedia_is_a_corpus_without_tasks(tmp_path):
    path = tmp_path / "summaries.json"
    path.write_text(json.dumps(ARTICLES))
    tasks, documents = load_wikipedia(path, max_chars=7)
    assert tasks.empty
    assert documents.to_dict("records") == [
        {"document_id": "wikipedia:Oslo", "title": "Oslo", "text": "A city."}
    ]
    path.write_text(json.dumps({"Oslo": {"title": "Oslo"}}))
    with pytest.raises(TaskFileError, match=r"article 'Oslo': key 'extract' is missing"):
        load_wikipedia(path)


def test_questions_of_one_source_and_the_pages_of_another(tmp_path):
    listed(tmp_path / "fan.json", FANOUT)
    (tmp_path / "wiki.json").write_text(json.dumps(ARTICLES))
    sources = {
        "fanoutqa": {"files": {"train": "fan.json"}},
        "wikipedia": {"file": "wiki.json"},
    }
    parameters = TasksParameters.read({"sources": sources}, "tasks")
    tasks, documents = load_tasks(parameters, "multihop_qa", (), TaskFiles(tmp_path))
    assert tasks["task_id"].tolist() == ["fanoutqa:f1"]
    assert documents["title"].tolist() == ["Oslo"]


def test_a_mixture_distinguishes_families_with_the_same_name(tmp_path):
    row = TWO_WIKI | {"type": "comparison"}
    listed(tmp_path / "two.json", row, TWO_WIKI | {"_id": "2"})
    listed(tmp_path / "hot.json", row | {"level": "hard"})
    sources = {
        "2wikimultihopqa": {"files": {"train": "two.json"}},
        "hotpotqa": {"files": {"train": "hot.json"}},
    }
    parameters = TasksParameters.read({"sources": sources}, "tasks")
    tasks, _ = load_tasks(parameters, "multihop_qa", (), TaskFiles(tmp_path))
    assert sorted(tasks["family"]) == [
        "2wikimultihopqa:comparison", "compositional", "hotpotqa:comparison",
    ]  # fmt: skip


@pytest.mark.parametrize("pages", ["own", "shared"])
def test_paragraphs_belong_to_one_question_or_are_shared_by_all(tmp_path, pages):
    listed(tmp_path / "two.json", TWO_WIKI)
    sources = {"2wikimultihopqa": {"files": {"train": "two.json"}, "pages": pages}}
    parameters = TasksParameters.read({"sources": sources}, "tasks")
    tasks, documents = load_tasks(parameters, "multihop_qa", (), TaskFiles(tmp_path))
    assert ("context" in json.loads(tasks["payload"][0])) == (pages == "own")
    assert len(documents) == (0 if pages == "own" else 3)
