"""The data sets of the paper by name.

They are not shipped. ``load_dataset`` looks in three places: the folder named by the environment
variable ``SOFTSPLIT_DATA`` (its ``datasets.json`` describes each file), the data sets bundled with
scikit-learn, and OpenML. ``catalogue.json`` describes each data set: its size, its categorical
columns, and the two codings that the tables of the paper imply.

A set of OpenML takes two requests: its description, ``api/v1/json/data/ID``, and the ARFF file that
the description points to, with its MD5 checksum. Both are cached under ``SOFTSPLIT_CACHE``
(default: the user's cache folder); a cached file with a wrong checksum is downloaded again. The
environment variable ``SOFTSPLIT_OPENML`` selects another server.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
import urllib.error
import urllib.request
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import pandas as pd
from scipy.io import arff

from softsplit.data.dataset import Dataset, PlainCoding, code_frame
from softsplit.support.output_files import write_file

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
    frame, target = _fetch(name, pinned["id"], pinned["version"])
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


# --- OpenML ---------------------------------------------------------------------------------------

logger = logging.getLogger(__name__)

SERVER = "https://www.openml.org"


def _fetch(name: str, number: int, version: int) -> tuple[pd.DataFrame, str]:
    """Return the rows of OpenML's data set ``number`` and the name of its target column.

    Missing values are NaN; nominal columns are text.
    """
    folder = cache_folder() / "openml"
    description_file, rows_file = folder / f"{number}.json", folder / f"{number}.arff"
    if description_file.is_file() and rows_file.is_file():
        description, content = _description(description_file.read_bytes()), rows_file.read_bytes()
        if _agrees(content, description):
            return _parse(name, content, description)
        logger.warning("the cached copy of data set %r is damaged; it is fetched again.", name)
    server = os.environ.get("SOFTSPLIT_OPENML", SERVER).rstrip("/")
    text = _download(f"{server}/api/v1/json/data/{number}", name, number)
    description = _description(text)
    if str(description.get("version")) != str(version):
        raise ValueError(
            f"OpenML's data set {number} is version {description.get('version')} of "
            f"{description.get('name')!r}, and version {version} was expected for {name!r}."
        )
    content = _download(description["url"], name, number)
    if not _agrees(content, description):
        raise ValueError(
            f"data set {name!r} from OpenML (id {number}) arrived damaged: its MD5 sum is not the "
            "one in its description; try again later."
        )
    frame = _parse(name, content, description)
    for path, data in ((description_file, text), (rows_file, content)):
        _write(path, data)
    return frame


def cache_folder() -> Path:
    """Return the folder of downloaded files."""
    chosen = os.environ.get("SOFTSPLIT_CACHE")
    if chosen:
        return Path(chosen)
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "softsplit"


def _description(text: bytes) -> dict[str, Any]:
    return json.loads(text)["data_set_description"]


def _agrees(content: bytes, description: dict[str, Any]) -> bool:
    digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
    return digest == str(description.get("md5_checksum", "")).lower()


def _download(
    address: str, name: str, number: int, attempts: int = 3, timeout: float = 30.0
) -> bytes:
    reason: Exception | None = None
    for _ in range(attempts):
        try:
            with urllib.request.urlopen(address, timeout=timeout) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            reason = error
            error.close()
            if error.code < 500:
                break
        except OSError as error:
            reason = error
    raise FileNotFoundError(
        f"data set {name!r} could not be fetched from OpenML (id {number}: {reason}); check the "
        "network, or set SOFTSPLIT_DATA to a folder with datasets.json and the CSV files."
    )


def _parse(name: str, content: bytes, description: dict[str, Any]) -> tuple[pd.DataFrame, str]:
    try:
        rows, meta = arff.loadarff(io.StringIO(content.decode("utf-8")))
    except (ValueError, NotImplementedError, arff.ArffError) as error:
        raise ValueError(
            f"the ARFF file of data set {name!r} cannot be read: {error}; fetch it by hand and "
            "set SOFTSPLIT_DATA."
        ) from None
    columns: dict[str, Any] = {}
    for column, kind in zip(meta.names(), meta.types(), strict=True):
        values = rows[column]
        if kind == "nominal":
            texts = np.char.decode(values, "utf-8").astype(object)
            columns[column] = [np.nan if text == "?" else text for text in texts]
        else:
            columns[column] = values.astype(float)
    frame = pd.DataFrame(columns)
    target = str(description.get("default_target_attribute") or frame.columns[-1])
    if target not in frame.columns:
        raise ValueError(f"the ARFF file of data set {name!r} has no column {target!r}.")
    return frame, target


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, data)
