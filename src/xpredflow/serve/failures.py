"""Every error as the JSON that the openai client reads: {"error": {"message", "type", ...}}."""

import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException as PlainHTTPException

from xpredflow.errors import InputError
from xpredflow.serve.jobs import RowFailed
from xpredflow.serve.requests import UnknownModel

_log = logging.getLogger("xpredflow.serve")
_NOT_HERE = "expected its neutral value, since nothing here applies it: leave it out"
_EXPECTED = {  # where the words of the schema would not say what to do
    "tools": "expected none, since nothing here calls tools: leave it out",
    "tool_choice": "expected 'none', since nothing here calls tools: leave it out",
    "messages.content": "expected a text, or a list of parts of type 'text'",
    "response_format": "expected type 'json_schema' with a schema, 'choice', 'template' or 'text'",
    **dict.fromkeys(("top_p", "presence_penalty", "frequency_penalty", "logit_bias"), _NOT_HERE),
    **dict.fromkeys(("echo", "best_of", "store"), _NOT_HERE),
}


class Refused(HTTPException):
    """A request that is turned away: status, reason, and headers such as Retry-After."""

    def __init__(self, status: int, code: str, message: str, **headers: str) -> None:
        written = {name.replace("_", "-"): value for name, value in headers.items()}
        super().__init__(status, message, written)
        self.code = code


class Failure(NamedTuple):
    """An error in the words of HTTP and of the API."""

    status: int
    kind: str
    code: str
    message: str
    param: str | None = None
    headers: dict[str, str] = {}  # noqa: RUF012 - never changed

    @property
    def body(self) -> dict[str, Any]:
        """What the client reads."""
        about = {"message": self.message, "type": self.kind, "param": self.param}
        return {"error": {**about, "code": self.code}}


def failure_of(error: BaseException) -> Failure:
    """What to say of an exception; what nobody expected says nothing of the inside."""
    asked = "invalid_request_error"
    if isinstance(error, UnknownModel):
        return Failure(404, asked, "model_not_found", str(error), "model")
    if isinstance(error, InputError):
        return Failure(400, asked, "invalid_value", str(error))
    if isinstance(error, RequestValidationError):
        return _invalid(error)
    if isinstance(error, TimeoutError):
        return Failure(408, "timeout_error", "timeout", "the request took longer than allowed")
    if isinstance(error, PlainHTTPException):
        kind = "server_error" if error.status_code >= 500 else asked
        plain = "not_found" if error.status_code == 404 else "invalid_request"
        code, headers = getattr(error, "code", plain), dict(error.headers or {})
        return Failure(error.status_code, kind, code, str(error.detail), headers=headers)
    if isinstance(error, RowFailed):
        return Failure(500, "server_error", "row_failed", str(error))
    _log.error("unexpected", exc_info=error)
    return Failure(500, "server_error", "internal_error", "the server failed; its log says why")


def _invalid(error: RequestValidationError) -> Failure:
    """The first complaint: where, what was given, what was expected."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        message = f"the body is no JSON: {first['ctx']['error']} at {first['loc'][-1]}"
        return Failure(400, "invalid_request_error", "invalid_value", message)
    where = [str(part) for part in first["loc"] if part != "body"]
    given = "" if first["type"] == "missing" else f" is {first['input']!r:.80}"
    param = where[0] if where else None
    known = f"messages.{where[2]}" if param == "messages" and len(where) > 2 else param
    if param == "response_format" and first["type"] != "union_tag_invalid":
        known = None
    expected = _EXPECTED.get(known or "", first["msg"])
    message = f"{'.'.join(where) or 'the body'}{given}: {expected}"
    return Failure(400, "invalid_request_error", "invalid_value", message, param)


def response_of(failure: Failure) -> Response:
    """The failure as a response."""
    content = json.dumps(failure.body)
    return Response(content, failure.status, failure.headers, media_type="application/json")


def handle(app: FastAPI) -> None:
    """Answer the exceptions of an app in this way; access.py sees those that nobody expected."""

    async def answer(request: Request, error: Exception) -> Response:
        return response_of(failure_of(error))

    handler: Callable[[Request, Exception], Awaitable[Response]] = answer
    for kind in (InputError, RequestValidationError, PlainHTTPException, TimeoutError, RowFailed):
        app.add_exception_handler(kind, handler)
