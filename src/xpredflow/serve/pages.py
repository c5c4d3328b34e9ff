"""The pages of a server: the live viewer at /, and the description of the API at /docs.

Both are whole in themselves: their policy lets them load nothing from anywhere.
"""

import html
from functools import cache
from typing import Any

from fastapi import FastAPI
from fastapi.responses import HTMLResponse

from xpredflow.watch.viewer import build_live_page, part, style_policy

# What a policy in the page itself cannot say, and no guesses at types.
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}


def add_pages(app: FastAPI) -> None:
    """The routes of both."""

    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    async def live_page() -> HTMLResponse:
        return _response(*cached_live_page())

    @app.get("/docs", response_class=HTMLResponse, include_in_schema=False)
    async def reference() -> HTMLResponse:
        return _response(*reference_page(app.openapi()))


@cache
def cached_live_page() -> tuple[str, str]:
    """The live page and its policy, put together once."""
    return build_live_page()


def _response(page: str, policy: str) -> HTMLResponse:
    headers = {"content-security-policy": f"{policy}; frame-ancestors 'none'", **HEADERS}
    return HTMLResponse(page, headers=headers)


def reference_page(schema: dict[str, Any]) -> tuple[str, str]:
    """An OpenAPI schema as plain HTML, and the policy it stands under."""
    style = part("style.css") + part("index.css")
    info = schema["info"]
    title = html.escape(f"{info['title']} {info['version']}")
    body = "".join(
        _operation(method, path, operation)
        for path, operations in schema["paths"].items()
        for method, operation in operations.items()
    )
    known = schema.get("components", {}).get("schemas", {})
    body += "<h2>Types</h2>\n" + "".join(_type(name, known[name]) for name in sorted(known))
    page = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
        '<p>The same as JSON: <a href="openapi.json">openapi.json</a>. With a token, every request'
        " carries it as <code>Authorization: Bearer ...</code>.</p>\n"
        f"{body}</body>\n</html>\n"
    )
    return page, style_policy(style)


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    """A request: what it does, what it takes, what it answers."""
    asked = _content(operation.get("requestBody", {}))
    answers = _content(operation["responses"].get("200", {}))
    lines = [f"<p>{html.escape(operation.get('description', ''))}</p>"]
    lines += [
        f"<p>Parameter <code>{html.escape(p['name'])}</code>: in the {p['in']}.</p>"
        for p in operation.get("parameters", [])
    ]
    lines += [
        f"<p>{name}: {what}</p>" for name, what in (("Takes", asked), ("Gives", answers)) if what
    ]
    return f"<h2><code>{method.upper()} {html.escape(path)}</code></h2>\n" + "\n".join(lines) + "\n"


def _content(message: dict[str, Any]) -> str:
    kinds = message.get("content", {})
    return "; ".join(
        f"<code>{html.escape(kind)}</code> {_kind(about.get('schema', {}))}"
        for kind, about in kinds.items()
    )


def _type(name: str, schema: dict[str, Any]) -> str:
    """A type and its fields."""
    required = schema.get("required", [])
    rows = "".join(
        f"<tr><td><code>{html.escape(field)}</code>{' *' if field in required else ''}</td>"
        f"<td>{_kind(about)}</td><td>{html.escape(about.get('description', ''))}</td></tr>\n"
        for field, about in schema.get("properties", {}).items()
    )
    head = f'<h3 id="{html.escape(name)}"><code>{html.escape(name)}</code></h3>\n'
    text = f"<p>{html.escape(schema.get('description', ''))}</p>\n"
    table = f'<table class="index">\n<tbody>\n{rows}</tbody></table>\n' if rows else ""
    return head + text + table


def _kind(schema: dict[str, Any]) -> str:
    """A type in a few words, with links to those that have names."""
    if "$ref" in schema:
        name = html.escape(schema["$ref"].rsplit("/", 1)[-1])
        return f'<a href="#{name}">{name}</a>'
    for joint in ("anyOf", "oneOf", "allOf"):
        if joint in schema:
            return " or ".join(_kind(one) for one in schema[joint])
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return ", ".join(f"<code>{html.escape(repr(value))}</code>" for value in values)
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    bounds = [f"{word} {schema[key]}" for key, word in BOUNDS.items() if key in schema]
    return html.escape(" ".join([str(schema.get("type", "anything")), *bounds]))


BOUNDS = {"minimum": "≥", "maximum": "≤", "maxLength": "of at most", "minLength": "of at least"}
