"""``softsplit info``: describe a model file, a table or this installation."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

import typer

from softsplit.cli import options
from softsplit.cli.console import echo, print_json
from softsplit.cli.inputs import read
from softsplit.support.messages import visible
from softsplit.support.options import provided
from softsplit.support.version import __version__

EPILOG = "Examples: softsplit info, softsplit info tree.json, softsplit info patients.csv"
NEEDED = ("numpy", "scipy", "scikit-learn", "numba", "pandas")
# Optional distributions of the core and their extras; option packages declare their own.
OPTIONAL = {"pyarrow": "parquet", "openpyxl": "excel"}

# Titles of facts in text output, where they differ from the keys in JSON.
TITLES = {
    "selected_features": "features used",
    "local_strength": "strength per coefficient",
    "global_strength": "strength per feature",
    "left_out": "columns left out",
    "steepness": "steepness of the splits",
}

# Entries of a list that ``softsplit info`` shows.
FACTS = 12


def info(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE", help="Model file (.json) or table; default: this installation."
        ),
    ] = None,
    encoding: options.Encoding = None,
    text: options.Text = "short",
    as_json: options.AsJson = False,
) -> None:
    """Describe a model file and print its tree, or describe a table or this installation."""
    tree = ""
    if file is None:
        facts = _installation()
    elif file.lower().endswith(".json"):
        facts, tree = _model(Path(file), detail=text == "full")
    else:
        facts = _table(file, encoding)
    if as_json:
        print_json(facts | ({"tree": tree} if tree else {}))
        return
    facts = {
        visible(TITLES.get(name, name)): value
        for name, value in facts.items()
        if value != [] and not (name == "steepness" and facts["loss"] == "log")
    }
    width, most = max(map(len, facts)) + 2, FACTS
    for name, value in facts.items():
        listed = value[:most] if isinstance(value, list) else [value]
        listing = ", ".join(map(visible, listed))
        more = f", ... ({len(value)})" if isinstance(value, list) and len(value) > most else ""
        echo(f"{name:<{width}}{listing}{more}")
    if tree:
        echo(f"\n{tree}")


def _installation() -> dict[str, Any]:
    facts: dict[str, Any] = {
        "softsplit": __version__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }
    optional = OPTIONAL | provided("requires")
    for name in (*NEEDED, *optional):
        try:
            facts[name] = version(name)
        except PackageNotFoundError:
            extra = f"; pip install 'softsplit[{optional[name]}]'" if name in optional else ""
            facts[name] = f"not installed{extra}"
    return facts


def _model(path: Path, detail: bool) -> tuple[dict[str, Any], str]:
    """Return the facts of a model file, and the text of its tree."""
    if path.is_dir() or not path.exists():
        raise FileNotFoundError(f"there is no model file {str(path)!r}.")
    from softsplit.persistence.files import load_tree
    from softsplit.reading.text import tree_text

    saved = load_tree(path)
    model, parameters = saved.tree_, saved.parameters
    facts: dict[str, Any] = {
        "kind": "model file of softsplit",
        "classes": [str(label) for label in model.classes],
        "features": len(set(model.table_coding.places)),  # without columns that were left out
        "selected_features": [model.column_names[j] for j in model.selected_columns],
        "depth": model.topology.depth,
        "steepness": float(model.steepness),
        "scaling": model.scaling.kind,
        "loss": str(parameters.get("loss", "log")),
    }
    names = ("local_strength", "global_strength") if model.numbers is None else ("strength",)
    facts |= {name: parameters.get(name, "auto") for name in names}
    if model.target is not None:
        facts["target"] = model.target
    if model.coding is not None:
        facts["columns"] = list(model.coding.names)
        facts["kinds"] = [f"{v.name}: {v.kind}" for v in model.coding.variables]
        facts["left_out"] = [f"{name}: {why}" for name, why in model.coding.left_out]
    return facts, tree_text(model, detail=detail)


def _table(source: str, encoding: str | None) -> dict[str, Any]:
    table = read(source, encoding, quiet=True)
    import numpy as np

    from softsplit.data.files import with_decimal_points
    from softsplit.variables.kinds import column_facts

    frame = with_decimal_points(table)
    facts: dict[str, Any] = {"kind": "table", "rows": len(frame), "columns": len(frame.columns)}
    for name in frame.columns:
        kind, missing = column_facts(str(name), frame[name], np.ones(len(frame)))
        facts[f"column {name}"] = kind + (f", {missing} missing" if missing else "")
    return facts
