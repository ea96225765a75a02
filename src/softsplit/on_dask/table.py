"""A table on a Dask cluster as training rows: ``prepare`` takes it in the place of ``Rows``.

One pass over the table stores its parts and gives their moments; scalings follow from these.
The knots of the quantile scaling are those of the sample, with the ends of the whole table; another
pass counts the weight below and at each of them, so that their ranks are exact.

``collections`` takes dask arrays and frames, ``stored_table`` makes the table of them; every part
is checked where it is read. Under requirements on rates another pass comes first, which tells the
cells of the rows (cells.py), and parts are grouped by these: classes and cells are two readings of
the same files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial, reduce
from math import ceil
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d

from softsplit.engines.base import RowEngine
from softsplit.engines.compiled import CompiledRows
from softsplit.engines.samples import Samples
from softsplit.estimators.training_rows import feature_rules
from softsplit.fitted.summary import FeatureSummary
from softsplit.formulations import formulation_of, is_auto, settings
from softsplit.formulations import settings as parse
from softsplit.formulations.feature_rules import check_values
from softsplit.formulations.model_settings import ModelSettings
from softsplit.formulations.rates import RatedRows, as_requirements, asked_columns
from softsplit.on_dask.cells import Asked, CellRows, Seen, cell_rows, check_columns, seen_part
from softsplit.on_dask.cluster_parts import DaskParts, Store, own_folder
from softsplit.on_dask.engine import DaskRows, draw
from softsplit.on_dask.parts import Moments, Part, Reading, part_below
from softsplit.problem.feature_rules import FeatureRules
from softsplit.problem.rates import RateLimits
from softsplit.support.arrays import FloatArray
from softsplit.support.inputs import (
    has_missing,
    holds_numbers,
    made_floats,
    refuse_missing_labels,
    refuse_mixed_labels,
    refuse_twins,
)
from softsplit.support.messages import shown
from softsplit.training.rows import EngineRows, Rows
from softsplit.tree.scaling import LARGEST_VALUE, LinearScaling, QuantileScaling, Scaling
from softsplit.variables import Coding, MonotoneEffects, column_groups, learn, monotone_effects


@dataclass(frozen=True)
class TableCells:
    """The rows of a table by the cells of requirements on rates.

    Attributes
    ----------
    moments : Moments
        Those of the cells, which are numbered in the order of their classes.
    drawn : Samples
        A sample of the rows in original units, by cells.
    rated : RatedRows
        The requirements.
    """

    moments: Moments
    drawn: Samples
    rated: RatedRows

    @property
    def labels(self) -> NDArray[np.intp]:
        """Class of each cell."""
        return self.rated.labels

    def by_class(self, totals: FloatArray) -> Samples:
        """The sample by classes of these ``totals``, in canonical order.

        A small cell has more than its share of rows there, and these get less weight.
        """
        drawn, cells = self.drawn, self.drawn.labels
        weights = drawn.weights
        if not self._complete:
            held = np.add.reduceat(weights, drawn.starts[:-1])
            share = (np.bincount(self.labels, held) / totals)[self.labels]
            weights = weights * (share * self.moments.totals / held)[cells]
        labels = self.labels[cells]
        made = Samples.from_arrays(drawn.features.T, labels, len(totals), weights)
        return replace(made, group_totals=totals)

    @property
    def _complete(self) -> bool:
        """Whether all rows are in the sample."""
        held = np.add.reduceat(self.drawn.weights, self.drawn.starts[:-1])
        return bool(np.allclose(held, self.moments.totals, rtol=1e-9))

    def limits(self, parts: DaskParts, scaling: Scaling, n_classes: int) -> RateLimits:
        """The requirements on all rows: in this process, if all of them are."""
        reading = Reading(self.moments.classes, scaling)
        drawn = replace(self.drawn, features=reading.scaled(self.drawn.features))
        rows: RowEngine = DaskRows(parts, reading, self.moments, drawn)
        if self._complete:
            rows = CompiledRows(drawn)
        return RateLimits(rows, self.labels, self.rated.requirements, n_classes)


@dataclass(frozen=True)
class DaskTable:
    """Stored parts of a table, and what is known of them.

    Attributes
    ----------
    parts : DaskParts
    moments : Moments
    drawn : Samples
        A sample of the rows in original units.
    classes, names, weighted, coding, target, groups, within, bends, rules, monotone
        As of ``Rows``.
    cells : TableCells, optional
        The same rows by the cells of requirements on rates, by which the parts are then grouped.
    """

    parts: DaskParts
    moments: Moments
    drawn: Samples
    names: NDArray[Any] | None = None
    weighted: bool = False
    coding: Coding | None = None
    target: str | None = None
    groups: NDArray[np.intp] | None = None
    within: None = None
    bends: bool = False
    rules: FeatureRules | None = None
    monotone: MonotoneEffects | None = None
    cells: TableCells | None = None

    @classmethod
    def stored(
        cls,
        parts: DaskParts,
        moments: Sequence[Moments],
        cells: CellRows | None = None,
        **facts: Any,
    ) -> DaskTable:
        """The table whose parts have been stored, grouped by ``cells`` if there are any."""
        all_ = Moments.added(moments)
        drawn = draw(parts, all_)
        if cells is None:
            return cls(parts, all_, drawn, **facts)
        by_cell = TableCells(all_, drawn, cells.rated)
        by_class = all_.joined(by_cell.labels, cells.classes)
        return cls(parts, by_class, by_cell.by_class(by_class.totals), cells=by_cell, **facts)

    @property
    def classes(self) -> NDArray[Any]:
        return self.moments.classes

    @property
    def n_rows(self) -> int:
        """Rows, equal ones of a part counted once."""
        return int(self.moments.counts.sum())

    def sample(self, limit: int) -> Rows:
        """About so many rows of the table in this process, each class by its share.

        They have the weights that they have in the table.
        """
        source = self if self.cells is None else self.cells
        counts, drawn = source.moments.counts, source.drawn
        share = np.maximum(1, counts * limit // counts.sum())
        some = drawn.first(np.minimum(np.diff(drawn.starts), share))
        sampled = {"X", "labels", "weight", "shared", "targets", "rated"}
        known = {one.name: getattr(self, one.name) for one in fields(Rows)
                 if one.name not in sampled}  # fmt: skip
        labels, rated = some.labels, None
        if self.cells is not None:
            rated = replace(self.cells.rated, cells=labels.astype(np.intp))
            labels = self.cells.labels[labels].astype(np.int64)
        X = np.ascontiguousarray(some.features.T)
        return Rows(X=X, labels=labels, weight=some.weights, rated=rated, **known)

    def placed(self, kind: str, settings: ModelSettings) -> EngineRows:
        """As ``Rows.placed``; there is no choice of engines."""
        scaling = self.scaling(kind)
        totals, factors = self.moments.totals, None
        if formulation_of(settings.loss).weights_rows and settings.class_weight is not None:
            factors = parse.class_factors(settings.class_weight, totals, self.classes)
            totals = parse.make_weights(totals * factors, "class_weight times sample_weight")
        reading = Reading(self.classes, scaling, factors=factors)
        if self.cells is not None:
            own, labels = self.cells.moments.classes, self.cells.labels
            reading = Reading(own, scaling, factors=factors, joined=labels)
        weights, counts = self.drawn.weights, np.diff(self.drawn.starts)
        if factors is not None:
            weights = weights * np.repeat(factors, counts)
        scaled = reading.scaled(self.drawn.features)
        drawn = Samples(scaled, self.drawn.starts, weights, totals)
        rows = DaskRows(self.parts, reading, self.moments, drawn)
        mean: FloatArray = rows.sample().mean
        if scaling.linear:
            mean = scaling.transform(self.moments.mean(factors)[None])[0]
        known = self.moments
        summary = FeatureSummary.known(known.low, known.high, mean, known.whole)
        limits = None
        if self.cells is not None:
            limits = self.cells.limits(self.parts, scaling, len(self.classes))
        return EngineRows(scaling, rows, summary, class_factors=factors, rate_limits=limits)

    def scaling(self, kind: str) -> Scaling:
        """As ``fit_scaling`` of all rows."""
        known = self.moments
        largest = float(np.max(np.maximum(np.abs(known.low), np.abs(known.high))))
        if largest > LARGEST_VALUE:
            raise ValueError(
                f"X holds values up to {largest:.3g}, too large to add up; divide their column by "
                "a constant first."
            )
        if kind == "identity":
            return LinearScaling(np.zeros(len(known.low)), np.ones(len(known.low)), "identity")
        if kind == "quantile":
            return self._quantile()
        return known.minmax() if kind == "minmax" else known.standard()

    def _quantile(self) -> QuantileScaling:
        if self.drawn.n_rows == self.n_rows:
            return QuantileScaling.fit(self.drawn.features.T, self.drawn.weights)
        rows = np.hstack(
            [self.drawn.features, self.moments.low[:, None], self.moments.high[:, None]]
        )
        weights = self.drawn.weights * np.repeat(
            self.moments.totals / np.add.reduceat(self.drawn.weights, self.drawn.starts[:-1]),
            np.diff(self.drawn.starts),
        )
        rough = QuantileScaling.fit(rows.T, np.append(weights, [weights.min()] * 2))
        knots = [rough.curve(j)[0] for j in range(rough.n_features)]
        answers = self.parts.ask(part_below, knots)
        return rough.counted(
            [
                tuple(reduce(np.add, column) for column in zip(*one, strict=True))
                for one in zip(*answers, strict=True)
            ]
        )


LEARNED_ROWS = 50_000
"""Rows of a table from which its coding is learned, where it is more than numbers."""

LABELS = {"b": "truth values", "i": "numbers", "u": "numbers", "f": "numbers"}
"""What labels are, by the kind of their array; text otherwise."""


def is_dask(X: Any) -> bool:
    """Whether this is a dask collection; dask need not be there to tell."""
    return type(X).__module__.partition(".")[0] == "dask" and hasattr(X, "dask")


# --- collections ----------------------------------------------------------------------------------


class Expected(NamedTuple):
    """What every partition must be like."""

    n_features: int
    names: tuple[Any, ...] | None
    kinds: tuple[str, ...] | None
    coding: Coding | None = None
    cells: CellRows | None = None


@dataclass(frozen=True)
class Collections:
    """Checked dask collections.

    A part is rows, labels, weights and sensitive columns of a partition, delayed; the last two may
    be None. ``empty`` are rows and sensitive columns of a partition without any.
    """

    parts: Sequence[Any]
    expected: Expected
    numbers: bool
    target: str | None
    empty: tuple[Any, Any]

    def stores(self, coding: Coding | None, cells: CellRows | None) -> list[Store]:
        """What stores each partition."""
        from dask.delayed import delayed

        expected = self.expected._replace(coding=coding, cells=cells)
        store = partial(delayed(store_part, pure=False), expected)
        return [partial(store, part) for part in self.parts]

    def seen(self, asked: Asked) -> list[Any]:
        """What the partitions have in the columns ``asked`` for, delayed."""
        from dask.delayed import delayed

        see = delayed(see_part, pure=False)
        return [see(asked, part, number) for number, part in enumerate(self.parts)]

    def some(self) -> Any:
        """Rows from all partitions, delayed: enough to learn a coding from."""
        from dask.delayed import delayed

        some, each = delayed(some_rows, pure=False), ceil(LEARNED_ROWS / len(self.parts))
        return [some(part, number, each) for number, part in enumerate(self.parts)]


def collections(X: Any, y: Any, sample_weight: Any, sensitive: Any = None) -> Collections:
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
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
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
    return Collections(_together(given), expected, numbers, target, (_empty(X), _empty(given[3])))


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

    if any(isinstance(one, da.Array) for one in given):
        parts = [one.to_delayed() if isinstance(one, da.Array)
                 else one.to_delayed(optimize_graph=False)
                 for one in given if one is not None]  # fmt: skip
        lists = iter([np.ravel(one).tolist() for one in parts])
        count = len(np.ravel(parts[0]))
        return list(
            zip(*([None] * count if one is None else next(lists) for one in given), strict=True)
        )
    meta = pd.Series([], dtype=object)
    packed = dd.map_partitions(packed_part, *given, meta=meta, align_dataframes=False)
    return list(packed.to_delayed())


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


def store_part(
    expected: Expected, part: Sequence[Any], number: int, folder: str
) -> tuple[Part | None, Facts | None]:
    """Check the rows of a partition and write them to a file; nothing of an empty one."""
    X, y, weight, sensitive = part
    with _named(number):
        labels, weights = _labels(X, y), _weights(X, weight)
        counted = weights > 0
        matrix = _matrix(X, expected)
        if not np.any(counted):
            return None, None
        refuse_mixed_labels(labels)
        check_classification_targets(labels)
        told = LABELS.get(labels.dtype.kind, "text")
        if expected.cells is not None:
            labels = expected.cells.of(X, sensitive, labels)
    classes = np.unique(labels[counted])
    at = np.searchsorted(classes, labels).clip(max=len(classes) - 1)
    samples = Samples.from_arrays(matrix, at, len(classes), weights)
    kind = "f4" if matrix.dtype == np.float32 else "f8"
    stored = Part.write(samples, classes, kind, number, *own_folder(folder))
    return stored, Facts(Moments.of(samples, classes), told)


def see_part(asked: Asked, part: Sequence[Any], number: int) -> tuple[Seen, str]:
    """The combinations of class and values in a partition (cells.py), and what its labels are."""
    X, y, weight, sensitive = part
    with _named(number):
        labels, weights = _labels(X, y), _weights(X, weight)
        refuse_mixed_labels(labels)
        found = seen_part(asked, X, sensitive, labels, weights)
    return found, LABELS.get(labels.dtype.kind, "text")


@contextmanager
def _named(number: int) -> Iterator[None]:
    """Errors say which partition is wrong."""
    try:
        yield
    except GapsFound:
        raise
    except (ValueError, TypeError) as error:
        raise ValueError(f"partition {number}: {error}") from None


def _matrix(X: Any, expected: Expected) -> NDArray[np.floating]:
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
    if expected.coding is not None:
        return expected.coding.code(X).X if len(X) else np.zeros((0, 1))
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
    if len(labels) != len(X):
        raise ValueError(f"X has {len(X)} rows and y {len(labels)}.")
    return labels


def _weights(X: Any, weight: Any) -> NDArray[np.float64]:
    if weight is None:
        return np.ones(len(X))
    made = np.asarray(settings.make_numbers("sample_weight", weight), dtype=np.float64)
    if made.shape != (len(X),):
        raise ValueError(f"X has {len(X)} rows and sample_weight {len(made)}.")
    if not np.all(np.isfinite(made)) or np.any(made < 0):
        raise ValueError("sample_weight must hold finite numbers >= 0.")
    return settings.make_weights(made)


def some_rows(part: Sequence[Any], number: int, count: int) -> tuple[Any, NDArray[Any]]:
    """About so many rows of a partition, evenly spaced, with their labels."""
    X, y = part[:2]
    with _named(number):
        labels = _labels(X, y)
        refuse_mixed_labels(labels)
    chosen: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
    if len(labels):
        chosen = np.unique(np.linspace(0, len(labels) - 1, count).astype(np.intp))
    return (X.iloc[chosen] if hasattr(X, "iloc") else X[chosen]), labels[chosen]


# --- the table ------------------------------------------------------------------------------------


@contextmanager
def stored_table(
    client: Any, found: Collections, estimator: Any, *, weighted: bool
) -> Iterator[DaskTable]:
    """The table on the workers of a client; its files are removed in the end."""
    coding, feature_types = None, estimator.feature_types
    cells = _cells(client, found, estimator)
    if feature_types is not None or not found.numbers:
        coding = _learned(client, found, feature_types)
    parts = DaskParts(client, found.stores(coding, cells))
    try:
        try:
            facts = parts.store()
        except GapsFound:
            parts.close()
            coding = _learned(client, found, feature_types)
            parts = DaskParts(client, found.stores(coding, cells))
            facts = parts.store()
        _check_labels([one.labels for one in facts])
        all_ = Moments.added(one.moments for one in facts) if facts else None
        classes = np.zeros(0) if all_ is None else all_.classes
        classes = classes if cells is None else cells.classes
        _check_classes(classes)
        assert all_ is not None
        names = found.expected.names
        if names is not None and not all(isinstance(name, str) for name in names):
            names = None
        columns: Sequence[Any] = [f"x{j}" for j in range(found.expected.n_features)]
        columns = columns if names is None else names
        if coding is not None:
            columns, names = coding.names, coding.column_names
        rules = feature_rules(estimator, coding, columns)
        check_values(rules, all_.low, all_.high)
        yield DaskTable.stored(
            parts,
            [one.moments for one in facts],
            cells,
            names=None if names is None else np.array(names, dtype=object),
            weighted=weighted,
            coding=coding,
            target=found.target,
            groups=column_groups(coding, columns, estimator.groups),
            rules=rules,
            monotone=monotone_effects(estimator.monotone, coding, columns, classes),
        )
    finally:
        parts.close()


def _cells(client: Any, found: Collections, estimator: Any) -> CellRows | None:
    """What finds the cells of requirements on rates, after a pass over the source for it."""
    required = as_requirements(estimator.constraints, estimator.fairness)
    if not required:
        return None
    asked = asked_columns(required)
    check_columns(asked, *found.empty)
    pairs = client.gather(client.compute(found.seen(asked)))
    told = [(seen, kind) for seen, kind in pairs if len(seen.labels)]
    _check_labels([kind for _, kind in told])
    parts = [seen for seen, _ in told]
    classes = np.unique(np.concatenate([seen.labels for seen in parts])) if parts else np.zeros(0)
    _check_classes(classes)
    wanted = 0.0 if is_auto(estimator.min_class_rate) else estimator.min_class_rate
    return cell_rows(asked, parts, required, classes, parse.make_rates(wanted, classes))


def _check_labels(told: Sequence[str]) -> None:
    kinds = list(dict.fromkeys(told))
    if len(kinds) > 1:
        raise ValueError(
            f"y holds {kinds[0]} in some partitions and {kinds[1]} in others; make the labels all "
            "text or all numbers."
        )


def _check_classes(classes: NDArray[Any]) -> None:
    if len(classes) < 2:
        raise ValueError(
            f"y has {'only one class' if len(classes) else 'no class of positive weight'}; a "
            "classifier needs at least two."
        )


def _learned(client: Any, found: Collections, feature_types: Any) -> Coding:
    """The coding of a table, learned from some of its rows."""
    pairs = client.gather(client.compute(found.some()))
    tables = [table for table, _ in pairs if len(table)]
    if not tables:
        raise ValueError("X has 0 rows; a table is needed.")
    frames = isinstance(tables[0], pd.DataFrame)
    table = pd.concat(tables, ignore_index=True) if frames else np.concatenate(tables)
    labels = np.concatenate([labels for _, labels in pairs if len(labels)])
    refuse_mixed_labels(labels)
    classes, at = np.unique(labels, return_inverse=True)
    coding = learn(table, at, classes, np.ones(len(at)), feature_types).coding
    # Rows outside of the sample may hold further rare levels.
    return replace(coding, variables=tuple(replace(v, rare=None) for v in coding.variables))
