"""The browser of the tests: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def chromium_path() -> str:
    """The program, or a skip that says why; on CI a missing browser is a failure."""
    found = next((path for path in map(shutil.which, NAMES) if path), None)
    reason = "no Chromium; install it with: apt-get install chromium (make test tries to)"
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        found, reason = None, "playwright is not installed; pip install playwright"
    if found is None:
        if os.environ.get("CI", "").lower() in ("1", "true"):
            pytest.fail(f"browser tests must run here: {reason}")
        pytest.skip(reason)
    return found
