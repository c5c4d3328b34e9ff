"""Requests made up from the OpenAPI description: whatever comes, never a failure of the server."""

import re

import httpx
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from running_server import Running
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance

ROUTES = {
    "POST /v1/chat/completions",
    "POST /v1/completions",
    "POST /live",
    "GET /live",
    "GET /v1/models",
    "GET /v1/models/{name}",
    "GET /healthz",
    "GET /metrics",
}


def test_the_description_names_every_route(server: Running) -> None:
    paths = httpx.get(f"{server.url}/openapi.json").json()["paths"]
    found = {f"{verb.upper()} {path}" for path, verbs in paths.items() for verb in verbs}
    assert found == ROUTES
    for path in ("/v1/chat/completions", "/v1/completions", "/live"):
        assert "422" not in paths[path]["post"]["responses"]
        assert "text/event-stream" in paths[path]["post"]["responses"]["200"]["content"]


def test_the_page_of_the_description_is_whole_in_itself(server: Running) -> None:
    response = httpx.get(f"{server.url}/docs")
    page, policy = response.text, response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert not re.search(r"<script|<link|<img|(src|href)=.https?:|@import", page)
    for route in ROUTES:
        assert f"<code>{route}</code>" in page
    named = set(re.findall(r'href="#(\w+)"', page))
    assert named
    assert named <= set(re.findall(r'id="(\w+)"', page))
    assert "such as threshold:0.9" in page


def test_requests_made_up_from_the_description_do_not_break_it(server: Running) -> None:
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    operations = [found.ok() for found in schema.get_all_operations()]  # type: ignore[union-attr]
    assert len(operations) == len(ROUTES)
    made = [
        operation.as_strategy(generation_mode=mode)
        for operation in operations
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
        if operation.label.startswith("POST") or mode is GenerationMode.POSITIVE
    ]
    statuses: set[int] = set()

    @settings(max_examples=150, suppress_health_check=[*HealthCheck])  # type: ignore[arg-type]
    @given(st.one_of(made))
    def ask(case: schemathesis.Case) -> None:
        response = case.call(timeout=60)
        statuses.add(response.status_code)
        case.validate_response(response, checks=[not_a_server_error, response_schema_conformance])
        if response.status_code >= 400:
            assert response.json()["error"]["message"]

    ask()
    assert {200, 400} <= statuses
