"""Who may ask and how much: token, host, size of the body; a request id and a line of log for each.

Plain ASGI, so that a client that hangs up is noticed by whoever answers it.
"""

import hmac
import json
import logging
import re
import time
from typing import Any
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from xpredflow.serve.config import ServeConfig, is_loopback
from xpredflow.serve.failures import Refused, failure_of, response_of
from xpredflow.serve.metrics import Metrics

_log = logging.getLogger("xpredflow.serve")
OPEN = ("/", "/healthz", "/docs", "/openapi.json")  # answered without a token: they tell nothing
NOT_BEGUN = 499  # as others log it: the client was gone before the answer began
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Access:
    """Wraps the app; what is turned away never reaches it."""

    def __init__(self, app: ASGIApp, config: ServeConfig, metrics: Metrics) -> None:
        self.app, self.config, self.metrics = app, config, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers, began = Headers(scope=scope), time.perf_counter()
        given = headers.get("x-request-id", "")
        about: dict[str, Any] = {"id": given if _ID.fullmatch(given) else uuid4().hex}
        scope.setdefault("state", {})["about"] = about
        status = NOT_BEGUN

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["x-request-id"] = about["id"]
            await send(message)

        try:
            self._check(scope["path"], headers)
            await self.app(scope, _bounded(receive, self.config.max_body), send_with_id)
        except Exception as error:
            failure = failure_of(error)
            if status == NOT_BEGUN:
                await response_of(failure)(scope, receive, send_with_id)
        finally:
            seconds = time.perf_counter() - began
            route = getattr(scope.get("route"), "path", "other")
            self.metrics.requests.labels(route, str(status)).inc()
            if route.startswith("/v1/") and scope["method"] == "POST":
                self.metrics.seconds.labels(route).observe(seconds)
            line = {"method": scope["method"], "path": scope["path"], "status": status}
            _log.info("", extra={"about": {**about, **line, "seconds": round(seconds, 4)}})

    def _check(self, path: str, headers: Headers) -> None:
        token = self.config.token
        if token is None and not _is_local(headers.get("host", "")):
            # a page in a browser of this machine may reach us by a name of its own
            raise Refused(
                403, "host_refused", "without a token only requests to localhost are answered"
            )
        if token is not None and path not in OPEN and not _same(headers, token):
            message = "send the server's token as API key (Authorization: Bearer ...)"
            raise Refused(401, "invalid_api_key", message, WWW_Authenticate="Bearer")
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > self.config.max_body:
            raise _too_large(self.config.max_body)


def _same(headers: Headers, token: str) -> bool:
    """In constant time: how long it takes says nothing of how much was right."""
    given = headers.get("authorization", "").encode()
    return hmac.compare_digest(given, f"Bearer {token}".encode())


def _is_local(host: str) -> bool:
    name = host.rpartition(":")[0] if re.search(r":\d+$", host) else host
    return is_loopback(name)


def _bounded(receive: Receive, limit: int) -> Receive:
    """Count what comes in: a body in pieces states no length."""
    seen = 0

    async def receive_bounded() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:
            raise _too_large(limit)
        return message

    return receive_bounded


def _too_large(limit: int) -> Refused:
    return Refused(413, "body_too_large", f"a request may have at most {limit} bytes")


class JsonLines(logging.Formatter):
    """A log line as one JSON object; prompts and answers are never logged."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {"time": round(record.created, 3), "level": record.levelname.lower()}
        if record.getMessage():
            line["message"] = record.getMessage()
        line |= getattr(record, "about", {})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)
