"""One question of a tree as blocks of a score card: candidate edges, then the search for points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from softsplit.cards.blocks import Bins, BlockPoints, day_edges, gap_edge, spread_edges
from softsplit.cards.rows import whole_numbers
from softsplit.cards.search import OPTIONS, Asked, CardPart, search_points
from softsplit.fitted.model import TreeModel
from softsplit.fitted.walk import TIE
from softsplit.fitted.walk_choice import best_cut
from softsplit.support.arrays import FloatArray
from softsplit.variables import Cells
from softsplit.variables.variable import CATEGORY, DATE


@dataclass(frozen=True)
class Linear:
    """One question of a tree: right where sum_j c_j f_j(x_j) + constant >= 0.

    f_j is the column itself or, of ``scaled`` questions, its value in scaled units.
    """

    model: TreeModel
    coefficients: FloatArray
    constant: float
    width: float
    scaled: bool

    @classmethod
    def of(cls, model: TreeModel, branch: int) -> Linear:
        parameters, walk = model.parameters, model.walk
        slopes = parameters.weights[:, branch] / parameters.n_features
        if walk is None:
            slopes = np.where(
                np.abs(parameters.weights[:, branch]) > model.zero_threshold, slopes, 0
            )
            threshold = float(parameters.thresholds[branch])
            return cls(model, -slopes, threshold, 1.0 / model.steepness, True)
        sign = -1.0 if walk.upwards[branch] else 1.0
        coefficients = sign * walk.coefficients[branch]
        sizes = np.abs(coefficients)
        ones = np.flatnonzero(sizes == 1.0)
        leading = int(ones[0] if len(ones) else np.argmax(sizes))
        unit = model.splits[0][branch][leading] / (sizes[leading] or 1.0)
        width = 1.0 / (model.steepness * abs(unit)) if unit else 1.0
        constant = -sign * float(walk.thresholds[branch])
        return cls(model, coefficients, constant, width, bool(walk.ranked[branch]))

    @cached_property
    def homes(self) -> list[int]:
        """Variables that it looks at."""
        variables = self.model.table_coding.homes[np.flatnonzero(self.coefficients)]
        return np.unique(variables).astype(int).tolist()

    def pull(self, home: int, cells: Cells) -> FloatArray:
        """Contribution of one variable."""
        coding = self.model.table_coding
        columns = coding.columns_of(home)
        coded = coding.variables[home].coded(cells)
        if self.scaled:
            coded = self.model.scaling.of_columns(columns).transform(coded)
        terms = [
            self.coefficients[j] * coded[:, n]
            for n, j in enumerate(columns)
            if self.coefficients[j]
        ]
        return np.asarray(np.sum(terms, axis=0))

    def right(self, pulls: Sequence[FloatArray]) -> NDArray[np.bool_]:
        """Whether rows go right; sums that miss equality by rounding are equal."""
        total = np.sum(pulls, axis=0) + self.constant
        size = np.sum(np.abs(pulls), axis=0) + abs(self.constant)
        return np.asarray(total >= -TIE * size)


def _bins(model: TreeModel, home: int, cells: Cells) -> Bins:
    """Candidate bins of a variable: readable numbers between values of the rows."""
    variable = model.table_coding.variables[home]
    bins = Bins(home, variable, np.zeros(0))
    if not bins.ranged:
        return bins
    values = cells.numbers[~cells.missing & ~cells.unlisted]
    if variable.kind == DATE:
        days = np.array(spread_edges(values + variable.origin, OPTIONS.bins, True))
        apart = np.diff(days, prepend=days[:1] - 2, append=days[-1:] + 2)
        reach = np.minimum(apart[:-1], apart[1:]) / 3 if len(days) else days
        return replace(bins, edges=np.array(day_edges(days, reach)) - variable.origin)
    return replace(
        bins, edges=np.array(spread_edges(values, OPTIONS.bins, whole_numbers(model, home)))
    )


def _with_crossings(linear: Linear, bins: Bins, cells: Cells, shift: float) -> Bins:
    """Bins of a variable that is asked alone, with edges exactly where its side changes."""
    values = np.unique(cells.numbers[~cells.missing & ~cells.unlisted])
    none = np.zeros(len(values), dtype=bool)
    if not bins.ranged or len(values) < 2:
        return bins
    above = linear.pull(bins.home, Cells(values, none, none)) + linear.constant - shift
    size = np.abs(above) + 2 * abs(linear.constant - shift)
    right = above >= -TIE * size
    whole = bins.variable.kind == DATE or whole_numbers(linear.model, bins.home)
    crossings = []
    for k in np.flatnonzero(right[1:] != right[:-1]):
        a, b, low, high = values[k], values[k + 1], above[k], above[k + 1]
        at = a + (b - a) * low / (low - high) if low != high else b
        moved = bins.variable.origin  # dates: edges are whole days
        crossings.append(gap_edge(values + moved, at + moved, bool(right[k]), whole) - moved)
    ends = np.unique(np.concatenate([bins.edges, crossings]))
    # An edge between a crossing and the values next to it parts nothing.
    return replace(bins, edges=ends)


def question_points(
    linear: Linear,
    cells: Sequence[Cells],
    gain: FloatArray,
    points: int,
    sharp: bool,
    quick: bool = False,
) -> tuple[tuple[BlockPoints, ...], int]:
    """Blocks and limit of one question, searched for on the rows that arrive there."""
    pulls = [linear.pull(home, cells[home]) for home in linear.homes]
    above = np.sum(pulls, axis=0) + linear.constant
    shift, alone = 0.0, len(linear.homes) == 1
    if alone and len(above):
        cut = best_cut(above, gain, 0.0)
        if cut.gain > gain[linear.right(pulls)].sum() + 1e-6:
            shift = cut.nearest(0.0)
    bins, parts = [], []
    for home in linear.homes:
        candidates = _bins(linear.model, home, cells[home])
        if alone:
            candidates = _with_crossings(linear, candidates, cells[home], shift)
        first = int(linear.model.table_coding.columns_of(home)[0])
        ends = linear.model.summary.low[first], linear.model.summary.high[first]
        examples = linear.pull(home, candidates.examples(*map(float, ends)))
        chain = np.arange(candidates.n_values + candidates.own_other)
        if candidates.variable.kind == CATEGORY:
            chain = chain[np.argsort(examples[chain], kind="stable")]
        bins.append(candidates)
        parts.append(CardPart(candidates.of(cells[home]), examples, chain))
    side = np.where(above >= shift, OPTIONS.side, -OPTIONS.side)
    asked = Asked(above - shift, linear.constant - shift, linear.width, gain + side)
    solution = search_points(asked, parts, points, sharp, quick)
    blocks = [BlockPoints(b, p).merged() for b, p in zip(bins, solution.points, strict=True)]
    return tuple(block for block in blocks if np.any(block.points)), solution.limit
