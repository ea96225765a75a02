"""Settings shared by every test: hypothesis always draws the same examples; one browser."""

import pytest
from hypothesis import settings

from browser import chromium_path

# The first call of a compiled function takes seconds, so that no deadline can be kept.
settings.register_profile("softsplit", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("softsplit")


@pytest.fixture(scope="module")
def browser():
    path = chromium_path()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # As root, as in containers, Chromium has no sandbox.
        opened = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()
