"""The judge term with a server in a thread: scores, cache, failures."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from agent_r1.parameters import ParameterError
from agent_r1.pipelines.reward.nodes import score_rewards
from tests.support.step_tables import rollouts, step, tasks

TASKS = tasks(q=["Paris", "City of Light"])


class Server(ThreadingHTTPServer):
    """Replies with ``replies[answer]``; an int is an HTTP status."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.replies: dict[str, Any] = {}
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(request)
        self.server.keys.append(self.headers.get("Authorization"))
        said = request["messages"][0]["content"].partition("Answer to judge: ")[2].split("\n")[0]
        reply = self.server.replies.get(said, "0")
        if isinstance(reply, list):
            reply = reply.pop(0)
        status = reply if isinstance(reply, int) else 200
        body = json.dumps({"choices": [{"message": {"content": reply}}]}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Log nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def answer(trajectory: str, text: str) -> dict[str, Any]:
    text = f"<answer>{text}</answer>"
    return step(trajectory, 1, action_type="answer", action_text=text, terminated=True)


def judged(url: str, cache: Path, *texts: str, **judge: Any) -> list[float | None]:
    """The reward of a trajectory per text: a step without an answer, then the text as answer."""
    rows = []
    for number, text in enumerate(texts):
        rows += [step(f"q/{number}", 0), answer(f"q/{number}", text)]
    term = {"model": "m", "url": url, "cache": str(cache), "backoff_s": 0.0} | judge
    table = score_rewards(rollouts(*rows), TASKS, {"terms": {"judge": term}})
    totals = table["trajectory_reward"].tolist()[1::2]
    return [None if total is None or total != total else total for total in map(_plain, totals)]


def _plain(value: Any) -> float | None:
    return value if isinstance(value, float) else None


def test_the_reply_is_the_score_on_its_scale(server, tmp_path) -> None:
    server.replies = {"Paris": "10", "Lyon": " Score: 2.5.", "x": "-3", "y": "99"}
    assert judged(server.url, tmp_path, "Paris", "Lyon", "x", "y") == [1, 0.25, 0, 1]
    asked = server.asked[0]
    assert (asked["model"], asked["temperature"]) == ("m", 0.0)
    assert "City of Light" in asked["messages"][0]["content"]


def test_the_same_answer_is_sent_once_and_then_cached(server, tmp_path) -> None:
    server.replies = {"Paris": "5"}
    assert judged(server.url, tmp_path, "Paris", "Paris") == [0.5, 0.5]
    assert judged(server.url, tmp_path, "Paris") == [0.5]
    assert len(server.asked) == 1
    (file,) = tmp_path.rglob("*.json")
    assert json.loads(file.read_text())["score"] == 5
    judged(server.url, tmp_path, "Paris", model="other")  # another model may score differently
    assert len(server.asked) == 2


def test_a_cached_score_needs_no_server(server, tmp_path) -> None:
    server.replies = {"Paris": "5"}
    judged(server.url, tmp_path, "Paris")
    server.replies = {"Paris": 500}
    assert judged(server.url, tmp_path, "Paris", "Rome", attempts=1)[0] == 0.5


def test_a_temporary_failure_is_tried_again(server, tmp_path) -> None:
    server.replies = {"Paris": [503, 429, "10"]}
    assert judged(server.url, tmp_path, "Paris") == [1]
    assert len(server.asked) == 3


def test_p12_a_judge_that_fails_is_null_and_not_zero(server, tmp_path, caplog) -> None:
    server.replies = {"Paris": [500] * 9}
    assert judged(server.url, tmp_path, "Paris", attempts=2) == [None]
    assert len(server.asked) == 2
    assert "gave no score for 1 answers" in caplog.text
    server.replies = {"Paris": "10"}
    assert judged(server.url, tmp_path, "Paris") == [1]  # the failure was not cached


def test_an_address_without_a_scheme_is_refused(tmp_path) -> None:
    with pytest.raises(ParameterError, match=r"terms\.judge\.url': an address begins with"):
        judged("localhost:8000/v1", tmp_path, "Paris")


def test_p12_a_reply_without_a_number_is_null(server, tmp_path) -> None:
    server.replies = {"Paris": "I cannot say."}
    assert judged(server.url, tmp_path, "Paris") == [None]
    assert not list(tmp_path.rglob("*.json"))


def test_p31_an_unreachable_judge_is_asked_once_and_not_for_every_answer(tmp_path, server) -> None:
    server.replies = {f"a{i}": [500] * 9 for i in range(20)}
    scores = judged(server.url, tmp_path, *server.replies, attempts=1, concurrency=1)
    assert scores == [None] * 20
    assert len(server.asked) == 1


def test_no_server_at_all_is_null(tmp_path) -> None:
    with Server() as server:  # afterwards nothing listens on this port
        url = server.url
    assert judged(url, tmp_path, "Paris", attempts=1, timeout_s=1.0) == [None]


def test_a_slow_server_is_null(server, tmp_path, monkeypatch) -> None:
    wait = threading.Event()
    monkeypatch.setattr(Handler, "do_POST", lambda self: wait.wait(10) and None)
    try:
        assert judged(server.url, tmp_path, "Paris", attempts=1, timeout_s=0.1) == [None]
    finally:
        wait.set()


def test_p31_a_trickling_reply_is_null_after_the_time_limit(server, tmp_path, monkeypatch) -> None:
    """Each byte arrives within the limit, but the reply never ends."""
    stop = threading.Event()

    def drip(handler: Handler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while not stop.wait(0.01):
            handler.wfile.write(b" ")

    monkeypatch.setattr(Handler, "do_POST", drip)
    monkeypatch.setattr(Server, "handle_error", lambda *_: None)  # the judge hangs up
    guard = threading.Timer(20, stop.set)  # without the limit the test fails instead of hanging
    guard.start()
    try:
        assert judged(server.url, tmp_path, "Paris", attempts=1, timeout_s=0.1) == [None]
        assert not stop.is_set()
    finally:
        stop.set()
        guard.cancel()


def test_a_reply_with_no_finite_number_is_null(server, tmp_path) -> None:
    server.replies = {"Paris": "9" * 400, "Rome": "10"}
    assert judged(server.url, tmp_path, "Paris", "Rome") == [None, 1]
    assert len(list(tmp_path.rglob("*.json"))) == 1


def test_a_refused_request_is_an_error_that_says_so(server, tmp_path) -> None:
    server.replies = {"Paris": 404}
    with pytest.raises(ParameterError, match=r"refuses the request for model 'm' with status 404"):
        judged(server.url, tmp_path, "Paris")


def test_without_an_answer_the_judge_is_not_asked(server, tmp_path) -> None:
    term = {"model": "m", "url": server.url, "cache": str(tmp_path)}
    row = step("q/0", 0, truncated=True, end_reason="max_steps")
    table = score_rewards(rollouts(row), TASKS, {"terms": {"judge": term}})
    assert table["reward"].tolist() == [0]
    assert server.asked == []


def test_the_key_comes_from_the_environment(server, tmp_path, monkeypatch) -> None:
    server.replies = {"Paris": "10"}
    monkeypatch.setenv("JUDGE_TOKEN", "word")
    judged(server.url, tmp_path, "Paris", api_key_variable="JUDGE_TOKEN")
    assert server.keys == ["Bearer word"]
    monkeypatch.delenv("JUDGE_TOKEN")
    with pytest.raises(ParameterError, match="variable JUDGE_TOKEN is unset or empty"):
        judged(server.url, tmp_path, "Rome", api_key_variable="JUDGE_TOKEN")
