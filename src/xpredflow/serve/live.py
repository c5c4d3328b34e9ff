"""What the live page asks for: a prompt under one decoder as a stream of trace lines.

A stream is one row. Decoders side by side are as many streams, whose rows share their passes.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr

from xpredflow.decoders import DECODERS
from xpredflow.engine.request import DEFAULT_DECODER
from xpredflow.serve.config import ServeConfig
from xpredflow.serve.events import ALIVE
from xpredflow.serve.feed import Feed
from xpredflow.serve.following import PULSE
from xpredflow.serve.jobs import Finished, Job, TokenChange, Update
from xpredflow.serve.protocol import Budget, CompletionRequest, Count
from xpredflow.serve.requests import Served, completion_jobs

MOST_CHANGES = 16


class LiveChange(BaseModel):
    """After so many passes a position is given a token, by id or text; neither opens it again."""

    model_config = ConfigDict(extra="forbid")
    after: Count
    position: Annotated[StrictInt, Field(ge=0, le=2**31)]
    token: Annotated[StrictInt, Field(ge=0, le=2**31)] | None = None
    text: Annotated[StrictStr, Field(min_length=1, max_length=256)] | None = None
    hold: StrictBool = Field(True, description="the decoder may not revise it")


class LiveRequest(BaseModel):
    """POST /live; `decoder` may carry any option, as in threshold:0.9+block_length=32."""

    model_config = ConfigDict(extra="forbid")
    prompt: Annotated[StrictStr, Field(min_length=1)]
    decoder: StrictStr | None = Field(None, max_length=256)
    max_tokens: Count | None = None
    budget: Budget = None
    seed: Annotated[StrictInt, Field(ge=0, le=2**63 - 1)] | None = None
    changes: Annotated[list[LiveChange], Field(max_length=MOST_CHANGES)] = []


class DecoderCard(BaseModel):
    """A decoder that can be chosen; `main` is what the value behind a colon sets."""

    name: str
    summary: str
    main: str | None = None


class LiveInfo(BaseModel):
    """GET /live: what the page offers."""

    model: str
    decoder: str
    decoders: list[DecoderCard]
    max_gen_length: int


def live_info(served: Served, config: ServeConfig) -> LiveInfo:
    """What is served, and by which decoders."""
    cards = [
        DecoderCard(name=name, summary=about.get("summary", ""), main=about.get("main"))
        for name, about in ((name, DECODERS.entry(name).about) for name in DECODERS)
    ]
    return LiveInfo(
        model=served.name,
        decoder=served.decoder or DEFAULT_DECODER,
        decoders=cards,
        max_gen_length=min(config.max_gen_length, served.max_length),
    )


def live_job(body: LiveRequest, served: Served, config: ServeConfig) -> Job:
    """The one row of a stream, under the rules of every request; chat as `generate` does it."""
    asked = body.model_dump(exclude={"changes"}, exclude_none=True)
    [job] = completion_jobs(CompletionRequest(**asked), served, config)
    changes = tuple(TokenChange(**change.model_dump()) for change in body.changes)
    options = {**job.options, "chat": None}
    return replace(job, options=options, trace=True, changes=changes)


async def live_events(
    feed: Feed, first: Update, on_end: Callable[[Finished], None]
) -> AsyncIterator[str]:
    """The lines of a trace as events, at the rate at which they are asked for."""
    update = first
    while True:
        for line in update.lines:
            yield f"data: {line}\n\n"
        if update.done is not None:
            on_end(update.done)
            return
        waiting = asyncio.ensure_future(feed.next())
        try:
            while not (await asyncio.wait({waiting}, timeout=PULSE))[0]:
                yield ALIVE
            update = waiting.result()
        finally:
            waiting.cancel()
