"""One server for the tests that only ask; those that test limits start their own."""

from collections.abc import Iterator

import pytest
from running_server import Running, running

from xpredflow import Engine, load


@pytest.fixture(scope="session")
def engine() -> Engine:
    return Engine(load("tiny-aligned"))


@pytest.fixture(scope="session")
def server(engine: Engine) -> Iterator[Running]:
    with running(engine) as served:
        yield served
