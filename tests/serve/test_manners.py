"""Limits and manners: who is turned away and how, who hangs up, who reads slowly."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from running_server import CHAT, PENS, TEXT, Running, running

import xpredflow
from xpredflow import Engine, InputError, generate
from xpredflow.serve.config import ServeConfig

MESSAGES = [{"role": "user", "content": PENS}]
SLOW = {"decoder": "mask", "max_tokens": 512}  # one token per pass: seconds, unless given up


def until(condition: Any, seconds: float = 20) -> bool:
    """Whether something comes true in time."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return bool(condition())


def hang_up(served: Running, **body: Any) -> None:
    """Send a request and close the connection once it is under way."""
    host, port = served.url.removeprefix("http://").split(":")
    content = json.dumps({"messages": MESSAGES, **SLOW, **body})
    head = f"POST {CHAT} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    with socket.create_connection((host, int(port))) as client:
        client.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n{content}".encode())
        assert until(lambda: served.desk.admission.rows == 1)


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_hangs_up_frees_its_row(server: Running, stream: bool) -> None:
    before = server.desk.metrics.passes._value.get()
    hang_up(server, stream=stream)
    assert until(lambda: server.desk.admission.rows == 0)
    server.chat()  # a pass later the row is gone
    assert server.desk.metrics.running._value.get() == 1
    assert server.desk.metrics.passes._value.get() - before < 512
    idle = httpx.get(f"{server.url}/metrics").text.splitlines()
    assert {"xpredflow_rows_running 0.0", "xpredflow_batch_fill 0.0"} <= set(idle)


def test_who_comes_too_late_is_told_when_to_come_again(engine: Engine) -> None:
    with running(engine, max_batch=1, max_queue=0) as served:
        first = threading.Thread(target=served.chat, kwargs={"decoder": "mask"})
        first.start()
        assert until(lambda: served.desk.admission.rows == 1)
        response = served.post(messages=MESSAGES)
        assert response.status_code == 429
        assert int(response.headers["retry-after"]) >= 1
        assert response.json()["error"]["code"] == "queue_full"
        first.join()
        assert served.chat()["choices"][0]["message"]["content"]


def test_lengths_and_counts_are_bounded(engine: Engine) -> None:
    with running(engine, max_prompt_length=40, max_gen_length=64, max_choices=2) as served:
        message = "the answer would have 65 tokens: this server takes at most 64"
        assert served.refused(max_tokens=65) == (400, message)
        long = [{"role": "user", "content": PENS * 2}]
        status, message = served.refused(messages=long)
        assert (status, "takes at most 40" in message) == (400, True)
        status, message = served.refused(TEXT, prompt=["a", "b"], n=2)
        assert (status, "4 answers" in message) == (400, True)
        status, message = served.refused(TEXT, prompt="[[mask:63]][[mask:63]]")
        assert (status, "126 tokens" in message) == (400, True)
        assert served.desk.admission.rows == 0


def test_a_body_is_bounded_whether_it_states_its_length_or_not(engine: Engine) -> None:
    with running(engine, max_body=2048) as served:
        large = b'{"messages": "' + b"x" * 4096 + b'"}'

        def pieces():
            yield large[:1000]
            yield large[1000:]

        for content in (large, pieces()):
            response = httpx.post(
                served.url + CHAT, content=content, headers={"content-type": "application/json"}
            )
            assert response.status_code == 413
            assert response.json()["error"]["code"] == "body_too_large"


@pytest.mark.parametrize("stream", [False, True])
def test_time_is_bounded(engine: Engine, stream: bool) -> None:
    with running(engine, max_seconds=0.3) as served:
        response = served.post(messages=MESSAGES, stream=stream, **SLOW)
        if stream:
            last = response.text.strip().split("\n\n")[-1].removeprefix("data: ")
            assert json.loads(last)["error"]["code"] == "timeout"
        else:
            assert response.status_code == 408
            assert response.json()["error"]["code"] == "timeout"
        assert until(lambda: served.desk.admission.rows == 0)


def test_a_token_is_asked_for_everywhere_but_for_the_pulse(engine: Engine) -> None:
    with running(engine, token="a-long-secret") as served:
        for given in (None, "Bearer wrong", "Bearer a-long-secre", "a-long-secret", "Bearer é"):
            headers = {} if given is None else {b"authorization": given.encode()}
            for path in ("/v1/models", "/metrics"):
                response = httpx.get(served.url + path, headers=headers)
                assert response.status_code == 401
                assert response.json()["error"]["code"] == "invalid_api_key"
        good = {"authorization": "Bearer a-long-secret"}
        assert httpx.get(f"{served.url}/v1/models", headers=good).status_code == 200
        assert httpx.get(f"{served.url}/healthz").json() == {"status": "ok"}


def test_without_a_token_only_this_machine_is_answered(server: Running) -> None:
    with pytest.raises(InputError, match="XPREDFLOW_TOKEN"):
        ServeConfig(host="0.0.0.0")
    ServeConfig(host="0.0.0.0", token="a-long-secret")
    response = httpx.get(f"{server.url}/v1/models", headers={"host": "evil.example"})
    assert response.status_code == 403
    assert "access-control-allow-origin" not in httpx.get(f"{server.url}/v1/models").headers


def test_every_answer_has_an_id_that_a_client_may_choose(server: Running) -> None:
    url = f"{server.url}/v1/models"
    assert httpx.get(url, headers={"x-request-id": "mine-7"}).headers["x-request-id"] == "mine-7"
    bad = httpx.get(url, headers={"x-request-id": 'a"b\tc'}).headers["x-request-id"]
    assert len(bad) == 32


def test_a_request_opens_no_files(server: Running, tmp_path: Path) -> None:
    for body in (
        {"decoder": f"flow:learned:{tmp_path}"},
        {"decoder": f"flow+policy=learned:{tmp_path}"},
        {"policy": f"learned:{tmp_path}/x"},
    ):
        status, message = server.refused(**body)
        assert (status, "embedded one (tiny, tiny-left)" in message) == (400, True)
    assert server.chat(policy="learned:tiny")["choices"]


def test_what_cannot_be_asked_for_is_refused_by_name(server: Running) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"temperature": 0.5}, "decoder 'flow' draws no tokens"),
        ({"top_p": 0.9}, "top_p is 0.9: expected its neutral value"),
        ({"tools": [{"type": "function"}]}, "nothing here calls tools: leave it out"),
        ({"response_format": {"type": "json_object"}}, "expected type 'json_schema'"),
        ({"response_format": {"type": "choice"}}, "response_format.choice.choices: Field required"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "of type 'text'"),
        ({"max_batch": 3}, "unknown option 'max_batch'"),
        ({"decoder": "treshold"}, "did you mean 'threshold'"),
        ({"decoder": "threshold", "threshold": 2}, "threshold is 2"),
        ({"decoder": "threshold+max_batch=3"}, "unknown option 'max_batch'"),
        ({"max_tokens": 8, "gen_length": 8}, "given twice"),
        ({"max_tokens": 8, "max_completion_tokens": 9}, "give it once"),
        ({"messages": []}, "messages is []"),
        ({"budget": "x"}, "budget is 'x'"),
        ({"top_logprobs": 2}, "set logprobs to true"),
        ({"max_tokens": 1024}, "too long"),
    ]
    for body, words in cases:
        status, message = server.refused(**body)
        assert status == 400, message
        assert words in message
    assert server.chat(temperature=0, top_p=1.0, presence_penalty=0, user="me")["choices"]


def test_a_slow_reader_gets_all_of_the_text_and_holds_nobody_up(server: Running) -> None:
    body = {"messages": MESSAGES, "stream": True, "drafts": True, "decoder": "mask"}
    [offline] = generate(server.engine.model, PENS, decoder="mask")
    host, port = server.url.removeprefix("http://").split(":")
    content = json.dumps(body)
    head = f"POST {CHAT} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    with socket.create_connection((host, int(port))) as slow:
        slow.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n{content}".encode())
        assert server.chat()["choices"]  # a fast one, while the other reads nothing
        assert until(lambda: server.desk.admission.rows == 0)
        received = b""
        while b"[DONE]" not in received:
            received += slow.recv(256)
    events = [part for part in received.decode().split("\n\n") if "data: {" in part]
    chunks = [json.loads(part[part.index("data: ") + 6 :].split("\r\n")[0]) for part in events]
    text = "".join(c["choices"][0]["delta"].get("content", "") for c in chunks if c["choices"])
    assert text == offline.text


def test_sigterm_lets_open_requests_finish_and_takes_no_others(tmp_path: Path) -> None:
    source = str(Path(xpredflow.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
    log = (tmp_path / "log").open("w+")
    command = [sys.executable, "-m", "xpredflow", "serve", "--port", "0", "--max-batch", "2"]
    process = subprocess.Popen(command, env=environment, stderr=log)

    def lines() -> list[dict[str, Any]]:
        text = (tmp_path / "log").read_text()
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]

    assert until(lambda: any("listening" in line.get("message", "") for line in lines()), 60)
    url = next(line["message"] for line in lines()).removeprefix("listening on ")
    answers: list[httpx.Response] = []
    body = {"messages": MESSAGES, "decoder": "mask", "max_tokens": 48}
    asking = threading.Thread(
        target=lambda: answers.append(httpx.post(url + CHAT, json=body, timeout=60))
    )
    asking.start()
    assert until(lambda: "rows_running 1.0" in httpx.get(f"{url}/metrics").text)
    process.send_signal(signal.SIGTERM)
    assert until(lambda: any("draining" in line.get("message", "") for line in lines()))
    asking.join()
    assert answers[0].status_code == 200
    assert process.wait(60) == 0
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/healthz")
    asked = next(line for line in lines() if line.get("path") == CHAT)
    assert asked["passes"] == 48
    assert PENS not in (tmp_path / "log").read_text()
