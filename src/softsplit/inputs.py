"""What a feature matrix may not hold, said in one sentence that names the place."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.tree import FloatArray


def refuse_infinite(X: FloatArray, names: NDArray[Any] | None) -> None:
    """NaN and infinity: the first one is named."""
    if np.all(np.isfinite(X)):
        return
    row, column = np.argwhere(~np.isfinite(X))[0]
    label = column if names is None else repr(str(names[column]))
    what = "NaN" if np.isnan(X[row, column]) else "infinity"
    raise ValueError(
        f"X holds {what} in column {label}, row {row}; impute it or drop the row before calling "
        "SoftTreeClassifier."
    )


def refuse_text(X: Any) -> None:
    """Text and dates get a sentence that names the first column that holds them."""
    if hasattr(X, "collect") and hasattr(X, "collect_schema"):
        raise ValueError("X is a lazy frame; call its collect() before SoftTreeClassifier.")
    if hasattr(X, "dtypes") and hasattr(X, "columns"):
        columns = [(repr(str(name)), X[name]) for name in X.columns]
    elif isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "OUSMm":
        columns = [(str(j), X[:, j]) for j in range(X.shape[1])]
    else:
        return
    for label, column in columns:
        kind = _kind_of_column(column)
        if kind:
            raise ValueError(
                f"column {label} of X holds {kind}; encode it as numbers first, for example with "
                "sklearn.preprocessing.OneHotEncoder."
            )


def _kind_of_column(column: Any) -> str:
    """ "text" or "dates" if the column holds them, else nothing."""
    name = str(getattr(column, "dtype", "")).lower()
    if name.startswith(("date", "time", "duration", "<m8", ">m8")):
        return "dates"
    if name in ("str", "string", "utf8", "categorical", "enum") or name.startswith(("<u", "|s")):
        return "text"
    if name.startswith(("object", "categor")):
        values = np.asarray(column, dtype=object)
        return "text" if any(isinstance(value, str) for value in values) else ""
    return ""
