"""What a feature matrix may not hold, said in one sentence that names the place."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Set, Sized
from contextlib import contextmanager
from numbers import Number, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray
from softsplit.support.labels import MANY_LABELS, shown_label
from softsplit.support.messages import counted, shown
from softsplit.support.options import provided


@contextmanager
def made_floats() -> Iterator[None]:
    """While scikit-learn makes floats of X: its check for infinities adds them up."""
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            yield
        except OverflowError:
            raise ValueError(
                "X holds an integer that no float can hold; divide its column by a constant."
            ) from None


def has_missing(X: FloatArray, names: NDArray[Any] | None) -> bool:
    """Whether some cell is NaN; infinity is refused, the first one named."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(X.sum()):  # then all are, and no array of flags was made
            return False
    if np.any(np.isinf(X)):
        row, column = np.argwhere(np.isinf(X))[0]
        label = column if names is None else shown(str(names[column]))
        raise ValueError(f"X holds infinity in column {label}, row {row}; replace it.")
    return bool(np.any(np.isnan(X)))


def checked_sparse(X: Any) -> Any:
    """A wide sparse matrix in compressed rows of doubles, each cell once, none of them missing."""
    matrix = X.tocsr(copy=True).astype(float)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    matrix.sort_indices()
    wrong = np.flatnonzero(~np.isfinite(matrix.data))
    if len(wrong):
        held = "a missing value" if np.isnan(matrix.data[wrong[0]]) else "infinity"
        row = int(np.searchsorted(matrix.indptr, wrong[0], side="right")) - 1
        column = matrix.indices[wrong[0]]
        raise ValueError(
            f"X is sparse and holds {held} in column {column}, row {row}; replace "
            "it by a number, or give a dense table."
        )
    return matrix


def refuse_masked(name: str, values: Any, of: str = "row") -> None:
    """Masked entries, in whose place numpy would take whatever is stored below the mask.

    An array without any is taken as it is. ``of`` is what a single line of values is counted by.
    Collections of Dask, whose values are elsewhere, are refused here too.
    """
    if hasattr(values, "__dask_graph__"):
        raise TypeError(
            f"{name} is a {type(values).__name__} of Dask; give {name}.compute(), or train trees "
            "for classes by DaskSoftTreeClassifier."
        )
    place: tuple[int, ...] | None = None
    if isinstance(values, list | tuple):  # of rows or of single values
        place = next(((i,) for i, row in enumerate(values) if _has_mask(row)), None)
    elif _has_mask(values):
        place = tuple(int(i) for i in np.argwhere(np.ma.getmaskarray(values))[0])
    if place is None:
        return
    where = f"column {place[1]}, row {place[0]}" if len(place) == 2 else f"{of} {place[0]}"
    raise ValueError(
        f"{name} is masked in {where}; fill it in or drop the row before calling "
        "SoftTreeClassifier."
    )


def _has_mask(values: Any) -> bool:
    """Whether some entry is masked; a frame may have a column that is called "_mask"."""
    return isinstance(values, np.ma.MaskedArray) and bool(np.ma.is_masked(values))


# A sparse matrix with no more cells and columns than this is made dense.
DENSE_CELLS, DENSE_COLUMNS = 4_000_000, 1_000


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse matrix; whoever made one has loaded SciPy's module for them."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(X))


def is_wide(X: Any) -> bool:
    """Whether X is a sparse matrix, or a frame of sparse columns, that is better not made dense."""
    if not is_sparse(X) and not _is_sparse_frame(X):
        return False
    return bool(X.shape[0] * X.shape[1] > DENSE_CELLS or X.shape[1] > DENSE_COLUMNS)


def _is_sparse_frame(X: Any) -> bool:
    """Whether X is a pandas frame all of whose columns are zero where they hold nothing."""
    if not hasattr(X, "iloc") or not hasattr(X, "dtypes") or getattr(X, "ndim", 1) != 2:
        return False
    return all(
        getattr(kind, "fill_value", None) == 0 and kind.subtype.kind in "biuf" for kind in X.dtypes
    )


def checked_table(X: Any) -> Any:
    """X as an array or a frame: small sparse matrices are made dense, tables of pyarrow frames.

    What has no rows and columns of its own is refused.
    """
    pandas = sys.modules.get("pandas")
    if pandas is not None and type(X) is pandas.DataFrame and X.shape[1]:
        refuse_twins(X.columns)
        return X  # to ask a frame for what it does not have takes a tenth of a millisecond
    X = on_host(X)
    if is_sparse(X):
        _check_table(X)
        return X if is_wide(X) else X.toarray()
    if hasattr(X, "to_pandas") and hasattr(X, "column_names"):  # of pyarrow
        refuse_twins(X.column_names)
        return X.to_pandas()
    _check_table(X)
    return X


def on_host(values: Any) -> Any:
    """Values in the memory of this process: tensors are brought there, all else is as it is."""
    if not hasattr(values, "__dlpack__") or isinstance(values, np.ndarray):
        return values
    if hasattr(values, "detach"):  # of PyTorch
        return values.detach().cpu().numpy()
    return values.get() if hasattr(values, "get") and hasattr(values, "device") else values


def device_of(values: Any) -> str | None:
    """The accelerator that a tensor lies on; None if no option keeps rows there."""
    device = getattr(values, "device", None)
    if getattr(device, "type", None) != "cuda" or "devices" not in provided("services"):
        return None
    return str(device)


def is_plain_tensor(X: Any) -> bool:
    """Whether X is a tensor of many rows of finite floats, which training takes where it lies."""
    if not (hasattr(X, "detach") and hasattr(X, "isfinite")) or X.ndim != 2:
        return False
    floats = str(X.dtype) in ("torch.float32", "torch.float64")
    return floats and len(X) > MANY_LABELS and bool(X.sum().isfinite())


def refuse_twins(names: Iterable[Any]) -> None:
    """Columns of one name."""
    if getattr(names, "is_unique", False) and getattr(names, "inferred_type", "") == "string":
        return  # of pandas, which remembers both
    seen: set[str] = set()
    for name in map(str, names):
        if name in seen:
            raise ValueError(f"X has several columns named {shown(name)}; rename all but one.")
        seen.add(name)


def _check_table(X: Any) -> None:
    refuse_masked("X", X)
    if hasattr(X, "collect") and hasattr(X, "collect_schema"):
        raise ValueError("X is a lazy frame; call its collect() before SoftTreeClassifier.")
    if X is None or isinstance(X, str | bytes | Number):
        raise ValueError("Expected 2D array, got a single value instead: X needs rows and columns.")
    if isinstance(X, Mapping | Set | Iterator) and not hasattr(X, "shape"):
        raise TypeError(
            f"X is a {type(X).__name__}; make it an array or a data frame with a row per sample."
        )
    if isinstance(X, list | tuple) and any(isinstance(row, Mapping) for row in X[:1]):
        raise TypeError(
            f"X is a {type(X).__name__} of {type(X[0]).__name__}s; give pd.DataFrame(X), or an "
            "array with a row per sample."
        )
    made = _as_array(X) if isinstance(X, list | tuple) else X
    if hasattr(made, "ndim") and made.ndim != 2:
        advice = (
            "Reshape your data with X.reshape(-1, 1) if it is one feature, X.reshape(1, -1) if it "
            "is one row."
            if made.ndim == 1
            else "X needs a row per sample and a column per feature."
        )
        raise ValueError(f"Expected 2D array, got {made.ndim}D array instead: {advice}")
    if hasattr(X, "columns") and getattr(X, "shape", (0, 1))[1] == 0:
        raise ValueError(f"Found a table with 0 features (shape={X.shape}): X needs a column.")
    if getattr(getattr(made, "dtype", None), "kind", "") == "c":
        raise ValueError("Complex data not supported: X must hold real numbers.")
    refuse_twins(getattr(X, "columns", ()))


def holds_numbers(X: Any) -> bool:
    """Whether all columns of a table are numbers already: no text, categories, dates."""
    made = _as_array(X) if isinstance(X, list | tuple) else X
    kinds: Any = getattr(made, "dtypes", None)
    if hasattr(kinds, "tolist") and all(
        isinstance(kind, np.dtype) and kind.kind in "biuf" for kind in kinds.tolist()
    ):
        return True  # a frame of pandas, whose columns themselves are slow to come by
    return all(_is_numbers(column) for column in _columns(made))


# Squares of larger numbers overflow.
LARGEST_TARGET = 1e150


def number_targets(
    y: NDArray[Any], weight: FloatArray, exposure: FloatArray | None = None
) -> FloatArray:
    """The targets of a tree that predicts numbers, as doubles; one sentence for any others."""
    odd: Any = y[0] if len(y) and y.dtype.kind in "USmMV" else None
    if y.dtype == object:
        odd = next((v for v in y if not isinstance(v, Real) or isinstance(v, bool)), None)
    if odd is not None or y.dtype.kind == "c":
        raise ValueError(
            f"y holds {shown_label(y[0] if odd is None else odd)}, and a regressor predicts "
            "numbers; take SoftTreeClassifier for classes."
        )
    values = y.astype(np.float64)
    wrong = np.flatnonzero(~(np.abs(values) <= LARGEST_TARGET))
    if len(wrong):
        first = values[wrong[0]]
        held = "infinity" if np.isinf(first) else f"{first:g}"
        way = "divide y by a constant" if np.isfinite(first) else "leave such rows out"
        raise ValueError(f"y holds {held} in row {wrong[0]}; {way}.")
    counted = values[weight > 0]
    if len(counted) < 2:
        raise ValueError(
            f"X has {'no row of positive weight' if not len(counted) else 'one sample'}; a "
            "regressor needs at least two."
        )
    over = ""
    if exposure is not None:
        counted, over = counted / exposure[weight > 0], " / exposure"
    if np.all(counted == counted[0]):
        raise ValueError(
            f"y{over} is {counted[0]:g} in all rows; there is nothing to predict, give a target "
            "that varies."
        )
    return values


def refuse_lengths(X: Any, y: Any) -> None:
    """Labels that are not as many as the rows; whatever has no length is left to others."""
    rows, labels = _length(X), _length(y)
    if rows is not None and labels is not None and rows != labels:
        raise ValueError(
            f"X has {counted(rows, 'row')} and y has {counted(labels, 'label')}; give one label "
            "for each row."
        )


def _length(values: Any) -> int | None:
    if hasattr(values, "shape"):
        return int(values.shape[0]) if values.shape else None
    return len(values) if isinstance(values, Sized) else None


def refuse_weights(weights: Any, rows: int) -> None:
    """Weights, as numbers, that are not one for each row, finite and not negative."""
    if weights is None:
        return
    given = np.asarray(weights)
    if given.ndim > 1 or (given.ndim == 1 and len(given) != rows):
        what = f"shape {given.shape}" if given.ndim > 1 else counted(len(given), "number")
        raise ValueError(
            f"sample_weight has {what} and X has {counted(rows, 'row')}; give one weight for each "
            "row."
        )
    wrong = np.flatnonzero(~(np.isfinite(given) & (given >= 0)))
    if len(wrong):
        value = float(np.atleast_1d(given)[wrong[0]])
        held = "a missing value" if np.isnan(value) else f"{value:g}"
        place = f"holds {held} in row {wrong[0]}" if given.ndim else f"is {held}"
        raise ValueError(f"sample_weight {place}; give finite numbers >= 0.")


def _as_array(X: Any) -> NDArray[Any]:
    """Nested lists as numpy would read them."""
    try:
        return np.asarray(X)
    except ValueError:
        raise ValueError(
            "X holds rows of different lengths; every row needs one number per feature."
        ) from None


def _columns(X: Any) -> list[Any]:
    """Columns that may hold other things than numbers."""
    if hasattr(X, "dtypes") and hasattr(X, "columns"):
        position = X.iloc if hasattr(X, "iloc") else X
        return [position[:, j] for j in range(X.shape[1])]
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "OUSMmT":
        return [X[:, j] for j in range(X.shape[1])]
    return []


OTHER_TYPES = (
    "date", "time", "duration", "period", "<m8", ">m8", "str", "utf8", "enum", "<u", "|s", "categor"
)  # fmt: skip
UNSURE_TYPES = ("object", "interval", "list", "struct", "array")


def _is_numbers(column: Any) -> bool:
    """Whether a column holds numbers, by its type or, where that says nothing, by its cells."""
    name = str(getattr(column, "dtype", "")).lower()
    if name.startswith(OTHER_TYPES):
        return False
    if not name.startswith(UNSURE_TYPES):
        return True
    values = np.asarray(column, dtype=object)
    if any(isinstance(value, str | bytes) for value in values):
        return False
    try:
        values.astype(float)
    except (TypeError, ValueError):
        return False
    except OverflowError:
        return True  # the conversion says so
    return True
