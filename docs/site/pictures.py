"""Reports of the documents: pictures of them, and the live one, made by the commands of the pages.

``python docs/site/pictures.py`` runs every ``softsplit fit NAME.csv ... --report NAME.html`` that
stands in docs/reports.md, on the table that ``TABLES`` makes, and takes pictures of the top of the
page: wide, narrow as a phone, and dark. The page of ``LIVE`` is kept as docs/live/NAME.html. A
report whose tree has no question, or whose comparison was cut short, is refused. It needs
playwright and chromium, as the tests of the report do.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import machines
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from softsplit.data import loans

DOCS = Path(__file__).resolve().parents[1]
FOLDER = DOCS / "images" / "reports"
BUILD = DOCS.parent / "build" / "reports"
LIVE = DOCS / "live" / "loans.html"
VIEWS = {
    "wide": {"viewport": {"width": 1280, "height": 1000}, "color_scheme": "light"},
    "narrow": {"viewport": {"width": 390, "height": 1400}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 1000}, "color_scheme": "dark"},
}
UNFIT = re.compile(
    r"\b0 of [\d,]+ columns?\b|Not judged:|not judged: the work|was cut short|"
    r"(?:limit ended|Ctrl-C came) before"
)
"""Words of a page whose tree asks nothing, or whose comparison was cut short."""


def wine() -> pd.DataFrame:
    X, y = load_wine(return_X_y=True, as_frame=True)
    return X.assign(cultivar=y)


def tumours() -> pd.DataFrame:
    """Eighty of the tumours of Wisconsin."""
    data = load_breast_cancer(as_frame=True)
    kinds = data.target.map({0: "malignant", 1: "benign"})
    return data.data.assign(diagnosis=kinds).sample(80, random_state=1)


def diabetes() -> pd.DataFrame:
    data = load_diabetes(as_frame=True, scaled=False)
    return data.data.assign(progression=data.target)


TABLES: dict[str, Callable[[], pd.DataFrame]] = {
    "loans": loans, "wine": wine, "tumours": tumours, "diabetes": diabetes,
}  # fmt: skip


def commands() -> dict[str, list[str]]:
    """Commands of the page of pictures by the name of their table, without that of the program."""
    text = (DOCS / "reports.md").read_text(encoding="utf-8")
    shown = re.findall(r"`softsplit (fit (\w+)\.csv [^`]*--report \2\.html[^`]*)`", text)
    return {name: shlex.split(command) for command, name in shown}


def unfit(page: str) -> str | None:
    """Why a page may stand in no document: what it says."""
    said = UNFIT.search(re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL))
    return said and said[0]


def written(wanted: list[str]) -> dict[str, Path]:
    """The reports by name, made in ``BUILD``."""
    BUILD.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    pages = {}
    for name, words in commands().items():
        if wanted and name not in wanted:
            continue
        TABLES[name]().to_csv(BUILD / f"{name}.csv", index=False)
        call = [sys.executable, "-m", "softsplit", *words, "--quiet", "--time-limit", "0"]
        subprocess.run(call, cwd=BUILD, env=environment, check=True, stdout=subprocess.DEVNULL)
        pages[name] = BUILD / f"{name}.html"
        if said := unfit(pages[name].read_text(encoding="utf-8")):
            raise SystemExit(f"{name}: the report is fit for no document; it says {said!r}")
        print(f"report of {name}", flush=True)
    return pages


def take(pages: dict[str, Path]) -> None:
    """Pictures of the pages, in all views."""
    from playwright.sync_api import sync_playwright

    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        program = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for name, path in pages.items():
            for view, options in VIEWS.items():
                context = browser.new_context(**options)
                page = context.new_page()
                page.goto(path.resolve().as_uri())
                page.wait_for_selector("html.ready")
                picture = FOLDER / f"{name}-{view}.png"
                page.screenshot(path=picture)
                machines.drawn(picture)
                context.close()
        browser.close()


def main() -> None:
    pages = written(sys.argv[1:])
    if LIVE.stem in pages:
        LIVE.parent.mkdir(exist_ok=True)
        LIVE.write_bytes(pages[LIVE.stem].read_bytes())
    take(pages)


if __name__ == "__main__":
    main()
