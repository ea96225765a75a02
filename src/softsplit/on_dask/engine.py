"""Rows on the workers of a Dask cluster: an engine whose sums are added part by part.

``DaskRows`` answers the questions of base.py. For each, the splits and the table go to the workers
(some kilobytes), every part of the table answers with its sums, and these are added here in the
order of the parts. A sample of the rows is here once and for all, to draw starts from and to look
for features on: the first rows of each class in canonical order, which are those that rows in
memory take too, whatever the parts are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.base import Sums
from softsplit.engines.gram import Metric
from softsplit.engines.samples import Samples, stratified_counts
from softsplit.on_dask.cluster_parts import DaskParts
from softsplit.on_dask.parts import (
    Moments,
    Reading,
    added,
    first_rows,
    part_gram,
    part_summed,
    part_sums,
)
from softsplit.support.arrays import FloatArray
from softsplit.support.row_budgets import ROWS

# Rows of the sample in this process: so many cells over the columns, within these limits.
MOST_DRAWN, LEAST_DRAWN, DRAWN_CELLS = 100_000, 20_000, 20_000_000

# More rows are asked of a part than its share, by this many standard deviations of it.
SPREAD = 4.0


@dataclass(frozen=True)
class DaskRows:
    """Rows in the parts of a table.

    Attributes
    ----------
    parts : DaskParts
    reading : Reading
    moments : Moments
        Of all rows and columns.
    drawn : Samples
        The sample as it is read; the class totals are those of all rows.
    """

    parts: DaskParts
    reading: Reading
    moments: Moments
    drawn: Samples

    @property
    def n_rows(self) -> int:
        return int(self.moments.counts.sum())

    @property
    def n_features(self) -> int:
        return self.drawn.n_features

    @property
    def n_groups(self) -> int:
        return len(self.moments.classes)

    @property
    def group_totals(self) -> FloatArray:
        return self.drawn.group_totals

    @property
    def mean_weight(self) -> float:
        return float(self.group_totals.sum()) / self.n_rows

    @property
    def group_samples(self) -> Samples:
        return self.drawn.group_samples

    def evaluate(self, splits: FloatArray, table: FloatArray, outer: int, steepness: float) -> Sums:
        return added(self.parts.ask(part_sums, self.reading, splits, table, outer, steepness))

    def metric(self) -> Metric:
        return Metric.of(reduce(np.add, self.parts.ask(part_gram, self.reading)))

    def sample(self, limit: int | None = None) -> Samples:
        """At most the rows that are here."""
        limit = self.drawn.n_rows if limit is None else limit
        if self.drawn.n_rows == self.n_rows <= limit:
            return self.drawn
        take = stratified_counts(self.moments.counts, limit)
        some = self.drawn.first(np.minimum(np.diff(self.drawn.starts), take))
        return some.with_totals(self.group_totals)

    def summed(self, work: Callable[[Samples], FloatArray]) -> FloatArray:
        return reduce(np.add, self.parts.ask(part_summed, self.reading, work))

    def reweighed(self, seed: int, power: float) -> DaskRows:
        return replace(self, reading=replace(self.reading, drawn=(seed, power)))

    def of_group(self, k: int) -> DaskRows:
        """Other classes stay, with weights of zero."""
        factors = np.zeros(self.n_groups)
        factors[k] = 1.0 if self.reading.factors is None else self.reading.factors[k]
        return replace(self, reading=replace(self.reading, factors=factors))

    def of_columns(self, columns: NDArray[np.intp]) -> DaskRows:
        """The same rows with some of their columns."""
        features = np.ascontiguousarray(self.drawn.features[columns])
        drawn = replace(self.drawn, features=features)
        return replace(self, reading=self.reading.of_columns(columns), drawn=drawn)


def draw(parts: DaskParts, moments: Moments) -> Samples:
    """The first rows of each class of the whole table, as they came.

    A row's place in canonical order is as good as random: a part has about its share of the first
    ones, and is asked for a little more.
    """
    counts, n_features = moments.counts, len(moments.low)
    limit = min(MOST_DRAWN, max(LEAST_DRAWN, DRAWN_CELLS // n_features))
    wanted = stratified_counts(counts, limit, ROWS.group_centre)
    # 1. How many rows each part is asked for.
    quotas = []
    for part in parts.parts:
        at, here = np.searchsorted(moments.classes, part.classes), np.diff(part.starts)
        share = here * (wanted[at] / counts[at])
        more = np.ceil(share + SPREAD * np.sqrt(share) + SPREAD).astype(np.int64)
        quotas.append(np.where(wanted[at] == counts[at], here, np.minimum(here, more)))
    # 2. Those rows in canonical order.
    features, weights = zip(*parts.ask(first_rows, each=quotas), strict=True)
    labels = [
        np.repeat(np.searchsorted(moments.classes, part.classes), quota)
        for part, quota in zip(parts.parts, quotas, strict=True)
    ]
    ordered = Samples.from_arrays(
        np.hstack(features).T, np.concatenate(labels), len(counts), np.concatenate(weights)
    )
    # 3. The first ones, all of which have arrived.
    kept = ordered.first(np.minimum(wanted, np.diff(ordered.starts)))
    return replace(kept, group_totals=moments.totals)
