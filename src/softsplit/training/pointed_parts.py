"""A tree in whole points on its look-ups alone, training rows in points, and all columns again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.hinged import HingedLines
from softsplit.engines.samples import Samples
from softsplit.fitted.monotone import order_directions, ordered_leaves, ordered_walk
from softsplit.fitted.summary import INTEGER, FeatureSummary
from softsplit.fitted.walk import Arriving, Walk
from softsplit.fitted.walk_rounding import rounded_shares
from softsplit.points.cells import known_numbers
from softsplit.support.arrays import FloatArray
from softsplit.training.preparation import Prepared
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.scaling import LinearScaling, Scaling
from softsplit.variables import Coding, MonotoneEffects
from softsplit.variables.lookup import Lookup, LookupColumn
from softsplit.variables.variable import CATEGORY, DATE, NUMBER, Cells


@dataclass(frozen=True)
class PointedParts:
    """A tree in points on its look-ups alone.

    Attributes
    ----------
    coding : Coding
        Of all variables; the columns of those in use are their look-ups.
    parameters : TreeParameters
        With a feature for each look-up.
    lookups : tuple of (int, Lookup)
        Each with its variable, in the order of the columns.
    trained : Coding
        The coding of training.
    monotone : MonotoneEffects, optional
        Required effects, on the look-ups.
    """

    coding: Coding
    parameters: TreeParameters
    lookups: tuple[tuple[int, Lookup], ...]
    trained: Coding
    monotone: MonotoneEffects | None = None

    @property
    def scaling(self) -> LinearScaling:
        """Points as they are."""
        return identity(len(self.lookups))

    def values(self, scaling: Scaling, rows: Arriving) -> Arriving:
        """Return training rows, scaled so, with their points as features."""
        coding, home = self.trained, -1
        points = np.empty((len(self.lookups), len(rows.labels)))
        for line, (i, own) in zip(points, self.lookups, strict=True):
            if i != home:  # look-ups of a variable follow one another
                cells = decoded(scaling, coding, rows, i)
                home, known = i, known_numbers(coding.variables[i], cells)
            line[:] = own.values(*known)
        return rows._replace(features=points)

    def arriving(self, scaling: Scaling, walk: Walk, samples: Samples) -> FloatArray:
        """Weight of each class that arrives in each leaf of a walk."""
        rows = Arriving(samples.features, samples.labels, samples.weights)
        return walk.arriving(self.values(scaling, rows), self.scaling)

    @property
    def of_numbers(self) -> list[LookupColumn] | None:
        """The look-ups with the columns that they read; None if one is of levels."""
        columns, variables = [], self.trained.variables
        for i, lookup in self.lookups:
            if variables[i].kind not in (NUMBER, DATE):
                return None
            own = self.trained.columns_of(i)
            unknown = int(own[-1]) if variables[i].has_missing else None
            columns.append(LookupColumn(lookup, int(own[0]), unknown))
        return columns

    def on_all_columns(self, tree: TreeParameters, walk: Walk) -> tuple[TreeParameters, Walk]:
        """Return a tree on the look-ups, and its walk, on the columns of the coding."""
        own, n_columns = self.columns, len(self.coding.homes)
        weights = np.zeros((n_columns, tree.weights.shape[1]))
        weights[own] = tree.weights * (n_columns / len(own))
        asked = np.zeros((len(walk.thresholds), n_columns))
        asked[:, own] = walk.coefficients
        return replace(tree, weights=weights), replace(walk, coefficients=asked)

    def under(self, effects: MonotoneEffects | None) -> PointedParts:
        """Return the parts under required effects."""
        if effects is None:
            return self
        effects, own = effects.on(self.coding), self.columns
        places = [np.searchsorted(own, sorted({*columns} & {*own})) for columns in effects.columns]
        return replace(
            self, monotone=replace(effects, columns=tuple(tuple(at.tolist()) for at in places))
        )

    def shortened(self, tree: TreeParameters) -> PointedParts:
        """Return the parts of a tree that uses some of the look-ups."""
        kept = np.any(tree.weights, axis=1)
        lookups = tuple(own for own, used in zip(self.lookups, kept, strict=True) if used)
        by_variable: dict[int, list[Lookup]] = {}
        for i, lookup in lookups:
            by_variable.setdefault(i, []).append(lookup)
        weights = tree.weights[kept] * (len(lookups) / len(self.lookups))
        return PointedParts(
            self.trained.with_lookups(by_variable), replace(tree, weights=weights), lookups,
            self.trained,
        )  # fmt: skip

    def in_order(
        self, tree: TreeParameters, walk: Walk, gains: FloatArray
    ) -> tuple[TreeParameters, Walk]:
        """Return a tree and its walk, which knows its rows, in the order of required effects."""
        if self.monotone is None:
            return tree, walk
        mass, direction = walk.counts.sum(axis=0), order_directions(self.monotone, tree.weights.T)
        leaves = ordered_leaves(tree.leaf_values, mass, direction, self.monotone, rounded_shares)
        walk = ordered_walk(walk, self.monotone, gains, gains.T @ leaves)
        return replace(tree, leaf_values=leaves), walk

    def marks(self, used: Any) -> FloatArray:
        """Return numbers of look-ups (n_lookups, n_branches) on the columns of training.

        Each stands at the first column of its variable.
        """
        marks = np.zeros((len(self.trained.homes), used.shape[1]))
        for (i, _), line in zip(self.lookups, np.asarray(used, dtype=float), strict=True):
            marks[self.trained.firsts[i]] += np.abs(line)
        return marks

    @property
    def columns(self) -> NDArray[np.intp]:
        """Columns of the coding that are look-ups."""
        pointed = np.array([bool(variable.lookups) for variable in self.coding.variables])
        return np.flatnonzero(pointed[self.coding.homes])

    def summary(self, prepared: Prepared, rows: Arriving) -> FeatureSummary:
        """Return the summary of all columns: of look-ups the means of points, in the rows, and the
        range of the values, which for levels are their places."""
        own, scaling, known = self.columns, prepared.scaling, prepared.summary
        homes, variables = self.coding.homes, self.coding.variables
        kept = np.flatnonzero(~self.trained.hinges)  # other columns are as in training
        kept = kept[~np.isin(self.trained.homes[kept], homes[own])]
        others = np.setdiff1d(np.arange(len(homes)), own)
        # 1. Ranges.
        source = np.array(self.trained.firsts)[homes]
        source[others] = kept
        lows, highs, kinds = known.low[source], known.high[source], known.kinds[source]
        for j in own:
            variable = variables[homes[j]]
            if variable.kind == CATEGORY:
                lows[j], highs[j] = 0.0, len(variable.levels) + variable.places_others - 1.0
                kinds[j] = INTEGER
        # 2. Means.
        means = np.zeros(len(homes))
        means[own] = np.average(rows.features, axis=1, weights=rows.weights)
        means[others] = [scaling.to_original(int(j), float(known.scaled_mean[j])) for j in kept]
        return FeatureSummary(lows, highs, means, kinds)


def identity(n_columns: int) -> LinearScaling:
    """Return the scaling of columns that are taken as they are."""
    return LinearScaling(np.zeros(n_columns), np.ones(n_columns), "identity")


def decoded(scaling: Scaling, coding: Coding, rows: Arriving, i: int) -> Cells:
    """Return a variable of training rows."""
    own = coding.columns_of(i)
    if coding.variables[i].kind in (NUMBER, DATE):  # hinges say nothing more
        own = own[[0, -1]] if coding.variables[i].has_missing else own[:1]
    lines = rows.features
    if isinstance(lines, HingedLines):
        columns = [lines.own_values(int(j)) for j in own]
    else:
        columns = [scaling.restored(int(j), lines[j]) for j in own]
    return coding.variables[i].decoded(np.column_stack(columns))
