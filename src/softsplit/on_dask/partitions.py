"""Dask collections that belong together, and what workers read and check of a partition of them.

``partitions`` takes dask arrays and frames apart into rows, labels, weights and sensitive columns,
partition by partition. Every partition is checked where it is read; errors name it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d

from softsplit.engines.samples import Samples
from softsplit.formulations import settings as parse
from softsplit.on_dask.cells import Asked, Combination, PartitionCells, seen_part
from softsplit.on_dask.cluster_parts import own_folder
from softsplit.on_dask.parts import Moments, Part
from softsplit.support.inputs import (
    has_missing,
    holds_numbers,
    made_floats,
    refuse_lengths,
    refuse_twins,
    refuse_weights,
)
from softsplit.support.labels import refuse_missing_labels, refuse_mixed_labels
from softsplit.support.messages import shown
from softsplit.variables import Coding

# What labels are, by the kind of their array; text otherwise.
LABELS = {"b": "truth values", "i": "numbers", "u": "numbers", "f": "numbers"}


class Expected(NamedTuple):
    """What every partition must be like."""

    n_features: int
    names: tuple[Any, ...] | None
    kinds: tuple[str, ...] | None


@dataclass(frozen=True)
class Partitions:
    """Checked dask collections.

    A part is rows, labels, weights and sensitive columns of a partition, delayed; the last two may
    be None. ``empty`` are rows and sensitive columns of a partition without any.
    """

    parts: Sequence[Any]
    expected: Expected
    numbers: bool
    target: str | None
    empty: tuple[Any, Any]

    def each(self, work: Callable[..., Any], *question: Any) -> list[Callable[..., Any]]:
        """For every partition: what makes a delayed ``work(*question, part, ...)``."""
        from dask.delayed import delayed

        ask = delayed(work, pure=False)
        return [partial(ask, *question, part) for part in self.parts]

    def answers(self, client: Any, work: Callable[..., Any], *question: Any) -> list[Any]:
        """``work(*question, part, number)`` of every partition, computed."""
        asks = self.each(work, *question)
        return list(client.gather(client.compute([ask(n) for n, ask in enumerate(asks)])))


def is_dask(X: Any) -> bool:
    """Whether this is a dask collection; dask need not be there to tell."""
    return type(X).__module__.partition(".")[0] == "dask" and hasattr(X, "dask")


def one_block_wide(X: Any) -> Any:
    """A dask array whose rows are not cut."""
    return X.rechunk({1: -1}) if X.numblocks[1] > 1 else X


def partitions(X: Any, y: Any, sample_weight: Any, sensitive: Any = None) -> Partitions:
    """The partitions of dask collections that belong together."""
    import dask.array as da
    import dask.dataframe as dd

    if isinstance(X, da.Array):
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, rows and columns, got {X.ndim}.")
        if np.isnan(X.shape[1]):
            raise ValueError(
                "the number of columns of X is unknown; X.compute_chunk_sizes() tells."
            )
        X = one_block_wide(X)
        expected, numbers = Expected(int(X.shape[1]), None, None), X.dtype.kind in "biuf"
    elif isinstance(X, dd.DataFrame):
        expected = Expected(len(X.columns), tuple(X.columns), tuple(map(str, X.dtypes)))
        numbers = all(pd.api.types.is_numeric_dtype(kind) for kind in X.dtypes)
    else:
        raise ValueError(
            f"X must be a dask array or a dask frame, got {type(X).__name__}; rows in memory are "
            "trained on by the estimator without Dask."
        )
    refuse_twins(expected.names or ())
    if not expected.n_features:
        raise ValueError("X has no columns; a table is needed.")
    given = [X, _checked("y", y, X), None, None]
    if sample_weight is not None:
        given[2] = _checked("sample_weight", sample_weight, X)
    if sensitive is not None:
        given[3] = _checked("sensitive", sensitive, X, table=True)
    target = getattr(y, "name", None) if isinstance(y, dd.Series) else None
    target = target if isinstance(target, str) and target else None
    return Partitions(_together(given), expected, numbers, target, (_empty(X), _empty(given[3])))


def _empty(values: Any) -> Any:
    """A partition of a dask collection without rows; None for None."""
    if hasattr(values, "columns"):
        return pd.DataFrame(columns=values.columns)
    if hasattr(values, "chunks"):
        return np.zeros((0, *values.shape[1:]))
    return None if values is None else pd.Series([], dtype=object, name=values.name)


def _checked(name: str, values: Any, X: Any, *, table: bool = False) -> Any:
    """Labels, weights or other columns in the partitions of X; a ``table`` may have several."""
    import dask.array as da
    import dask.dataframe as dd

    # 1. A column of a table is that column.
    if isinstance(values, dd.DataFrame) and len(values.columns) == 1:
        values = values[values.columns[0]]
    if isinstance(values, da.Array) and values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    wide = table and isinstance(values, dd.DataFrame)
    if not wide and (not isinstance(values, da.Array | dd.Series) or values.ndim != 1):
        raise ValueError(
            f"{name} must be a dask array or series with one entry for each row of X, got "
            f"{type(values).__name__}."
        )
    # 2. Arrays of known chunks are cut like X; others must have as many partitions.
    if isinstance(values, da.Array) and isinstance(X, da.Array):
        known = not np.isnan(sum(X.chunks[0]) + sum(values.chunks[0]))
        if known and len(values) != len(X):
            raise ValueError(f"X has {len(X)} rows and {name} {len(values)}.")
        if known and values.chunks[0] != X.chunks[0]:
            values = values.rechunk((X.chunks[0],))
    counts = [one.numblocks[0] if isinstance(one, da.Array) else one.npartitions
              for one in (X, values)]  # fmt: skip
    if counts[0] != counts[1]:
        raise ValueError(
            f"X has {counts[0]} partitions and {name} {counts[1]}; give both the same ones, as two "
            "columns of one frame have them."
        )
    return values


def _together(given: Sequence[Any]) -> list[Any]:
    """Rows, labels, weights and sensitive columns by partition; None stays None.

    Dask reads two columns of one frame together, and may join small files when it plans to read
    few columns of them: frames are taken apart as one, so that the plan is the same for all.
    """
    import dask.array as da
    import dask.dataframe as dd

    if not any(isinstance(one, da.Array) for one in given):
        meta = pd.Series([], dtype=object)
        packed = dd.map_partitions(packed_part, *given, meta=meta, align_dataframes=False)
        return list(packed.to_delayed())
    parts = [
        None if one is None
        else np.ravel(one.to_delayed()).tolist() if isinstance(one, da.Array)
        else one.to_delayed(optimize_graph=False)
        for one in given
    ]  # fmt: skip
    none = [None] * len(parts[0] or ())
    return list(zip(*(none if one is None else one for one in parts), strict=True))


def packed_part(*parts: Any) -> tuple[Any, ...]:
    """Rows, labels, weights and sensitive columns of a partition of frames."""
    return parts


# --- on the workers -------------------------------------------------------------------------------


class GapsFound(ValueError):
    """A table of numbers has empty cells."""


class Facts(NamedTuple):
    """What a worker tells of a partition."""

    moments: Moments
    labels: str


class Seen(NamedTuple):
    """The combinations of class and values in a partition (cells.py), its classes, and what these
    are."""

    weights: dict[Combination, float]
    classes: NDArray[Any]
    kind: str


def store_part(
    expected: Expected, coding: Coding | None, cells: PartitionCells | None, part: Sequence[Any],
    number: int, folder: str,
) -> tuple[Part | None, Facts | None]:  # fmt: skip
    """Check the rows of a partition and write them to a file; nothing of an empty one."""
    X, y, weight, sensitive = part
    with _named(number):
        labels, weights = _labels(X, y), _weights(X, weight)
        counted = weights > 0
        matrix = _matrix(X, expected, coding)
        if not np.any(counted):
            return None, None
        refuse_mixed_labels(labels)
        check_classification_targets(labels)
        kind_of_labels = LABELS.get(labels.dtype.kind, "text")
        if cells is not None:
            labels = cells.of(X, sensitive, labels)
    classes = np.unique(labels[counted])
    at = np.searchsorted(classes, labels).clip(max=len(classes) - 1)
    samples = Samples.from_arrays(matrix, at, len(classes), weights)
    kind = "f4" if matrix.dtype == np.float32 else "f8"
    stored = Part.write(samples, classes, kind, number, *own_folder(folder))
    return stored, Facts(Moments.of(samples, classes), kind_of_labels)


def see_part(asked: Asked, part: Sequence[Any], number: int) -> Seen:
    """What a partition has in the columns ``asked`` for."""
    X, y, weight, sensitive = part
    with _named(number):
        labels, weights = _labels(X, y), _weights(X, weight)
        refuse_mixed_labels(labels)
        seen = seen_part(asked, X, sensitive, labels, weights)
    return Seen(seen, np.unique(labels[weights > 0]), LABELS.get(labels.dtype.kind, "text"))


def some_rows(count: int, part: Sequence[Any], number: int) -> tuple[Any, NDArray[Any]]:
    """About so many rows of a partition, evenly spaced, with their labels."""
    X, y = part[:2]
    with _named(number):
        labels = _labels(X, y)
        refuse_mixed_labels(labels)
    chosen: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
    if len(labels):
        chosen = np.unique(np.linspace(0, len(labels) - 1, count).astype(np.intp))
    return (X.iloc[chosen] if hasattr(X, "iloc") else X[chosen]), labels[chosen]


@contextmanager
def _named(number: int) -> Iterator[None]:
    """Errors say which partition is wrong."""
    try:
        yield
    except GapsFound:
        raise
    except (ValueError, TypeError) as error:
        raise ValueError(f"partition {number}: {error}") from None


def _matrix(X: Any, expected: Expected, coding: Coding | None) -> NDArray[np.floating]:
    """The numbers of a partition."""
    width = np.shape(X)[1] if np.ndim(X) == 2 else 1
    if width != expected.n_features:
        raise ValueError(f"X has {width} columns where the table has {expected.n_features}.")
    if expected.names is not None and tuple(X.columns) != expected.names:
        at = next(j for j, name in enumerate(expected.names) if X.columns[j] != name)
        raise ValueError(
            f"column {at} is {shown(X.columns[at])} where the table has "
            f"{shown(expected.names[at])}."
        )
    if coding is not None:
        return coding.code(X).X if len(X) else np.zeros((0, 1))
    for j in range(width) if not holds_numbers(X) else ():
        column = X.iloc[:, [j]] if hasattr(X, "iloc") else X[:, [j]]
        if not holds_numbers(column):
            name = j if expected.names is None else shown(expected.names[j])
            kind = "numbers" if expected.kinds is None else expected.kinds[j]
            raise ValueError(f"column {name} holds no numbers where the table has {kind}.")
    with made_floats():
        matrix = check_array(
            X, dtype=[np.float64, np.float32], order="C", ensure_all_finite=False,
            ensure_min_samples=0,
        )  # fmt: skip
    names = None if expected.names is None else np.array(expected.names, dtype=object)
    if len(matrix) and has_missing(matrix, names):
        raise GapsFound("X has empty cells.")
    return matrix


def _labels(X: Any, y: Any) -> NDArray[Any]:
    refuse_missing_labels(y)
    labels: NDArray[Any] = np.asarray(column_or_1d(y))
    refuse_lengths(X, labels)
    return labels


def _weights(X: Any, weight: Any) -> NDArray[np.float64]:
    if weight is None:
        return np.ones(len(X))
    weights = np.asarray(parse.make_numbers("sample_weight", weight), dtype=np.float64)
    refuse_weights(weights, len(X))
    return parse.make_weights(weights)
