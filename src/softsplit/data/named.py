"""The data sets of the paper by name.

They are not shipped. ``load_dataset`` looks in three places: the folder named by the environment
variable ``SOFTSPLIT_DATA`` (its ``datasets.json`` describes each file), the data sets bundled with
scikit-learn, and OpenML. ``catalogue.json`` describes each data set: its size, its categorical
columns, and the two codings that the tables of the paper imply.
"""

from __future__ import annotations

import json
import os
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import pandas as pd

from softsplit.data.dataset import Dataset, PlainCoding, code_frame
from softsplit.data.openml import fetch_openml

Coding = PlainCoding | Literal["table", "reported"]

# Data sets bundled with scikit-learn, and their names there.
BUNDLED = {"iris": "iris", "wine": "wine", "wdbc": "breast_cancer", "digits": "digits"}


@cache
def catalogue() -> dict[str, dict[str, Any]]:
    """Return the description of each data set of the paper, by name."""
    text = files("softsplit.data").joinpath("catalogue.json").read_text(encoding="utf-8")
    return json.loads(text)


def load_dataset(name: str, coding: Coding = "onehot") -> Dataset:
    """Load a data set by name, with categorical columns coded.

    Parameters
    ----------
    name : str
        A data set of the manifest or of the paper, for example ``"iris"`` or ``"car"``.
    coding : str
        "onehot": one column per level of a categorical column (levels sorted as text);
        "drop-first": the same without the first level; "binary-once": one-hot, with two levels as
        one column; "ordinal": the position of the level; "none": columns unchanged.
        "table" is the coding that gives the number of features in Table 1 of the paper, "reported"
        the one that the sparsities in its Tables 2 and 3 imply.
    """
    plain = _resolve(name, coding)
    folder = os.environ.get("SOFTSPLIT_DATA")
    if folder:
        return _from_folder(Path(folder), name, plain)
    if name in BUNDLED:
        return _from_bundle(name)
    if name in catalogue() and "openml" in catalogue()[name]:
        return _from_openml(name, plain)
    where = (
        "cannot be fetched from OpenML, which holds another version of it"
        if name in catalogue()
        else f"is not bundled (bundled: {', '.join(sorted(BUNDLED))}) and none of the paper's"
    )
    raise FileNotFoundError(
        f"data set {name!r} {where}; set SOFTSPLIT_DATA to a folder with datasets.json and the "
        "CSV files."
    )


def _resolve(name: str, coding: Coding) -> PlainCoding:
    if coding not in ("table", "reported"):
        return cast(PlainCoding, coding)
    if name not in catalogue():
        raise ValueError(
            f"coding {coding!r} is known for the paper's data sets only, and {name!r} is none of "
            f"them; use 'onehot'{_meant(name)}."
        )
    return cast(PlainCoding, catalogue()[name][coding])


def _meant(name: str) -> str:
    """Return a suggestion of a similar name of the catalogue, or ""."""
    close = get_close_matches(name, catalogue(), 1)
    return f", or did you mean {close[0]!r}" if close else ""


def file_of(name: str) -> Path | None:
    """Return the file of a data set in the folder ``SOFTSPLIT_DATA``, or None if it is absent."""
    folder = os.environ.get("SOFTSPLIT_DATA")
    if not folder or not (Path(folder) / "datasets.json").is_file():
        return None
    entry = _entries(Path(folder)).get(name)
    return None if entry is None else Path(folder) / entry["file"]


def _entries(folder: Path) -> dict[str, Any]:
    listed = json.loads((folder / "datasets.json").read_text("utf-8"))["datasets"]
    return {entry["name"]: entry for entry in listed}


def _from_folder(folder: Path, name: str, coding: PlainCoding) -> Dataset:
    manifest = folder / "datasets.json"
    if not manifest.is_file():
        raise FileNotFoundError(
            f"SOFTSPLIT_DATA names {str(folder)!r}, which holds no datasets.json; point it to the "
            "folder with the manifest."
        )
    entries = _entries(folder)
    if name not in entries:
        raise FileNotFoundError(
            f"data set {name!r} is not in {manifest.name} of SOFTSPLIT_DATA{_meant(name)}; it "
            f"lists {', '.join(sorted(entries))}."
        )
    entry = entries[name]
    frame = pd.read_csv(folder / entry["file"], dtype=dict.fromkeys(entry["categorical"], str))
    return code_frame(name, frame, frame.columns[-1], entry["categorical"], coding)


def bundled_frame(name: str) -> pd.DataFrame:
    """Return a data set bundled with scikit-learn as a frame; the target column is "class"."""
    data = _from_bundle(name)
    frame = pd.DataFrame(data.X, columns=list(data.feature_names))
    frame["class"] = data.y
    return frame


def _from_bundle(name: str) -> Dataset:
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{BUNDLED[name]}")()
    labels = np.asarray([str(bunch.target_names[k]) for k in bunch.target])
    return Dataset(
        name=name,
        X=np.asarray(bunch.data, dtype=float),
        y=labels,
        feature_names=tuple(str(f) for f in bunch.feature_names),
        class_names=tuple(sorted(set(labels))),
    )


def _from_openml(name: str, coding: PlainCoding) -> Dataset:
    """Fetch a data set from OpenML by its pinned id; check it against the catalogue."""
    known = catalogue()[name]
    pinned = known["openml"]
    frame, target = fetch_openml(name, pinned["id"], pinned["version"])
    features = [column for column in frame.columns if column != target]
    features = [c for i, c in enumerate(features) if i not in pinned.get("drop_columns", [])]
    frame = frame[[*features, target]].head(pinned.get("first_rows", len(frame)))
    complete = frame.dropna()
    counts = complete[target].value_counts().tolist()
    shape = (len(complete), len(features))
    if shape != (known["rows"], known["columns"]) or counts != known["class_counts"]:
        raise ValueError(
            f"OpenML's data set {pinned['id']} is not the paper's {name!r}: it has {shape[0]} "
            f"complete rows, {shape[1]} features and classes of {counts} rows, where "
            f"{known['rows']}, {known['columns']} and {known['class_counts']} were expected; set "
            "SOFTSPLIT_DATA to a folder with datasets.json and the CSV files."
        )
    categorical = [features[i] for i in known["categorical"]]
    return code_frame(name, complete, target, categorical, coding, len(frame) - len(complete))
