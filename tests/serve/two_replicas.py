"""What test_replicas.py runs: a server in front of two replicas, one of which is killed."""

import os
import re
import signal
import sys
import threading
import time
from typing import Any

import httpx
import psutil
import ray
from running_server import CHAT, PENS, Running, running

from xpredflow import Engine, generate, load
from xpredflow.serve.config import ServeConfig
from xpredflow.serve.replicas import deploy

NO_CLUSTER = 77
MESSAGES = [{"role": "user", "content": PENS}]


def replica_processes() -> list[int]:
    """Those of the cluster that this process has started."""
    below = psutil.Process().children(recursive=True)
    return [one.pid for one in below if any("ServeReplica" in word for word in one.cmdline())]


def ask_all(served: Running, count: int, **body: Any) -> list[httpx.Response]:
    """Many requests at once."""
    found: dict[int, httpx.Response] = {}

    def ask(i: int) -> None:
        found[i] = served.post(timeout=240, messages=MESSAGES, seed=i, **body)

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    if body.get("decoder") == "mask":  # while they are under way, one replica dies
        time.sleep(1.0)
        os.kill(replica_processes()[0], signal.SIGKILL)
    for thread in threads:
        thread.join()
    return [found[i] for i in range(count)]


def start_cluster() -> None:
    """With room for both replicas, however few cores there are; some machines allow none."""
    try:
        ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
    except Exception as error:  # whatever keeps its processes from starting
        print(f"no Ray cluster here: {error}")
        sys.exit(NO_CLUSTER)


def main() -> None:
    start_cluster()
    engine = Engine(load("tiny-aligned"))
    backend, served = deploy({}, None, {}, ServeConfig(port=0), replicas=2)
    assert served.name == "tiny-aligned"
    assert len(replica_processes()) == 2
    with running(engine, backend) as server:
        [offline] = generate(engine.model, PENS)
        texts = [r.json()["choices"][0]["message"]["content"] for r in ask_all(server, 6)]
        assert texts == [offline.text] * 6, texts
        # the passes of both are counted, whoever took them
        counted = httpx.get(f"{server.url}/metrics").text
        [passes] = re.findall(r"^xpredflow_passes_total (\S+)", counted, re.MULTILINE)
        assert float(passes) == 6 * offline.passes
        assert server.refused(budget="x")[0] == 400
        body = {"messages": MESSAGES, "stream": True, "decoder": "threshold:0.9"}
        with httpx.stream("POST", server.url + CHAT, json=body, timeout=240) as response:
            assert "[DONE]" in response.read().decode()
        slow = {"messages": MESSAGES, "stream": True, "decoder": "mask", "max_tokens": 256}
        with httpx.stream("POST", server.url + CHAT, json=slow, timeout=240) as response:
            next(response.iter_raw())  # hangs up after the first event
        [offline] = generate(engine.model, PENS, decoder="mask", gen_length=96)
        answers = ask_all(server, 4, decoder="mask", max_tokens=96)
        assert [answer.status_code for answer in answers] == [200] * 4
        texts = [answer.json()["choices"][0]["message"]["content"] for answer in answers]
        assert texts == [offline.text] * 4, texts
    ray.shutdown()
    print("all well")


if __name__ == "__main__":
    main()
