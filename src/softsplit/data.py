"""Named data sets as numbers with names.

The paper's data sets are not shipped. The environment variable ``SOFTSPLIT_DATA`` names a folder
with ``datasets.json`` (what each file holds) and the CSV files; without it the sets bundled with
scikit-learn serve.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn import datasets as bundled

from softsplit.tree import FloatArray

Coding = Literal["onehot", "drop-first", "none"]

BUNDLED = {
    "iris": bundled.load_iris,
    "wine": bundled.load_wine,
    "wdbc": bundled.load_breast_cancer,
    "digits": bundled.load_digits,
}


@dataclass(frozen=True)
class Dataset:
    """Features (n_samples, n_features), labels as strings, and the names of both."""

    name: str
    X: FloatArray
    y: NDArray[Any]
    feature_names: tuple[str, ...]
    class_names: tuple[str, ...]


def load_dataset(name: str, coding: Coding = "onehot") -> Dataset:
    """A data set by name, with categorical columns coded.

    Parameters
    ----------
    name : str
        A name of the manifest, for example ``"iris"`` or ``"car"``.
    coding : {"onehot", "drop-first", "none"}
        One column per level of a categorical column (levels sorted as text), the same without
        the first level, or the columns as they are.
    """
    folder = os.environ.get("SOFTSPLIT_DATA")
    if folder:
        return _from_folder(Path(folder), name, coding)
    if name in BUNDLED:
        return _from_bundle(name)
    raise FileNotFoundError(
        f"data set {name!r} is not bundled (bundled: {', '.join(sorted(BUNDLED))}); set "
        "SOFTSPLIT_DATA to a folder with datasets.json and the CSV files."
    )


def _from_folder(folder: Path, name: str, coding: Coding) -> Dataset:
    manifest = folder / "datasets.json"
    if not manifest.is_file():
        raise FileNotFoundError(
            f"SOFTSPLIT_DATA names {str(folder)!r}, which holds no datasets.json; point it to the "
            "folder with the manifest."
        )
    entries = {entry["name"]: entry for entry in json.loads(manifest.read_text())["datasets"]}
    if name not in entries:
        raise FileNotFoundError(
            f"data set {name!r} is not in {manifest.name} of SOFTSPLIT_DATA; it lists "
            f"{', '.join(sorted(entries))}."
        )
    entry = entries[name]
    frame = pd.read_csv(folder / entry["file"], dtype=dict.fromkeys(entry["categorical"], str))
    return _coded(name, frame, list(entry["categorical"]), coding)


def _coded(name: str, frame: pd.DataFrame, categorical: list[str], coding: Coding) -> Dataset:
    target = frame.columns[-1]
    columns: dict[str, Any] = {}
    for column in frame.columns[:-1]:
        if column not in categorical or coding == "none":
            columns[column] = frame[column].to_numpy(dtype=float)
            continue
        levels = sorted(frame[column].unique())
        for level in levels[1:] if coding == "drop-first" else levels:
            columns[f"{column}={level}"] = (frame[column] == level).to_numpy(dtype=float)
    labels = frame[target].astype(str).to_numpy()
    return Dataset(
        name=name,
        X=np.column_stack(list(columns.values())),
        y=labels,
        feature_names=tuple(columns),
        class_names=tuple(sorted(set(labels))),
    )


def _from_bundle(name: str) -> Dataset:
    found = BUNDLED[name]()
    labels = np.asarray([str(found.target_names[k]) for k in found.target])
    return Dataset(
        name=name,
        X=np.asarray(found.data, dtype=float),
        y=labels,
        feature_names=tuple(str(f) for f in found.feature_names),
        class_names=tuple(sorted(set(labels))),
    )
