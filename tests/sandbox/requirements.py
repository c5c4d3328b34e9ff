"""What a test needs of the machine. Bubblewrap may be missing on a laptop, not in CI."""

import os
import shutil

import pytest


def require(isolation: str) -> None:
    if isolation == "bubblewrap" and not shutil.which("bwrap"):
        reason = "bubblewrap is not installed: apt-get install bubblewrap"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
