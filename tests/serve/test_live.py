"""The live page's streams: traces as they are made, branches, and what bounds and guards them."""

import asyncio
import json
import time
from typing import Any

import httpx
import pytest
from running_server import PENS, Running, running

from xpredflow import Engine, load
from xpredflow.engine.steps import Change
from xpredflow.serve import feed
from xpredflow.serve.jobs import RowFailed, Update
from xpredflow.watch.branch import branch
from xpredflow.watch.trace import Trace, record
from xpredflow.watch.trace_decoder import TraceDecoder

TOKEN = "a-long-secret"


def lines(response: httpx.Response) -> list[str]:
    assert response.headers["content-type"].startswith("text/event-stream"), response.text
    return [part.removeprefix("data: ") for part in response.text.split("\n\n") if part]


def live(server: Running, **body: Any) -> Trace:
    decoder = TraceDecoder()
    for line in lines(server.post("/live", prompt=PENS, **body)):
        decoder.add(line)
    [trace] = decoder.traces
    return trace


def same(one: Trace, other: Trace) -> bool:
    """What a pass did, whatever the rows are called."""
    frames = [[frame._replace(row=0) for frame in trace.frames] for trace in (one, other)]
    ids = [[(done.all_ids, done.passes) for done in trace.decoded] for trace in (one, other)]
    # what was sent went through thousandths
    tokens = [[(frame.step, frame.tokens, frame.committed) for frame in found] for found in frames]
    return tokens[0] == tokens[1] and ids[0] == ids[1]


def test_a_stream_is_the_trace_of_the_offline_decode(server: Running) -> None:
    cases: Any = (("flow", {}), ("threshold:0.9+block_length=8", {"budget": 20}))
    for decoder, options in cases:
        found = live(server, decoder=decoder, max_tokens=16, seed=3, **options)
        offline = record(
            server.engine.model, PENS, decoder=decoder, gen_length=16, seed=3, **options
        )
        assert same(found, offline)
        assert found.header.rules == json.loads(json.dumps(offline.header.rules))
        assert (found.header.options["seed"], found.header.decoder) == (3, decoder)
        [one] = found.recordings()
        assert one.decoded is not None
        assert one.text.pieces(one.decoded.ids) == offline.text.pieces(one.decoded.ids)


def test_a_branch_goes_on_from_the_pass_with_the_token_changed(server: Running) -> None:
    model, body = server.engine.model, {"decoder": "flow", "max_tokens": 16}
    before = record(model, PENS, decoder="flow", gen_length=16)
    first, second = before.frames[0].positions[2:4]
    token = before.frames[0].candidates[2][1]
    changes = [{"after": 1, "position": first, "token": token}, {"after": 2, "position": second}]
    found = live(server, changes=changes, **body)
    offline = branch(model, before, [Change(1, first, token), Change(2, second)])
    assert same(found, offline)
    assert found.frames[0].tokens[2] == found.decoded[0].all_ids[2] == token
    assert found.frames[0].progress[2] == 1
    assert found.frames[1].progress[3] == 0
    assert found.header.title == "flow, changed after pass 2"
    text = model.tokenizer.decode([token])
    by_text = [{"after": 1, "position": first, "text": text}, changes[1]]
    assert same(live(server, changes=by_text, **body), found)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"decoder": "flo"}, "unknown decoder 'flo'"),
        ({"decoder": "flow+nothing=1"}, "nothing"),
        ({"decoder": "flow:learned:/etc/passwd"}, "a request may name an embedded one"),
        ({"max_tokens": 100_000}, "tokens"),
        ({"surprise": 1}, "surprise"),
        ({"changes": [{"after": 1, "position": 0}]}, "positions that are decoded are"),
        ({"changes": [{"after": 1, "position": 70, "text": "several words"}]}, "a position holds"),
        ({"changes": [{"after": 1, "position": 70}] * 17}, "changes"),
    ],
)
def test_what_is_wrong_is_said_before_the_stream(server: Running, body: Any, why: str) -> None:
    status, message = server.refused("/live", prompt=PENS, **{"max_tokens": 16, **body})
    assert (status, why in message) == (400, True), message


def test_a_change_that_comes_too_late_is_an_error_in_the_stream(server: Running) -> None:
    position = record(server.engine.model, PENS, gen_length=8).frames[0].positions[0]
    changes = [{"after": 99, "position": position}]
    response = server.post("/live", prompt=PENS, max_tokens=8, changes=changes)
    error = json.loads(lines(response)[-1])["error"]
    assert error["code"] == "invalid_value"
    assert "it ended after pass" in error["message"]


def test_the_page_is_whole_open_to_all_and_its_streams_are_not() -> None:
    with running(Engine(load("tiny-aligned")), token=TOKEN) as server:
        page = httpx.get(server.url)
        policy = page.headers["content-security-policy"]
        assert page.status_code == 200
        assert "connect-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "http:" not in page.text
        assert "https:" not in page.text
        assert "tiny" not in page.text, "nothing is told without the token"
        for ask in (httpx.get, lambda url: httpx.post(url, json={"prompt": PENS})):
            assert ask(f"{server.url}/live").status_code == 401
        allowed = {"authorization": f"Bearer {TOKEN}"}
        info = httpx.get(f"{server.url}/live", headers=allowed).json()
        assert info["model"] == "tiny-aligned"
        assert {"flow", "threshold", "wino"} <= {card["name"] for card in info["decoders"]}


def test_streams_count_as_rows_and_free_their_places(server: Running) -> None:
    with running(server.engine, max_batch=1, max_queue=0) as small:
        # one token per pass: seconds, unless it is given up
        body = {"prompt": PENS, "max_tokens": 512, "decoder": "mask"}
        with httpx.stream("POST", f"{small.url}/live", json=body, timeout=60) as first:
            passes = first.iter_lines()
            assert "header" in next(passes)
            assert small.post("/live", **body).status_code == 429
        ended = time.monotonic() + 20
        while small.desk.admission.rows and time.monotonic() < ended:
            time.sleep(0.01)
        assert small.desk.admission.rows == 0, "one that hangs up is given up"


def test_lines_wait_for_a_slow_reader_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    async def read() -> None:
        closed: list[feed.Mailbox] = []
        box = feed.Mailbox(closed.append)
        for number in range(5):
            box.put(Update(number, "", "", 0, 0, lines=(str(number),)))
        update = await box.next()
        assert (update.passes, update.lines) == (4, ("0", "1", "2", "3", "4"))
        monkeypatch.setattr(feed, "MOST_UNREAD", 8)
        for _ in range(3):
            box.put(Update(5, "", "", 0, 0, lines=("12345",)))
        assert closed == [box]
        with pytest.raises(RowFailed, match="read more slowly"):
            await box.next()

    asyncio.run(read())
