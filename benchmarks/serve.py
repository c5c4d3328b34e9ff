"""The server under load: every answer against its offline decode, and what the socket costs.

    python benchmarks/serve.py --minutes 5 --clients 64
    python benchmarks/serve.py --seconds 10 --clients 16 --skip-speed
    python benchmarks/serve.py --rounds 7

A server runs in a process of its own. Clients ask in random order: chats and completions, streamed
or whole, of several lengths and decoders, some of which they cancel half-way, hang up on, or spell
wrong. Then equal rows are timed over the socket and in the engine itself, one after the other,
several times: by the clock, and by CPU time, which a busy machine disturbs less. The last line of
the output is JSON; the exit code is 1 if anything was wrong.
"""

import argparse
import asyncio
import json
import random
import re
import sys
import time
from collections import Counter
from statistics import median
from typing import Any, NamedTuple

import httpx
from served import CHAT, MAX_BATCH, PATIENCE, TEXT, Server

from xpredflow import Engine, generate, load

DECODERS = ("flow", "threshold:0.9", "mask", "threshold:0.6+temperature=0.5", "entropy", "wino")
LENGTHS = (16, 48, 64)


class Known(NamedTuple):
    """A request and what it must be answered with."""

    path: str
    body: dict[str, Any]
    texts: list[str]


def requests(model: Any, count: int) -> list[Known]:
    """Requests of all kinds, decoded offline."""
    found = []
    for i in range(count):
        decoder, length = DECODERS[i % len(DECODERS)], LENGTHS[i // len(DECODERS) % len(LENGTHS)]
        prompt = f"Zoe has {20 + i} pens, loses 7, buys 4. How many pens now? Use letters."
        options: Any = {"decoder": decoder, "budget": "1/2", "seed": i}
        body = {**options, "max_tokens": length}
        if i % 5 == 4:
            whole = f"{20 + i}-7=[[mask:{length}]]\n"
            texts = [generate(model, whole, **options)[0].text.removeprefix(f"{20 + i}-7=")[:-1]]
            asked = {"prompt": f"{20 + i}-7=", "suffix": "\n"}
            found.append(Known(TEXT, {**body, **asked}, texts))
            continue
        n = 2 if i % 7 == 3 else 1
        done = generate(model, [prompt] * n, gen_length=length, **options)
        asked = {"messages": [{"role": "user", "content": prompt}], "n": n}
        found.append(Known(CHAT, {**body, **asked}, [one.text for one in done]))
    return found


BAD = [
    (CHAT, {"messages": [{"role": "user", "content": "x"}], "buget": 3}, 400),
    (CHAT, {"messages": []}, 400),
    (CHAT, {"messages": [{"role": "user", "content": "x"}], "model": "other"}, 404),
    (TEXT, {"prompt": "x", "decoder": "treshold"}, 400),
    (TEXT, {"prompt": "x", "max_tokens": 10**6}, 400),
    ("/v1/nothing", {}, 404),
]


class Clients:
    """Many clients, and what they saw."""

    def __init__(self, url: str, known: list[Known], seconds: float) -> None:
        self.url, self.known, self.end = url, known, time.monotonic() + seconds
        self.seen: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.first_text: list[float] = []

    async def one(self, number: int) -> None:
        """Ask until the time is over."""
        draw = random.Random(number)
        async with httpx.AsyncClient(base_url=self.url, timeout=PATIENCE) as client:
            while time.monotonic() < self.end:
                known = draw.choice(self.known)
                kinds = [self.whole, self.stream, self.cancel, self.hang_up, self.bad]
                [kind] = draw.choices(kinds, weights=(5, 5, 1, 1, 1))
                await kind(client, known)
                self.seen[kind.__name__] += 1

    async def post(self, client: httpx.AsyncClient, known: Known) -> httpx.Response:
        """A request, again as long as the queue is full."""
        while (response := await client.post(known.path, json=known.body)).status_code == 429:
            self.seen["told to wait"] += 1
            await asyncio.sleep(min(int(response.headers["retry-after"]), 2) / 4)
        return response

    async def whole(self, client: httpx.AsyncClient, known: Known) -> None:
        response = await self.post(client, known)
        if response.status_code != 200:
            self.wrong.append(f"{known.body}: {response.text}")
            return
        self._compare(known, [_text(choice) for choice in response.json()["choices"]])

    async def stream(self, client: httpx.AsyncClient, known: Known) -> None:
        texts, began, done = [""] * len(known.texts), time.monotonic(), False
        async with client.stream("POST", known.path, json={**known.body, "stream": True}) as got:
            if got.status_code == 429:
                self.seen["told to wait"] += 1
                return
            async for line in got.aiter_lines():
                done |= line == "data: [DONE]"
                if not line.startswith("data: {"):
                    continue
                for choice in json.loads(line[6:]).get("choices", []):
                    if _text(choice) and not any(texts):
                        self.first_text.append(time.monotonic() - began)
                    texts[choice["index"]] += _text(choice)
        self._compare(known, texts if done else ["no end"])

    async def cancel(self, client: httpx.AsyncClient, known: Known) -> None:
        """Read one event and leave."""
        async with client.stream("POST", known.path, json={**known.body, "stream": True}) as got:
            async for _ in got.aiter_raw():
                break

    async def hang_up(self, client: httpx.AsyncClient, known: Known) -> None:
        try:
            await client.post(known.path, json=known.body, timeout=0.05)
        except httpx.TimeoutException:
            return

    async def bad(self, client: httpx.AsyncClient, known: Known) -> None:
        path, body, status = BAD[self.seen["bad"] % len(BAD)]
        response = await client.post(path, json=body)
        said = response.status_code in (status, 429) and response.json()["error"]["message"]
        if not said:
            self.wrong.append(f"{path} {body}: {response.status_code} {response.text}")

    def _compare(self, known: Known, texts: list[str]) -> None:
        self.seen["answers"] += len(texts)
        if texts != known.texts:
            self.wrong.append(f"{known.body}: {texts} instead of {known.texts}")


def _text(choice: dict[str, Any]) -> str:
    if "delta" in choice:
        return choice["delta"].get("content", "")
    return choice["message"]["content"] if "message" in choice else choice["text"]


async def soak(server: Server, known: list[Known], seconds: float, clients: int) -> dict[str, Any]:
    """All clients at once; memory is looked at after the first fifth and at the end."""
    asking = Clients(server.url, known, seconds)
    tasks = [asyncio.ensure_future(asking.one(i)) for i in range(clients)]
    await asyncio.sleep(seconds / 5)
    early = server.megabytes
    await asyncio.gather(*tasks)
    for line in asking.wrong[:5]:
        print("wrong:", line)
    left = await _rows_left(server.url)
    return {
        **asking.seen,
        "wrong": len(asking.wrong),
        "rows left": left,
        "first text s (median)": round(median(asking.first_text or [0.0]), 3),
        "MB early": round(early),
        "MB late": round(server.megabytes),
    }


async def _rows_left(url: str) -> int:
    """Rows that nobody waits for any more must be gone."""
    async with httpx.AsyncClient(base_url=url) as client:
        for _ in range(100):
            text = (await client.get("/metrics")).text
            rows = float(re.findall(r"^xpredflow_rows_accepted (\S+)", text, re.MULTILINE)[0])
            if rows == 0:
                return 0
            await asyncio.sleep(0.05)
    return int(rows)


def speed(server: Server, engine: Engine, rounds: int, rows: int) -> dict[str, Any]:
    """The same rows in a session of the engine's own, and over the socket at equal batch."""
    prompts = [f"Zoe has {20 + i} pens, loses 7, buys 4. How many pens now?" for i in range(rows)]
    options: Any = {"decoder": "mask", "gen_length": 64, "budget": "1/2"}
    passes: set[int] = set()

    def own() -> tuple[float, float]:
        began, busy = time.perf_counter(), time.process_time()
        session = engine.session(max_batch=MAX_BATCH)
        for prompt in prompts:
            session.submit(prompt, **options)
        done = 0
        while (step := session.step()) is not None:
            done += len(step.rows)
        passes.add(done)
        return time.perf_counter() - began, time.process_time() - busy

    async def over_socket() -> tuple[float, float]:
        async with httpx.AsyncClient(base_url=server.url, timeout=600) as client:
            began, busy = time.perf_counter(), server.cpu_seconds
            asked = [[{"role": "user", "content": prompt}] for prompt in prompts]
            answers = await asyncio.gather(
                *(client.post(CHAT, json={"messages": one, **options}) for one in asked)
            )
            taken = time.perf_counter() - began, server.cpu_seconds - busy
            passes.add(sum(answer.json()["usage"]["passes"] for answer in answers))
            return taken

    pairs = [(own(), asyncio.run(over_socket())) for _ in range(rounds)]
    assert len(passes) == 1, f"not the same work: {passes}"
    tokens = rows * 64
    wall = [mine[0] / socket[0] for mine, socket in pairs]
    busy = [mine[1] / socket[1] for mine, socket in pairs]
    return {
        "positions/s engine": round(tokens / median(mine[0] for mine, _ in pairs)),
        "positions/s socket": round(tokens / median(socket[0] for _, socket in pairs)),
        "socket / engine by the clock": [round(ratio, 3) for ratio in wall],
        "socket / engine by CPU time": [round(ratio, 3) for ratio in busy],
        "medians": [round(median(wall), 3), round(median(busy), 3)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=0.0)
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=48, help="rows that are timed")
    parser.add_argument("--skip-speed", action="store_true")
    given = parser.parse_args()
    engine = Engine(load("tiny-aligned"))
    seconds = given.minutes * 60 + given.seconds
    with Server() as server:
        found: dict[str, Any] = {"wrong": 0, "rows left": 0}
        if seconds:
            known = requests(engine.model, 36)
            found = asyncio.run(soak(server, known, seconds, given.clients))
        if not given.skip_speed:
            found |= speed(server, engine, given.rounds, given.rows)
    found["exit code"] = server.code
    print(json.dumps({"seconds": seconds, "clients": given.clients, **found}))
    sys.exit(bool(found["wrong"] or found["rows left"] or server.code))


if __name__ == "__main__":
    main()
