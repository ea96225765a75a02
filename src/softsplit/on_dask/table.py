"""A table on a Dask cluster as training rows: ``prepare`` takes it in the place of ``Rows``.

One pass over the table stores its parts and gives their moments; scalings follow from these.
The knots of the quantile scaling are those of the sample, with the ends of the whole table; another
pass counts the weight below and at each of them, so that their ranks are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.samples import Samples
from softsplit.formulations import formulation_of
from softsplit.formulations import settings as parse
from softsplit.formulations.model_settings import ModelSettings
from softsplit.on_dask.cluster_parts import DaskParts
from softsplit.on_dask.engine import DaskRows, draw
from softsplit.on_dask.moments import Moments
from softsplit.on_dask.parts import Reading, part_below
from softsplit.reading.summary import FeatureSummary
from softsplit.support.arrays import FloatArray
from softsplit.training.preparation import Placed, Rows
from softsplit.tree.scaling import LARGEST_VALUE, LinearScaling, QuantileScaling, Scaling
from softsplit.variables import Coding


@dataclass(frozen=True)
class DaskTable:
    """Stored parts of a table, and what is known of them.

    Attributes
    ----------
    parts : DaskParts
    moments : Moments
    drawn : Samples
        A sample of the rows in original units.
    classes, names, weighted, coding, target, groups, within
        As of ``Rows``.
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

    @classmethod
    def stored(cls, parts: DaskParts, moments: Sequence[Moments], **facts: Any) -> DaskTable:
        """The table whose parts have been stored, with what they told."""
        all_ = Moments.added(moments)
        return cls(parts, all_, draw(parts, all_), **facts)

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
        counts = self.moments.counts
        share = np.maximum(1, counts * limit // counts.sum())
        some = self.drawn.first(np.minimum(np.diff(self.drawn.starts), share))
        return Rows(
            np.ascontiguousarray(some.features.T), some.labels, some.weights, self.classes,
            self.names, self.weighted, self.coding, self.target, self.groups,
        )  # fmt: skip

    def placed(self, kind: str, settings: ModelSettings) -> Placed:
        """As ``Rows.placed``; there is no choice of engines."""
        scaling = self.scaling(kind)
        totals, factors = self.moments.totals, None
        if formulation_of(settings.loss).weights_rows and settings.class_weight is not None:
            factors = parse.class_factors(settings.class_weight, totals, self.classes)
            totals = parse.make_weights(totals * factors, "class_weight times sample_weight")
        reading = Reading(self.classes, scaling, factors=factors)
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
        return Placed(scaling, rows, summary)

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
