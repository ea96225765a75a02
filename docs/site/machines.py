"""Where the texts and pictures of the documents were made.

Last digits, and so trees, may be others on another processor or with other libraries.
``machines.json`` lists the machines and what was made on each; the tests compare a page with what
its code prints on the same machine only. Pages and examples may come from different machines.

``drawn.json`` holds the commit that each picture was drawn at. ``python docs/site/machines.py``
lists pictures by commit, those of benchmarks by the commit that brought them, and fails if pictures
of documents are of more than one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

RECORD, DRAWN = (Path(__file__).with_name(f"{name}.json") for name in ("machines", "drawn"))
ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
sys.path.insert(0, str(ROOT / "benchmarks"))
import golden  # noqa: E402 (it knows on what bits depend)


def made_here(name: str) -> bool:
    """Whether a page or an example was made on a machine like this one."""
    made = [one["machine"] for one in _recorded() if name in one["made"]]
    return bool(made) and not golden.unlike(golden.machine(), made[0])


def record(name: str) -> None:
    """Note that a page or an example was made here."""
    here, found = golden.machine(), _recorded()
    for one in found:
        one["made"] = [other for other in one["made"] if other != name]
    alike = [one for one in found if not golden.unlike(here, one["machine"])]
    if not alike:
        alike = [{"machine": here, "made": []}]
        found += alike
    alike[0]["made"] = sorted([*alike[0]["made"], name])
    kept = [one for one in found if one["made"]]
    RECORD.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def _recorded() -> list[dict[str, Any]]:
    return json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else []


def drawn(picture: Path) -> None:
    """Note the commit that a picture is drawn at; those that are gone are forgotten."""
    commits = drawings() | {picture.relative_to(IMAGES).as_posix(): _git("rev-parse", "HEAD")}
    there = {name: commit for name, commit in commits.items() if (IMAGES / name).exists()}
    DRAWN.write_text(json.dumps(there, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def drawings() -> dict[str, str]:
    """The commit of each picture of the documents, by its path in docs/images."""
    return json.loads(DRAWN.read_text(encoding="utf-8")) if DRAWN.is_file() else {}


def pictures() -> list[str]:
    """All pictures in docs/images."""
    files = [p for p in IMAGES.rglob("*.*") if p.suffix in (".png", ".svg")]
    return sorted(p.relative_to(IMAGES).as_posix() for p in files)


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()[:10]


def main() -> None:
    known = drawings()
    for name in pictures():
        commit = known.get(name) or _git("log", "-1", "--format=%H", "--", f"docs/images/{name}")
        print(commit, name, "" if name in known else "(of a benchmark)")
    if len(set(known.values())) > 1:
        raise SystemExit("pictures of documents are of several commits: make documents")


if __name__ == "__main__":
    main()
