"""Pictures of reports for the documents: wide, narrow and dark.

Usage: python docs/images/make_reports.py wine.html fraud.html ...; pictures go to
docs/images/reports. It needs playwright and chromium, as the tests of the report do.
The live report of the home page, docs/live/wine.html, is made by the line that stands above it.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

FOLDER = Path(__file__).resolve().parent / "reports"
VIEWS = {
    "wide": {"viewport": {"width": 1100, "height": 1500}, "color_scheme": "light"},
    "narrow": {"viewport": {"width": 390, "height": 1500}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1100, "height": 1500}, "color_scheme": "dark"},
}


def main(pages: list[Path]) -> None:
    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        program = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for path in pages:
            for view, options in VIEWS.items():
                context = browser.new_context(**options)
                page = context.new_page()
                page.goto(path.resolve().as_uri())
                page.wait_for_selector("html.ready")
                page.screenshot(path=FOLDER / f"{path.stem}-{view}.png")
                context.close()
        browser.close()


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
