"""What software made a row: versions of the packages that bear on it, and a digest of our code."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from importlib import metadata
from pathlib import Path

from softsplit.support.version import __version__

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "casadi")
NO_BEARING = ("experiments/", "cli/", "report/", "plots")
"""Parts of the package that change no row, but for the files in ``ROW_MAKERS``."""

ROW_MAKERS = ("experiments/folds.py", "experiments/seeds.py", "experiments/work.py")


@cache
def versions() -> dict[str, str]:
    """Package -> version; packages that are not installed are left out."""
    found = {"python": platform.python_version(), "softsplit": __version__}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    found["code"] = code_digest()
    return found


@cache
def code_digest() -> str:
    """Digest of the sources that a row depends on."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if name in ROW_MAKERS or not name.startswith(NO_BEARING):
            digest.update(name.encode() + path.read_bytes())
    return digest.hexdigest()[:12]
