"""A real browser without a window, one per file; where there is none, skipped with a reason.

With CI=true that is an error, as .ci/run installs one.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "chromium-headless-shell")
NAMES += ("google-chrome", "google-chrome-stable")


@pytest.fixture(scope="module")  # while it is open asyncio.run works nowhere in the process
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright (group dev)")
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        say = pytest.fail if os.environ.get("CI") else pytest.skip
        say(f"needs a browser: install one of {', '.join(NAMES)}")
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []  # root may not have Chromium's own
    with sync_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=arguments)
        yield launched
        launched.close()


class Tab:
    """A page that tells of everything that it should not do."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.origin = "file:"
        self.problems: list[str] = []
        self.requests: list[str] = []
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda message: self.problems.append(message.text))
        page.on("dialog", lambda dialog: (self.problems.append("a dialog"), dialog.dismiss()))
        page.on("request", lambda request: self.requests.append(request.url))

    def open(self, at: Path | str) -> Any:
        """A file, or the page of a server."""
        self.origin = "file:" if isinstance(at, Path) else f"{at}/"
        self.page.goto(at.as_uri() if isinstance(at, Path) else at)
        self.page.wait_for_selector("html[data-ready]", timeout=20_000)
        return self.page


@pytest.fixture
def tab(browser: Any) -> Iterator[Tab]:
    page = browser.new_page(viewport={"width": 1100, "height": 800})
    tab = Tab(page)
    yield tab
    page.close()
    assert tab.problems == []
    assert all(url.startswith(tab.origin) for url in tab.requests), "a page asks nobody else"
