"""The smooth part of a descent under requirements on rates of any rows (problem/rates.py).

The expected cost and all rates are linear in the masses M_gl of the cells in the leaves. With the
multipliers m_q of the lines, and J = M c' the weight of each cell that is said to be of each class,

    multiplier_q = max(0, m_q + weight (b_q - sum_gk B_qgk J_gk))
    term_q       = (multiplier_q^2 - m_q^2) / (2 weight)

as of minimum class rates (objective.py), which are lines here too. One pass over the cells gives
cost and rates, and a second one the derivative, where any multiplier is positive: that of the same
sums with the table W - P c, P_gk = sum_q multiplier_q B_qgk.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.base import RowEngine, Sums
from softsplit.engines.compiled import CompiledRows
from softsplit.engines.outer import IDENTITY
from softsplit.engines.samples import Samples
from softsplit.problem.rates import RateLimits
from softsplit.solvers.active_set.objective import AddedTerms, RemoteObjective
from softsplit.support.arrays import FloatArray
from softsplit.tree.routing import gate_probabilities, node_reach, node_values

NEGLIGIBLE = 1e-6
"""Rows with smaller slopes, relative to the largest one, add nothing to a Hessian."""


class CellRows(CompiledRows):
    """Rows in memory by cells, with second derivatives for any number of them."""

    def curvature(
        self, splits: FloatArray, table: FloatArray, outer: int, steepness: float
    ) -> FloatArray:
        """As of engines with rows elsewhere; ``outer`` is the identity."""
        return tree_hessian(self.samples, splits, table, steepness)


class RatedObjective(RemoteObjective):
    """The smooth part where ``limits`` bound rates; ``terms`` have the multipliers of their lines.

    ``rows`` differ from those of ``limits`` where a descent is on other row weights; else None.

    Attributes
    ----------
    short : array (n_lines,)
        What the rates lacked at the last point.
    """

    short: FloatArray

    def __init__(
        self,
        limits: RateLimits,
        table: FloatArray,
        leaf_values: FloatArray,
        steepness: float,
        terms: AddedTerms,
        free: NDArray[np.bool_],
        rows: RowEngine | None = None,
    ) -> None:
        cells: RowEngine = limits.rows
        if isinstance(cells, CompiledRows):
            cells = CellRows(cells.samples)
        super().__init__(cells, table, leaf_values, IDENTITY, steepness, terms, free)
        self.limits, self.other = limits, rows
        self.by_cell = table[limits.labels]

    def __call__(self, theta: FloatArray, gradient: FloatArray, active: FloatArray) -> float:
        """The smooth part at ``theta``; derivative and multipliers go to their arrays."""
        limits, terms = self.limits, self.terms
        sums = self._sums(theta, self.by_cell, IDENTITY)
        self.short = limits.shortfalls(sums.mass @ self.leaf_values.T)
        active[...] = np.maximum(0.0, terms.multipliers + terms.rate_weight * self.short)
        value = float(np.sum(active**2 - terms.multipliers**2)) / (2.0 * terms.rate_weight)
        by_split, cost = sums.splits, sums.value
        if np.any(active > 0.0):
            by_split = self._sums(theta, self._table(active), IDENTITY).splits
        if self.other is not None:  # the cost of other rows takes the place of that of the cells
            own = self.other.evaluate(theta, self.table, IDENTITY, self.steepness)
            by_split, cost = by_split - sums.splits + own.splits, own.value
        mass = np.zeros_like(self.table)
        np.add.at(mass, limits.labels, sums.mass)
        self.last = Sums(cost, by_split, mass, mass)
        return self._completed(value + cost, by_split, theta, gradient)

    def _priced_curvature(self, theta: FloatArray, active: FloatArray) -> FloatArray:
        """As of the base; second derivatives of the cost are those on the rows of the cells."""
        engine = cast(Any, self.rows)
        return engine.curvature(theta, self._table(active), IDENTITY, self.steepness)

    def _rate_table(self, k: np.intp) -> FloatArray:
        return self.limits.coefficients[k] @ self.leaf_values

    def _table(self, active: FloatArray) -> FloatArray:
        """W - P c, (n_cells, n_leaves)."""
        return self.by_cell - self.limits.prices(active) @ self.leaf_values


def tree_hessian(
    samples: Samples, splits: FloatArray, table: FloatArray, steepness: float
) -> FloatArray:
    """Second derivatives of sum_i weight_i V_i by the splits, entries in the order of their lines.

    The formulas are those of engines/curvature.py, for any number of cells and all coefficients.
    """
    n_branches, width = splits.shape
    lines = np.vstack([samples.features / (width - 1), np.full(samples.n_rows, -1.0)])
    left, right = gate_probabilities(splits @ lines, steepness)
    values = node_values(left, right, table.T[:, samples.labels])
    reach = node_reach(left, right)[:n_branches] * samples.weights
    slopes = steepness * reach * left * right * (values[1::2] - values[2::2])
    least = NEGLIGIBLE * float(np.max(np.abs(slopes), initial=0.0))
    hessian = np.zeros((n_branches, width, n_branches, width))
    for t in range(n_branches):
        kept = np.abs(slopes[t]) > least
        own, slope = lines[:, kept], steepness * slopes[t, kept]
        hessian[t, :, t] += (own * ((right[t, kept] - left[t, kept]) * slope)) @ own.T
        node = t
        while node:
            above, on_left = (node - 1) // 2, node % 2 == 1
            gate = right[above, kept] if on_left else -left[above, kept]
            block = (own * (gate * slope)) @ own.T
            hessian[t, :, above] += block
            hessian[above, :, t] += block.T
            node = above
    return hessian.reshape(splits.size, splits.size)
