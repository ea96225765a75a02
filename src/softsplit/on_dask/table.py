"""A table on a Dask cluster as training rows: ``prepare`` takes it in the place of ``Rows``.

One pass over the table stores its parts and gives their moments; scalings follow from these.
The knots of the quantile scaling are those of the sample, with the ends of the whole table; another
pass counts the weight below and at each of them, so that their ranks are exact.

``stored_table`` makes the table of checked collections (partitions.py). Under requirements on rates
another pass comes first, which tells the cells of the rows (cells.py), and parts are grouped by
these: classes and cells are two readings of the same files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import reduce
from math import ceil
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsplit.engines.base import RowEngine
from softsplit.engines.compiled import CompiledRows
from softsplit.engines.samples import Samples
from softsplit.estimators.training_rows import feature_rules
from softsplit.fitted.summary import FeatureSummary
from softsplit.formulations import formulation_of, is_auto
from softsplit.formulations import settings as parse
from softsplit.formulations.feature_rules import check_values
from softsplit.formulations.model_settings import ModelSettings
from softsplit.formulations.rates import RatedRows, as_requirements, asked_columns
from softsplit.on_dask.cells import PartitionCells, cell_rows, check_columns
from softsplit.on_dask.cluster_parts import DaskParts
from softsplit.on_dask.engine import DaskRows, draw
from softsplit.on_dask.partitions import (
    Facts,
    GapsFound,
    Partitions,
    see_part,
    some_rows,
    store_part,
)
from softsplit.on_dask.parts import Moments, Reading, part_below
from softsplit.problem.feature_rules import FeatureRules
from softsplit.problem.rates import RateLimits
from softsplit.support.arrays import FloatArray
from softsplit.support.labels import refuse_mixed_labels, refuse_one_class
from softsplit.training.rows import EngineRows, Rows
from softsplit.tree.scaling import LARGEST_VALUE, LinearScaling, QuantileScaling, Scaling
from softsplit.variables import Coding, MonotoneEffects, column_groups, learn, monotone_effects

# Rows of a table from which its coding is learned, where it is more than numbers.
LEARNED_ROWS = 50_000


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
        samples = Samples.from_arrays(drawn.features.T, labels, len(totals), weights)
        return replace(samples, group_totals=totals)

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
        labels, rated = some.labels, None
        if self.cells is not None:
            rated = replace(self.cells.rated, cells=labels.astype(np.intp))
            labels = self.cells.labels[labels].astype(np.int64)
        facts = {one.name for one in fields(Rows)} & {one.name for one in fields(self)}
        X = np.ascontiguousarray(some.features.T)
        return Rows(
            X=X, labels=labels, weight=some.weights, rated=rated, classes=self.classes,
            **{name: getattr(self, name) for name in facts},
        )  # fmt: skip

    def placed(self, kind: str, settings: ModelSettings) -> EngineRows:
        """As ``Rows.placed``; there is no choice of engines."""
        scaling = self.scaling(kind)
        totals, factors = self.moments.totals, None
        if formulation_of(settings.loss).weights_rows and settings.class_weight is not None:
            factors = parse.class_factors(settings.class_weight, totals, self.classes)
            totals = parse.make_weights(totals * factors, "class_weight times sample_weight")
        # The sample, and the engine that reads all rows.
        reading, limits = Reading(self.classes, scaling, factors=factors), None
        if self.cells is not None:
            groups, labels = self.cells.moments.classes, self.cells.labels
            reading = replace(reading, classes=groups, joined=labels)
            limits = self.cells.limits(self.parts, scaling, len(self.classes))
        weights = self.drawn.weights
        if factors is not None:
            weights = weights * np.repeat(factors, np.diff(self.drawn.starts))
        scaled = reading.scaled(self.drawn.features)
        drawn = Samples(scaled, self.drawn.starts, weights, totals)
        rows = DaskRows(self.parts, reading, self.moments, drawn)
        # The summary: exact but for means of what is not scaled by a line.
        mean: FloatArray = rows.sample().mean
        if scaling.linear:
            mean = scaling.transform(self.moments.mean(factors)[None])[0]
        low, high, whole = self.moments.low, self.moments.high, self.moments.whole
        summary = FeatureSummary.known(low, high, mean, whole)
        return EngineRows(scaling, rows, summary, class_factors=factors, rate_limits=limits)

    def scaling(self, kind: str) -> Scaling:
        """As ``fit_scaling`` of all rows."""
        low, high = self.moments.low, self.moments.high
        largest = float(np.max(np.maximum(np.abs(low), np.abs(high))))
        if largest > LARGEST_VALUE:
            raise ValueError(
                f"X holds values up to {largest:.3g}, too large to add up; divide their column by "
                "a constant first."
            )
        if kind == "identity":
            return LinearScaling(np.zeros(len(low)), np.ones(len(low)), "identity")
        if kind == "quantile":
            return self._quantile()
        return self.moments.minmax() if kind == "minmax" else self.moments.standard()

    def _quantile(self) -> QuantileScaling:
        if self.drawn.n_rows == self.n_rows:
            return QuantileScaling.fit(self.drawn.features.T, self.drawn.weights)
        # 1. Knots of the sample, with the ends of the whole table.
        ends = self.moments.low[:, None], self.moments.high[:, None]
        rows = np.hstack([self.drawn.features, *ends])
        weights = self.drawn.with_totals(self.moments.totals).weights
        rough = QuantileScaling.fit(rows.T, np.append(weights, [weights.min()] * 2))
        # 2. Weights below and at the knots of each column, in all parts.
        knots = [rough.curve(j)[0] for j in range(rough.n_features)]
        columns = zip(*self.parts.ask(part_below, knots), strict=True)
        return rough.counted(
            [tuple(reduce(np.add, sums) for sums in zip(*one, strict=True)) for one in columns]
        )


@contextmanager
def stored_table(
    client: Any, given: Partitions, estimator: Any, *, weighted: bool
) -> Iterator[DaskTable]:
    """The table on the workers of a client; its files are removed in the end."""
    # 1. Rows in files on the workers. Gaps in a table of numbers are found when it is read.
    coding, feature_types = None, estimator.feature_types
    cells = _cells(client, given, estimator)
    if feature_types is not None or not given.numbers:
        coding = _learned(client, given, feature_types)
    try:
        parts, facts = _stored(client, given, coding, cells)
    except GapsFound:
        coding = _learned(client, given, feature_types)
        parts, facts = _stored(client, given, coding, cells)
    try:
        # 2. What is known of all rows, and a sample of them.
        _check_labels([one.labels for one in facts])
        by_part = [one.moments.classes for one in facts] if cells is None else [cells.classes]
        refuse_one_class(_union(by_part))
        moments = Moments.added([one.moments for one in facts])
        drawn, by_cell = draw(parts, moments), None
        if cells is not None:
            by_cell = TableCells(moments, drawn, cells.rated)
            moments = moments.joined(by_cell.labels, cells.classes)
            drawn = by_cell.by_class(moments.totals)
        # 3. Columns, and what was asked of them.
        names = given.expected.names
        if names is not None and not all(isinstance(name, str) for name in names):
            names = None
        columns: Sequence[Any] = [f"x{j}" for j in range(given.expected.n_features)]
        columns = columns if names is None else names
        if coding is not None:
            columns, names = coding.names, coding.column_names
        rules = feature_rules(estimator, coding, columns)
        check_values(rules, moments.low, moments.high)
        yield DaskTable(
            parts,
            moments,
            drawn,
            names=None if names is None else np.array(names, dtype=object),
            weighted=weighted,
            coding=coding,
            target=given.target,
            groups=column_groups(coding, columns, estimator.groups),
            rules=rules,
            monotone=monotone_effects(estimator.monotone, coding, columns, moments.classes),
            cells=by_cell,
        )
    finally:
        parts.close()


def _stored(
    client: Any, given: Partitions, coding: Coding | None, cells: PartitionCells | None
) -> tuple[DaskParts, list[Facts]]:
    """The partitions on the workers, and what was told of each."""
    parts = DaskParts(client, given.each(store_part, given.expected, coding, cells))
    try:
        return parts, parts.store()
    except BaseException:
        parts.close()
        raise


def _cells(client: Any, given: Partitions, estimator: Any) -> PartitionCells | None:
    """What finds the cells of requirements on rates, after a pass over the source for it."""
    required = as_requirements(estimator.constraints, estimator.fairness)
    if not required:
        return None
    asked = asked_columns(required)
    check_columns(asked, *given.empty)
    parts = [part for part in given.answers(client, see_part, asked) if part.weights]
    _check_labels([part.kind for part in parts])
    classes = _union([part.classes for part in parts])
    refuse_one_class(classes)
    least = 0.0 if is_auto(estimator.min_class_rate) else estimator.min_class_rate
    seen = [part.weights for part in parts]
    return cell_rows(asked, seen, required, classes, parse.make_rates(least, classes))


def _union(classes: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.unique(np.concatenate(classes)) if classes else np.zeros(0)


def _check_labels(kinds: Sequence[str]) -> None:
    distinct = list(dict.fromkeys(kinds))
    if len(distinct) > 1:
        raise ValueError(
            f"y holds {distinct[0]} in some partitions and {distinct[1]} in others; make the "
            "labels all text or all numbers."
        )


def _learned(client: Any, given: Partitions, feature_types: Any) -> Coding:
    """The coding of a table, learned from some of its rows."""
    each = ceil(LEARNED_ROWS / len(given.parts))
    pairs = given.answers(client, some_rows, each)
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
