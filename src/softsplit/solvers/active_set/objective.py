"""The smooth part of what a descent lowers: loss, rate terms and proximal term, each written once.

The minimum class rates enter as an augmented Lagrangian. With the mass correct_k that is
classified correctly, which every engine returns, the total n_k of the class and the rate
r_k = correct_k / n_k,

    multiplier_k = max(0, m_k + weight (rho_k - r_k))
    term_k       = (multiplier_k^2 - m_k^2) / (2 weight)

whose derivative is that of the same sums with the price multiplier_k / n_k on a unit of
correct_k.
The proximal term is psi / 2 |theta - centre|^2 over the free branches, and the ridge term
ridge / 2 |weights|^2, thresholds left out.

``soften`` and ``expect`` are steps of leaves that hold class distributions, for the log-loss.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.base import RowEngine, Sums
from softsplit.engines.outer import IDENTITY
from softsplit.engines.passes import gather_gradient, pass_rows, score_rows
from softsplit.problem.leaves import SMOOTHING, TINY_SHARE
from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled, compiled_uncounted


class AddedTerms(NamedTuple):
    """What is added to the loss; all arrays C-contiguous."""

    group_totals: FloatArray  # (n_groups,)
    minimum_rates: FloatArray  # (n_groups,)
    multipliers: FloatArray  # (n_groups,)
    rate_weight: float  # 0 turns the rate terms off
    proximal: float  # psi; 0 turns the proximal term off
    centre: FloatArray  # (n_branches, n_features + 1), or (0, 0) without a proximal term
    ridge: float = 0.0


@compiled_uncounted
def largest(values):  # type: ignore[no-untyped-def]
    """The largest of some numbers, or 0 if that is more."""
    most = 0.0
    for k in range(values.size):
        most = max(most, values[k])
    return most


@compiled_uncounted
def smooth_value(theta, passes, terms, free, active, scratch):  # type: ignore[no-untyped-def]
    """Smooth part at ``theta`` for rows in memory; ``scratch`` (as theta) is overwritten.

    ``passes`` is the named tuple: references to its arrays are not counted. ``active`` becomes
    the multipliers of the rates.
    """
    rated = terms.rate_weight > 0.0
    score_rows(theta, passes)
    value = pass_rows(passes.rows, passes, False, rated)
    if rated:
        value += rate_terms(passes.correct_mass, terms, active, passes.price)
    return value + other_terms(theta, terms, free, scratch)


@compiled_uncounted
def smooth_derivative(theta, passes, terms, free, active, gradient):  # type: ignore[no-untyped-def]
    """Its derivative to ``gradient``, after ``smooth_value`` at the same point.

    Many points are given up for their value: what only the derivative needs is done here.
    """
    if terms.rate_weight > 0.0 and largest(active) > 0.0:
        pass_rows(passes.rows, passes, True, False)
    gather_gradient(passes, free, gradient)
    other_terms(theta, terms, free, gradient)


@compiled_uncounted
def rate_terms(correct_mass, terms, active, price):  # type: ignore[no-untyped-def]
    """Sum of the augmented Lagrangian terms; multipliers go to ``active``, prices to ``price``."""
    total, weight = 0.0, terms.rate_weight
    for k in range(correct_mass.size):
        m, count = terms.multipliers[k], terms.group_totals[k]
        # multiplier_k = max(0, m_k + weight (rho_k - r_k)), then term_k and its price per unit mass
        multiplier = max(0.0, m + weight * (terms.minimum_rates[k] - correct_mass[k] / count))
        total += (multiplier * multiplier - m * m) / (2.0 * weight)
        active[k] = multiplier
        price[k] = multiplier / count
    return total


@compiled_uncounted
def other_terms(theta, terms, free, gradient):  # type: ignore[no-untyped-def]
    """Proximal and ridge term over the free branches; their derivatives are added."""
    proximal, ridge = 0.0, 0.0
    if terms.proximal == 0.0 and terms.ridge == 0.0:  # as by cost in a whole problem
        return 0.0
    for t in range(theta.shape[0]):
        if not free[t]:
            continue
        for j in range(theta.shape[1]):
            if terms.proximal > 0.0:  # psi / 2 gap^2, derivative psi gap
                gap = theta[t, j] - terms.centre[t, j]
                proximal += 0.5 * terms.proximal * gap * gap
                gradient[t, j] += terms.proximal * gap
            if terms.ridge > 0.0 and j < theta.shape[1] - 1:
                ridge += 0.5 * terms.ridge * theta[t, j] * theta[t, j]
                gradient[t, j] += terms.ridge * theta[t, j]
    return proximal + ridge


@compiled
def soften(leaves):  # type: ignore[no-untyped-def]
    """Mix a little of every class into every leaf, in place.

    c_kl <- (1 - s) c_kl + s / n_groups, with a small share s.
    """
    n_groups = leaves.shape[0]
    for k in range(n_groups):
        for leaf in range(leaves.shape[1]):
            leaves[k, leaf] = (1.0 - SMOOTHING) * leaves[k, leaf] + SMOOTHING / n_groups


@compiled
def expect(by_table, leaves):  # type: ignore[no-untyped-def]
    """An expectation step for the leaves, in place, from the derivative of the log-loss by them.

    c_kl becomes proportional to c_kl times the responsibility of leaf l for the rows of class k,
    which is minus the derivative of the log-loss by c_kl; then it is softened.
    """
    for leaf in range(leaves.shape[1]):
        total = 0.0
        for k in range(leaves.shape[0]):
            leaves[k, leaf] *= -by_table[k, leaf]
            total += leaves[k, leaf]
        for k in range(leaves.shape[0]):
            leaves[k, leaf] /= max(total, TINY_SHARE)
    soften(leaves)


class RemoteObjective:
    """The same for an engine that keeps its rows elsewhere: a tree goes out, and sums come back.

    Attributes
    ----------
    last : Sums
        The sums at the last point.
    """

    last: Sums

    def __init__(
        self,
        rows: RowEngine,
        table: FloatArray,
        leaf_values: FloatArray,
        outer: int,
        steepness: float,
        terms: AddedTerms,
        free: NDArray[np.bool_],
    ) -> None:
        self.rows, self.table, self.leaf_values = rows, table, leaf_values
        self.outer, self.steepness = outer, steepness
        self.terms, self.free = terms, free

    def __call__(self, theta: FloatArray, gradient: FloatArray, active: FloatArray) -> float:
        """The smooth part at ``theta``; derivative and multipliers go to their arrays."""
        sums = self.last = self._sums(theta, self.table, self.outer)
        if not np.isfinite(sums.value):
            raise ValueError(
                f"the engine {type(self.rows).__name__} gave {sums.value} as the sum over its "
                "rows, which must be a finite number."
            )
        value, by_split, terms = sums.value, sums.splits, self.terms
        if terms.rate_weight > 0:
            price = np.zeros_like(terms.group_totals)
            correct_mass = np.sum(sums.mass * self.leaf_values, axis=1)
            value += rate_terms(correct_mass, terms, active, price)
            prices = -price[:, None] * self.leaf_values
            if np.any(price > 0) and self.outer == IDENTITY:
                by_split = self._sums(theta, self.table + prices, IDENTITY).splits
            elif np.any(price > 0):
                by_split = by_split + self._sums(theta, prices, IDENTITY).splits
        return self._completed(value, by_split, theta, gradient)

    def _completed(
        self, value: float, by_split: FloatArray, theta: FloatArray, gradient: FloatArray
    ) -> float:
        """Add what does not depend on rows; the whole derivative goes to ``gradient``."""
        gradient[...] = np.where(self.free[:, None], by_split, 0.0)
        return float(value + other_terms(theta, self.terms, self.free, gradient))

    def hessian(self, theta: FloatArray, active: FloatArray) -> FloatArray:
        """All second derivatives of the smooth part, from an engine that has ``curvature``."""
        terms, hessian = self.terms, self._priced_curvature(theta, active)
        for k in np.flatnonzero(active > 0):
            slope = self._sums(theta, self._rate_table(k), IDENTITY).splits.ravel()
            hessian = hessian + terms.rate_weight * np.outer(slope, slope)
        ridged = np.full(theta.shape, terms.ridge)
        ridged[:, -1] = 0.0
        return hessian + np.diag(terms.proximal + ridged.ravel())

    def _priced_curvature(self, theta: FloatArray, active: FloatArray) -> FloatArray:
        """Second derivatives of the loss less the rates at the prices of their multipliers."""
        engine: Any = self.rows
        prices = -(active / self.terms.group_totals)[:, None] * self.leaf_values
        if self.outer == IDENTITY:
            return engine.curvature(theta, self.table + prices, IDENTITY, self.steepness)
        hessian = engine.curvature(theta, self.table, self.outer, self.steepness)
        if np.any(prices):
            hessian = hessian + engine.curvature(theta, prices, IDENTITY, self.steepness)
        return hessian

    def _rate_table(self, k: np.intp) -> FloatArray:
        """The table whose expectation is the rate with multiplier k."""
        table = np.zeros_like(self.leaf_values)
        table[k] = self.leaf_values[k] / self.terms.group_totals[k]
        return table

    def _sums(self, theta: FloatArray, table: FloatArray, outer: int) -> Sums:
        return self.rows.evaluate(theta, table, outer, self.steepness)
