"""A slow reader and a fast one side by side: what the one costs the other.

    python benchmarks/readers.py --tokens 192

Both ask for the same answers as a stream with drafts. The slow one takes a kilobyte at a time, with
pauses, through a small buffer; the fast one reads what there is. The fast one is timed alone, then
beside the slow one; the batch has room for both, so the passes of two requests take longer than
those of one, which a third measurement shows: two fast readers. The last line is JSON.
"""

import argparse
import asyncio
import json
import re
import socket
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parent))
from serve import CHAT, Server

PAUSE, BITE = 0.05, 1024


class Read(NamedTuple):
    """What a reader saw: settled texts, drafts, seconds until the end."""

    texts: dict[int, str]
    drafts: int
    seconds: float


async def read(url: str, body: dict[str, Any], slow: asyncio.Event | None = None) -> Read:
    """Read a stream; slowly until the event is set, if there is one."""
    place, began = urlsplit(url), time.perf_counter()
    connection = socket.socket()
    if slow is not None:  # the kernel shall not read ahead for it
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.setblocking(False)
    await asyncio.get_running_loop().sock_connect(connection, (place.hostname, place.port))
    reader, writer = await asyncio.open_connection(sock=connection, limit=2 * BITE)
    content = json.dumps(body)
    writer.write(
        f"POST {CHAT} HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Type: application/json\r\n"
        f"Connection: close\r\nContent-Length: {len(content)}\r\n\r\n{content}".encode()
    )
    received = b""
    while some := await reader.read(BITE if slow is not None and not slow.is_set() else 2**16):
        received += some
        if slow is not None and not slow.is_set():
            await asyncio.sleep(PAUSE)
    writer.close()
    return Read(*_told(received), time.perf_counter() - began)


def _told(received: bytes) -> tuple[dict[int, str], int]:
    """Settled texts by row, and how many drafts came; chunk sizes stand between the events."""
    head, _, rest = received.partition(b"\r\n\r\n")
    assert b" 200 " in head.split(b"\r\n")[0] + b" ", head
    text = re.sub(rb"(?:^|\r\n)[0-9a-f]+\r\n", b"", rest).decode()
    found: Counter[str] = Counter()
    texts: dict[int, str] = {}
    for line in text.splitlines():
        found[line] += 1
        if line.startswith("data: {"):
            for choice in json.loads(line[6:])["choices"]:
                at = choice["index"]
                texts[at] = texts.get(at, "") + choice["delta"].get("content", "")
    assert found["data: [DONE]"] == 1, "the stream has no end"
    return texts, found["event: draft"]


async def side_by_side(url: str, body: dict[str, Any]) -> dict[str, Any]:
    """The fast one alone, beside a fast one, beside a slow one."""
    alone = await read(url, body)
    pair = await asyncio.gather(read(url, body), read(url, body))
    ended = asyncio.Event()
    slow = asyncio.ensure_future(read(url, body, ended))
    fast = await read(url, body)
    ended.set()
    late = await slow
    return {
        "fast alone s": round(alone.seconds, 2),
        "fast beside fast s": round(max(one.seconds for one in pair), 2),
        "fast beside slow s": round(fast.seconds, 2),
        "drafts fast": fast.drafts,
        "drafts slow": late.drafts,
        "same text": alone.texts == fast.texts == late.texts,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tokens", type=int, default=192)
    given = parser.parse_args()
    message = {"role": "user", "content": "Zoe has 25 pens, loses 7, buys 4. How many pens now?"}
    body = {
        "messages": [message],
        "decoder": "mask",
        "max_tokens": given.tokens,
        "n": 4,
        "stream": True,
        "drafts": True,
    }
    with Server() as server:
        found = asyncio.run(side_by_side(server.url, body))
    print(json.dumps({"tokens": given.tokens, "exit code": server.code, **found}))
    sys.exit(not found["same text"])


if __name__ == "__main__":
    main()
