"""A slow reader and a fast one side by side: what one costs the other, and what it misses.

    python benchmarks/readers.py                 # a minute or two
    python benchmarks/readers.py --rounds 9 --bytes-per-second 20000

A server runs in a process of its own. A fast reader asks for an answer as a stream with drafts and
takes what comes: alone, beside another fast one that asks for four answers in one stream, and
beside the same request read slowly: some bytes a second for as long as the fast one is served, as
over a thin line, in small packets and with the smallest buffer that a socket may have. Rows and
passes of the last two cases are the same: their ratio is what slow reading costs others. Texts are
compared with the offline decode, drafts are counted. What the buffers of the system and of the
server hold (about 100 kB here) is no longer thinned. The last line is JSON; the exit code is 1 if a
text was wrong.
"""

import argparse
import asyncio
import json
import re
import socket
import sys
import time
from statistics import median
from typing import Any, NamedTuple

from served import CHAT, Server

from xpredflow import generate, load

TEXT = re.compile(rb'"content": "[^"]')
PIECE = 512  # bytes that a slow reader takes at once
REQUESTS = (  # decoder, prompt, answers
    ("mask", "Zoe has 25 pens, loses 7, buys 4. How many pens now?", 1),
    ("mask+temperature=0.5", "Tom has 31 cups, buys 8. How many cups now?", 4),
)


class Read(NamedTuple):
    """What a reader had when its stream was over."""

    texts: list[str]  # by the number of the answer
    drafts: int
    seconds: float
    first_text: float
    received: int  # bytes


async def read(
    server: Server, body: dict[str, Any], pace: float = 0.0, hurry: asyncio.Event | None = None
) -> Read:
    """A stream, raw; with `pace`, so many bytes per second until it is told to hurry."""
    host, port = server.url.removeprefix("http://").split(":")
    link = socket.socket()
    if pace:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)  # the kernel takes its least
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, PIECE)
    link.setblocking(False)
    loop, content = asyncio.get_running_loop(), json.dumps({**body, "stream": True, "drafts": True})
    await loop.sock_connect(link, (host, int(port)))
    head = f"POST {CHAT} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    began, received, first = time.perf_counter(), b"", 0.0
    with link:
        await loop.sock_sendall(link, f"{head}{content}".encode())
        while True:
            slowly = hurry is not None and not hurry.is_set()
            piece = await loop.sock_recv(link, PIECE if slowly else 2**16)
            received += piece
            newest = received[-len(piece) - 32 :]
            if not first and TEXT.search(newest):
                first = time.perf_counter() - began
            if not piece or b"data: [DONE]" in newest:
                break
            if slowly:
                await asyncio.sleep(len(piece) / pace)
    return Read(*_read_out(received), time.perf_counter() - began, first, len(received))


def _read_out(received: bytes) -> tuple[list[str], int]:
    """The texts and the number of drafts of a raw stream."""
    lines = received.decode().splitlines()
    texts: dict[int, str] = {}
    for line in lines:
        for choice in json.loads(line[6:])["choices"] if line.startswith("data: {") else ():
            said = choice["delta"].get("content", "")
            texts[choice["index"]] = texts.get(choice["index"], "") + said
    return [texts[i] for i in sorted(texts)], sum(line == "event: draft" for line in lines)


async def one_round(server: Server, bodies: list[dict[str, Any]], pace: float) -> dict[str, Read]:
    """The three cases, one after the other."""
    (fast, other), hurry = bodies, asyncio.Event()
    found = {"alone": await read(server, fast)}
    second = asyncio.ensure_future(read(server, other))
    found["beside a fast one"] = await read(server, fast)
    found["the other fast one"] = await second
    second = asyncio.ensure_future(read(server, other, pace, hurry))
    found["beside a slow one"] = await read(server, fast)
    hurry.set()
    found["the slow one"] = await second
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--max-tokens", type=int, default=128)
    parser.add_argument("--bytes-per-second", type=float, default=1000)
    given = parser.parse_args()
    model, bodies, expected = load("tiny-aligned"), [], []
    for decoder, prompt, n in REQUESTS:
        options: Any = {"decoder": decoder, "logits_eos_inf": True}
        done = generate(model, [prompt] * n, gen_length=given.max_tokens, **options)
        expected.append([one.text for one in done])
        asked = [{"role": "user", "content": prompt}]
        bodies.append({**options, "max_tokens": given.max_tokens, "n": n, "messages": asked})
    with Server() as server:
        rounds = [
            asyncio.run(one_round(server, bodies, given.bytes_per_second))
            for _ in range(given.rounds + 1)
        ][1:]  # the first is slower than any after it
    right = {name: expected[name.startswith("the")] for name in rounds[0]}
    wrong = sum(one[name].texts != texts for one in rounds for name, texts in right.items())
    report: dict[str, Any] = {"wrong": wrong}
    for name in right:
        reads = [one[name] for one in rounds]
        report[name] = {
            "seconds": round(median(r.seconds for r in reads), 3),
            "first text s": round(median(r.first_text for r in reads), 3),
            "drafts": [r.drafts for r in reads],
            "kB": round(median(r.received for r in reads) / 1000),
        }
    ratios = [one["beside a slow one"].seconds / one["beside a fast one"].seconds for one in rounds]
    report["slow / fast neighbour"] = [round(ratio, 3) for ratio in ratios]
    report["median"] = round(median(ratios), 3)
    print(json.dumps({**vars(given), **report}))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
