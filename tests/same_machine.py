"""Whether trees have the same bits here as where the golden results and the documents were made."""

from __future__ import annotations

import json
import sys

from places import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))
import golden


def same_machine() -> bool:
    """Same processor and libraries; elsewhere last digits, and so trees, may be others."""
    return not golden.unlike(golden.machine(), json.loads(golden.REFERENCE.read_text())["machine"])
