"""Random numbers by name: what is drawn depends on the named axes, and on nothing else.

Two methods that draw for the same axes see the same folds and the same starts, in whatever order
and on whatever machine their cells run.
"""

from __future__ import annotations

import hashlib
import json

import numpy as np


def axis_seed(*axes: str | int) -> np.random.SeedSequence:
    """A seed sequence from names and numbers, the same on every machine."""
    text = json.dumps(axes, separators=(",", ":"))
    return np.random.SeedSequence(int.from_bytes(hashlib.sha256(text.encode()).digest()[:16]))
