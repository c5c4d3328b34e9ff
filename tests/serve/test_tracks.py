"""What a row reports pass by pass, without a server."""

import asyncio
import itertools
from typing import Any

import pytest
from running_server import PENS

from xpredflow import Engine, generate
from xpredflow.serve.feed import Mailbox
from xpredflow.serve.jobs import Job, Update
from xpredflow.serve.tracks import Bounds, Track


class Every(Mailbox):
    """A mailbox that keeps everything it is told."""

    def __init__(self) -> None:
        super().__init__(lambda box: None)
        self.told: list[Update] = []

    def put(self, news: Any) -> None:
        self.told.append(news)


async def told(engine: Engine, job: Job) -> list[Update]:
    session, box = engine.session(max_batch=2), Every()
    track = Track(session, job, box, Bounds())
    while (step := session.step()) is not None:
        ended = {done.row: done for done in step.finished}
        for i, ticket in enumerate(step.rows):
            track.follow(step, i, ended=ticket in ended)
        for done in ended.values():
            track.finish(done)
    return box.told


@pytest.mark.parametrize("decoder", ["mask", "threshold:0.9", "flow", "remdm", "wino"])
@pytest.mark.parametrize("block_length", [None, 16])
def test_settled_text_only_ever_grows_to_the_answer(
    engine: Engine, decoder: str, block_length: int | None
) -> None:
    options: Any = {"gen_length": 48, "budget": "1/2", "block_length": block_length}
    [offline] = generate(engine.model, PENS, decoder=decoder, **options)
    prompt = [{"role": "user", "content": PENS}]
    job = Job(prompt, decoder, options, partial=True, drafts=True)
    updates = asyncio.run(told(engine, job))
    assert updates[0].passes == 0
    assert len(updates) == offline.passes + 1
    texts = [update.settled for update in updates]
    assert all(later.startswith(text) for text, later in itertools.pairwise(texts))
    done = updates[-1].done
    assert done is not None
    assert (done.text, done.passes, done.tokens) == (offline.text, offline.passes, len(offline.ids))


def test_without_partial_only_the_beginning_and_the_end_are_told(engine: Engine) -> None:
    updates = asyncio.run(told(engine, Job([{"role": "user", "content": PENS}], "mask", {})))
    assert [update.done is None for update in updates] == [True, False]
