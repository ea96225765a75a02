"""Data sets from OpenML by id: downloaded once, verified, cached.

A data set takes two requests: its description, ``api/v1/json/data/ID``, and the ARFF file that the
description points to, with its MD5 checksum. Both are cached under ``SOFTSPLIT_CACHE`` (default:
the user's cache folder); a cached file with a wrong checksum is downloaded again. The environment
variable ``SOFTSPLIT_OPENML`` selects another server.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.io import arff

from softsplit.support.output_files import write_file

logger = logging.getLogger(__name__)

SERVER = "https://www.openml.org"


def fetch_openml(name: str, number: int, version: int) -> tuple[pd.DataFrame, str]:
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
