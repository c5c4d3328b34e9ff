"""One sandbox of each kind for all tests."""

import pytest
from requirements import require

from xpredflow.sandbox import Sandbox


@pytest.fixture(scope="session", params=["bubblewrap", "landlock"])
def box(request):
    require(request.param)
    with Sandbox(workers=1, isolation=request.param) as sandbox:
        yield sandbox


@pytest.fixture(scope="session")
def bubblewrap():
    require("bubblewrap")
    with Sandbox(workers=2, isolation="bubblewrap") as sandbox:
        yield sandbox
