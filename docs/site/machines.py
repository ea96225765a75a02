"""Where the texts and pictures of the documents were made.

Last digits, and so trees, may be others on another processor or with other libraries.
``machines.json`` lists the machines and what was made on each; the tests compare a page with what
its code prints on the same machine only. Pages and examples may come from different machines.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

RECORD = Path(__file__).with_name("machines.json")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
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
