"""What belongs to a release: do the versions agree, and which notes does it have?

python docs/site/release.py check             # version.py, CHANGELOG.md and CITATION.cff agree
python docs/site/release.py check --tag v0.1.0    # and so does the tag
python docs/site/release.py notes             # the topmost section of CHANGELOG.md
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADING = re.compile(r"^## (\S+) - (\d{4}-\d\d-\d\d)$", re.MULTILINE)


def found(pattern: str, name: str, root: Path) -> str:
    """The group of a pattern in a file of the repository."""
    match = re.search(pattern, (root / name).read_text(encoding="utf-8"), re.MULTILINE)
    if match is None:
        sys.exit(f"{name} has no line such as {pattern}.")
    return match[1]


def disagreements(tag: str | None, root: Path = ROOT) -> list[str]:
    """One sentence for each place that names another version or day; none if all agree."""
    version = found(r'^__version__ = "(.+)"$', "src/softsplit/support/version.py", root)
    listed = HEADING.search((root / "CHANGELOG.md").read_text(encoding="utf-8"))
    if listed is None:
        return ["CHANGELOG.md has no heading such as ## 0.1.0 - 2026-11-18."]
    day = found(r"^date-released: (.+)$", "CITATION.cff", root)
    said = {
        "CHANGELOG.md": (listed[1], version),
        "CITATION.cff": (found(r"^version: (.+)$", "CITATION.cff", root), version),
        "the day in CITATION.cff": (day, listed[2]),
        "the tag": (f"v{version}" if tag is None else tag, f"v{version}"),
    }
    return [f"{place} says {a}, not {b}." for place, (a, b) in said.items() if a != b]


def notes(root: Path = ROOT) -> str:
    """The topmost section of the changelog without its heading."""
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    return re.split(r"^## .+$", text, flags=re.MULTILINE)[1].strip() + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["check", "notes"])
    parser.add_argument("--tag", help="the tag that is released")
    args = parser.parse_args()
    if args.what == "notes":
        sys.stdout.write(notes())
    elif wrong := disagreements(args.tag):
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
