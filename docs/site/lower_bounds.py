"""The lower bounds of pyproject.toml as constraints for pip: "a>=1" becomes "a==1".

What the library and its extras need is pinned; the tools of the tests are not, since no user has
them. ``make test-oldest`` installs under these constraints and runs the tests.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
EXTRAS = ("dask", "excel", "experiments", "ipopt", "onnx", "parquet", "plots")
"""Extras that the library itself can use: those of ``softsplit[all]``."""

BOUND = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?>=([0-9.]+)")


def lower_bounds(project: Path = PROJECT) -> dict[str, str]:
    """Package and lowest version; a requirement without a lower bound is an error."""
    table = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    extras = table["optional-dependencies"]
    wanted = [*table["dependencies"], *(line for name in EXTRAS for line in extras[name])]
    bounds: dict[str, str] = {}
    for line in wanted:
        found = BOUND.match(line)
        if found is None:
            raise ValueError(f"requirement {line!r} of {project.name} has no lower bound.")
        name, version = found.groups()
        if bounds.setdefault(name, version) != version:
            raise ValueError(f"{project.name} gives two lower bounds of {name}.")
    return bounds


if __name__ == "__main__":
    print("\n".join(f"{name}=={version}" for name, version in lower_bounds().items()))
