"""The site builds without a warning, and needs nothing that is not in it.

Skipped where ``softsplit[docs]`` is not installed, except on CI; ``make test`` installs it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from places import ROOT

LOADED = {
    "script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href",
    "video": "src", "audio": "src", "object": "data", "embed": "src",
}  # fmt: skip
"""What a browser fetches by itself."""


class References(HTMLParser):
    """What a page loads, where it links to, and its anchors."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.linked: list[str] = []
        self.anchors: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        if tag in LOADED and LOADED[tag] in values and values.get("rel") != "canonical":
            self.loaded.append(values[LOADED[tag]])
        if tag == "a" and "href" in values:
            self.linked.append(values["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if os.environ.get("CI", "").lower() not in ("1", "true"):  # there a missing part is a failure
        for module in ("mkdocs", "material", "mkdocstrings"):
            pytest.importorskip(module, reason="needs softsplit[docs]")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, References]:
    return {page.resolve(): References(page) for page in sorted(site.rglob("*.html"))}


def test_pages_are_there(site: Path) -> None:
    wanted = ["index", "first-ten-minutes", "when", "gallery/index", "api/estimators"]
    wanted += [
        "CONTRIBUTING",
        "CHANGELOG",
        "results/index",
        "source/src/softsplit/problem/penalties.py",
    ]
    assert [name for name in wanted if not (site / f"{name}.html").is_file()] == []
    reference = (site / "api" / "estimators.html").read_text(encoding="utf-8")
    assert "min_class_rate" in reference and "SoftTreeClassifierCV" in reference
    names = [p.stem for p in (ROOT / "examples").glob("plot_*.py")]
    assert all((site / "gallery" / f"{name}.html").is_file() for name in names)


def test_nothing_is_loaded_from_elsewhere(pages: dict[Path, References]) -> None:
    for page, found in pages.items():
        outside = [r for r in found.loaded if urlsplit(r).netloc or r.startswith(("http", "//"))]
        assert outside == [], page.name


def test_styles_load_nothing_from_elsewhere(site: Path) -> None:
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        assert "url(http" not in text and "url(//" not in text and "@import" not in text, style


def test_no_link_leads_nowhere(pages: dict[Path, References]) -> None:
    dead = [(page.name, link) for page, link in links(pages) if not lives(page, link, pages)]
    assert dead == []


def links(pages: dict[Path, References]) -> Iterator[tuple[Path, str]]:
    """What lies within the site, page by page; the page of errors has absolute links."""
    for page, found in pages.items():
        for link in {*found.loaded, *found.linked}:
            parts = urlsplit(link)
            if not parts.scheme and not parts.netloc and page.name != "404.html":
                yield page, link


def lives(page: Path, link: str, pages: dict[Path, References]) -> bool:
    parts = urlsplit(link)
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if target.is_dir():
        target = target / "index.html"
    anchor = unquote(parts.fragment)
    if not target.is_file():
        return False
    return not anchor or target not in pages or anchor in pages[target].anchors


def test_the_search_works_from_disk(site: Path, browser) -> None:
    for start in ("index.html", "gallery/index.html"):
        page, asked = browser.new_page(), []
        page.on("request", lambda request, asked=asked: asked.append(request.url))
        page.goto((site / start).as_uri())
        field = page.locator(".md-search__input").first
        field.click(force=True)
        field.press_sequentially("shapley values")
        found = page.locator(".md-search-result__link")
        found.first.wait_for(state="attached")
        assert any("shapley" in (link.get_attribute("href") or "") for link in found.all())
        assert all(url.startswith("file://") for url in asked)
        page.close()


def test_pages_fit_a_phone(site: Path, browser) -> None:
    """No page of the main ones scrolls sideways at 390 pixels."""
    page = browser.new_page(viewport={"width": 390, "height": 844})
    wide = []
    for name in ("index", "tables", "cli", "when", "model-files", "mathematics", "live/loans"):
        page.goto((site / f"{name}.html").as_uri())
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            wide.append(name)
    page.close()
    assert wide == []
