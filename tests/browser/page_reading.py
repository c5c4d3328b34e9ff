"""What the tests of both pages read from them, and the pictures they make of them."""

import os
import time
from pathlib import Path
from typing import Any

SCREENSHOTS = os.environ.get("XPREDFLOW_SCREENSHOTS")


def keep(page: Any, name: str) -> None:
    """A picture for the documentation, where one is asked for."""
    if SCREENSHOTS:
        from PIL import Image

        file = Path(SCREENSHOTS) / f"{name}.png"
        page.screenshot(path=str(file))
        with Image.open(file) as picture:  # a quarter of the bytes, and nobody sees it
            small = picture.convert("RGB").quantize(64)
        small.save(file, optimize=True)


def tokens(page: Any, column: int = 0) -> Any:
    return page.locator("article").nth(column).locator(".answer .token")


def answer(page: Any, column: int = 0) -> str:
    text = page.locator("article").nth(column).locator(".answer").inner_text()
    return text.replace("↵", "").replace("∎", "").strip()


def contrast(one: str, other: str) -> float:
    """Of two CSS colours, as WCAG counts it."""

    def brightness(colour: str) -> float:
        inner = colour[colour.index("(") + 1 : -1].replace(",", " ").replace("srgb", "").split()
        parts = [float(value) for value in inner[:3]]
        parts = [part / 255 for part in parts] if colour.startswith("rgb") else parts
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((brightness(one), brightness(other)))
    return (high + 0.05) / (low + 0.05)


def until(page: Any, expression: str, seconds: float = 60) -> None:
    """Wait for something to come true; the page's policy forbids Playwright's own way."""
    end = time.monotonic() + seconds
    while not page.evaluate(expression):
        assert time.monotonic() < end, f"{expression} did not come true"
        page.wait_for_timeout(20)
