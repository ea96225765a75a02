"""What the site needs beyond the pages in docs/: linked files outside it, and the gallery.

On a code host a page may link to ``../CONTRIBUTING.md`` or ``../src/softsplit/tree/routing.py``.
In the site the first is a page as it is, the second a page that shows the file; links are turned to
them here.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

import gallery  # noqa: E402  # beside this file

LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s#]+)(#[^)\s]*)?(\))")
LANGUAGES = {".py": "python", ".json": "json", ".toml": "toml", ".cff": "yaml"}
PAGES = ("CONTRIBUTING.md", "CHANGELOG.md", "MAINTAINING.md", "SECURITY.md")
"""Documents at the root that are pages of the site."""


def on_config(config: Any) -> Any:
    """The gallery's part of the navigation."""
    entries = [{example.words[0]: f"gallery/{example.name}.md"} for example in gallery.examples()]
    for part in config.nav:
        if "Gallery" in part:
            part["Gallery"] = ["gallery/index.md", *entries]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add root documents, the gallery, and every file outside docs/ that a page links to."""
    made = {name: (ROOT / name).read_text(encoding="utf-8") for name in PAGES}
    made["gallery/index.md"] = gallery.index_page()
    made |= {f"gallery/{example.name}.md": example.page() for example in gallery.examples()}
    for name, content in made.items():
        files.append(File.generated(config, name, content=content))
    for target in sorted(linked_files(files)):
        page = File.generated(config, place_of(target), content=listing(target))
        page.inclusion = page.inclusion.NOT_IN_NAV
        files.append(page)
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links out of docs/ become links to the pages made above."""

    def turned(match: re.Match[str]) -> str:
        before, link, anchor, after = match.groups(default="")
        target = repository_path(page.file.src_uri, link)
        place = None if target is None else place_of(target)
        if place is None:
            return match.group()
        here = posixpath.dirname(page.file.src_uri)
        return f"{before}{posixpath.relpath(place, here or '.')}{anchor}{after}"

    return LINK.sub(turned, markdown)


def linked_files(files: Any) -> set[str]:
    """Files outside docs/ that some page links to and that need a page to show them."""
    found = set()
    for file in files.documentation_pages():
        for _, link, _, _ in LINK.findall(file.content_string):
            target = repository_path(file.src_uri, link)
            if target is not None and (place_of(target) or "").startswith("source/"):
                found.add(target)
    return found


def repository_path(src_uri: str, link: str) -> str | None:
    """The path in the repository that a link of a page means; None for other sites."""
    if "://" in link or link.startswith(("mailto:", "/")):
        return None
    folder = "" if src_uri in PAGES else posixpath.join("docs", posixpath.dirname(src_uri))
    return posixpath.normpath(posixpath.join(folder, link))


def place_of(target: str) -> str | None:
    """Where the site has a file of the repository; None if it has not."""
    if target.startswith("docs/"):
        return target.removeprefix("docs/")
    if target in PAGES:
        return target
    if target == "examples":
        return "gallery/index.md"
    if any(target == f"examples/{example.path.name}" for example in gallery.examples()):
        return f"gallery/{posixpath.basename(target).removesuffix('.py')}.md"
    return f"source/{target}.md" if (ROOT / target).is_file() else None


def listing(target: str) -> str:
    """A page that shows a file of the repository."""
    path = ROOT / target
    language = LANGUAGES.get(path.suffix, "text")
    text = path.read_text(encoding="utf-8").rstrip()
    return f"# {target}\n\n~~~~~{language}\n{text}\n~~~~~\n"
