"""The HTTP API: requests -> jobs -> a backend -> answers or streams of events."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import Annotated, Any

from fastapi import Body, FastAPI, Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from xpredflow import __version__
from xpredflow.serve.access import Access
from xpredflow.serve.admission import Admission
from xpredflow.serve.answers import ChatStyle, Style, TextStyle, usage_of
from xpredflow.serve.config import ServeConfig
from xpredflow.serve.events import answer_events, event
from xpredflow.serve.failures import Refused, failure_of, handle
from xpredflow.serve.feed import Backend
from xpredflow.serve.following import Following, Result
from xpredflow.serve.jobs import Finished, Job, RowFailed
from xpredflow.serve.live import LiveInfo, LiveRequest, live_events, live_info, live_job
from xpredflow.serve.metrics import CONTENT_TYPE, Metrics
from xpredflow.serve.pages import add_pages
from xpredflow.serve.protocol import ChatRequest, Common, CompletionRequest, ErrorBody
from xpredflow.serve.replies import ChatCompletion, Completion, Health, ModelCard, ModelList
from xpredflow.serve.requests import Served, UnknownModel, chat_jobs, completion_jobs

NO_BUFFERING = {"cache-control": "no-cache", "x-accel-buffering": "no"}
ERRORS: dict[int | str, dict[str, Any]] = {"4XX": {"model": ErrorBody}, "5XX": {"model": ErrorBody}}
STREAM = {"text/event-stream": {}}  # chunks as the API writes them, one per event


def make_app(
    backend: Backend, served: Served, config: ServeConfig, metrics: Metrics | None = None
) -> FastAPI:
    """The app around a backend; it stops the backend when it ends itself."""
    desk = Desk(backend, served, config, metrics or Metrics(config.max_batch))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(backend.stop)

    app = FastAPI(
        title="xpredflow",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        responses=ERRORS,
    )
    app.state.desk = desk
    handle(app)
    _routes(app, desk)
    add_pages(app)
    app.add_middleware(Access, config=config, metrics=desk.metrics)
    return app


def _routes(app: FastAPI, desk: "Desk") -> None:
    def both(model: type) -> dict[int | str, dict[str, Any]]:
        return {200: {"model": model, "content": STREAM}}

    @app.post("/v1/chat/completions", response_model=None, responses=both(ChatCompletion))
    async def chat(body: Annotated[ChatRequest, Body()], request: Request) -> Any:
        """Answer a conversation."""
        jobs = chat_jobs(body, desk.served, desk.config)
        return await desk.answer(request, body, jobs, ChatStyle(desk.served.name))

    @app.post("/v1/completions", response_model=None, responses=both(Completion))
    async def complete(body: Annotated[CompletionRequest, Body()], request: Request) -> Any:
        """Continue a text, or fill in what stands between it and a suffix."""
        jobs = completion_jobs(body, desk.served, desk.config)
        return await desk.answer(request, body, jobs, TextStyle(desk.served.name))

    @app.post("/live", response_class=Response, responses={200: {"content": STREAM}})
    async def live(body: Annotated[LiveRequest, Body()], request: Request) -> Any:
        """Decode a prompt and send every pass, as the lines of a trace."""
        return await desk.live(request, live_job(body, desk.served, desk.config))

    @app.get("/live")
    async def about_live() -> LiveInfo:
        """What the page at / offers."""
        return live_info(desk.served, desk.config)

    @app.get("/v1/models")
    async def models() -> ModelList:
        """What is served."""
        return ModelList(data=[desk.card])

    @app.get("/v1/models/{name:path}")
    async def model(name: str) -> ModelCard:
        """One model."""
        if name != desk.served.name:
            raise UnknownModel(f"model is {name!r}: this server has {desk.served.name!r}")
        return desk.card

    @app.get("/healthz")
    async def health(response: Response) -> Health:
        """Whether requests are answered."""
        try:
            desk.backend.check()
        except RowFailed:
            response.status_code = 503
            return Health(status="failed")
        if desk.admission.draining:
            response.status_code = 503
            return Health(status="draining")
        return Health(status="ok")

    @app.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    async def metrics() -> Response:
        """Counters for Prometheus."""
        return Response(desk.metrics.written(), media_type=CONTENT_TYPE)


class Desk:
    """Takes requests in and hands answers out."""

    def __init__(
        self, backend: Backend, served: Served, config: ServeConfig, metrics: Metrics
    ) -> None:
        self.backend, self.served, self.config, self.metrics = backend, served, config, metrics
        self.admission = Admission(config.capacity, metrics)
        self.card = ModelCard(
            id=served.name,
            created=int(time.time()),
            max_length=served.max_length,
            decoder=served.decoder or "flow",
        )

    async def answer(self, request: Request, body: Common, jobs: list[Job], style: Style) -> Any:
        """The whole answer, or its stream once every row is accepted."""
        began = time.perf_counter()
        with ExitStack() as held:
            held.enter_context(self.admission.places(len(jobs)))
            following = Following(self.backend, jobs, body.stops)
            held.callback(following.close)
            until = asyncio.get_running_loop().time() + self.config.max_seconds
            async with asyncio.timeout_at(until):
                await _unless_gone(request, following.accept())
                if not body.stream:
                    results = await _unless_gone(request, following.results())
                    self._count(request, sum(following.prompt_tokens), results)
                    usage = usage_of(following.prompt_tokens, body.n, results)
                    return style.whole(results, usage)
            events = self._events(request, body, following, style, began, until)
            return EventStream(events, held.pop_all())

    async def _events(
        self,
        request: Request,
        body: Common,
        following: Following,
        style: Style,
        began: float,
        until: float,
    ) -> AsyncIterator[str]:
        first = True

        def on_text() -> None:
            nonlocal first
            if first:
                self.metrics.first_text.observe(time.perf_counter() - began)
            first = False

        events = answer_events(
            following,
            style,
            body.n,
            usage=body.wants_usage,
            drafts=body.drafts,
            on_text=on_text,
            on_end=lambda results: self._count(request, sum(following.prompt_tokens), results),
        )
        async for text in _until(request, events, until):
            yield text

    async def live(self, request: Request, job: Job) -> Any:
        """The passes of a row as they come, once it is accepted."""
        with ExitStack() as held:
            held.enter_context(self.admission.places(1))
            feed = self.backend.open(job)
            held.callback(feed.close)
            until = asyncio.get_running_loop().time() + self.config.max_seconds
            async with asyncio.timeout_at(until):
                first = await _unless_gone(request, feed.next())
            events = live_events(
                feed, first, lambda done: self._count(request, first.prompt_tokens, [done])
            )
            return EventStream(_until(request, events, until), held.pop_all())

    def _count(self, request: Request, tokens: int, results: Sequence[Result | Finished]) -> None:
        self.metrics.on_answers(results, tokens)
        request.state.about |= {
            "prompt_tokens": tokens,
            "tokens": sum(result.tokens for result in results),
            "passes": sum(result.passes for result in results),
        }


class EventStream(StreamingResponse):
    """A stream of events; whatever ends it, what it holds is given back at once."""

    def __init__(self, events: AsyncIterator[str], held: ExitStack) -> None:
        super().__init__(events, media_type="text/event-stream", headers=NO_BUFFERING)
        self.held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self.held:
            await super().__call__(scope, receive, send)


async def _until(request: Request, events: AsyncIterator[str], until: float) -> AsyncIterator[str]:
    """Events until they end, the client hangs up or the time is over."""
    try:
        while True:
            async with asyncio.timeout_at(until):
                text = await _unless_gone(request, anext(events, None))
            if text is None:
                return
            yield text
    except Exception as error:  # the status is sent: what is wrong is said in the stream
        yield event(failure_of(error).body)


async def _unless_gone(request: Request, work: Awaitable[Any]) -> Any:
    """The work's result, unless the client hangs up before it is there."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_hang_up(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise Refused(499, "client_gone", "the client has hung up")
        return task.result()
    finally:
        task.cancel()
        gone.cancel()


async def _hang_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
