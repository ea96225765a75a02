"""The feasible set: box, leaf simplex, class coverage, minimum class rates; the leaf step.

    -1 <= a_jt, mu_t <= 1                                    box
    c_kl >= 0,  sum_k c_kl = 1              for each leaf     leaf simplex
    sum_l c_kl >= 1                         for each class    class coverage
    rate_k = sum_l R_kl c_kl >= rho_k       for each class    minimum class rate

where R_kl = M_kl / n_k is the share of class k that reaches leaf l. Given the routing, the
cost is linear in c: sum_kl G_kl c_kl with G = cost' M. The leaf step minimises it exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment, linprog
from scipy.sparse import coo_array, vstack

from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import TreeParameters

RATE_SLACK = 1e-9
"""A rate this little below its minimum counts as met: rounding, not a violation."""


@dataclass(frozen=True)
class Violation:
    """Largest violation of each family of constraints; zero where it holds."""

    box: float
    leaves: float
    coverage: float
    rates: float

    @property
    def largest(self) -> float:
        return float(np.max([self.box, self.leaves, self.coverage, self.rates]))


def violation(
    parameters: TreeParameters, rates: FloatArray, minimum_rates: FloatArray
) -> Violation:
    """How far a tree with the given class rates is from feasible."""
    c = parameters.leaf_classes
    return Violation(
        box=_worst(np.abs(parameters.weights) - 1, np.abs(parameters.thresholds) - 1),
        leaves=_worst(np.abs(c.sum(axis=0) - 1), -c),
        coverage=_worst(1 - c.sum(axis=1)),
        rates=_worst(minimum_rates - rates),
    )


def _worst(*excesses: FloatArray) -> float:
    """Largest positive excess, zero if there is none; NaN if any entry is (unlike ``max``)."""
    worst = 0.0
    for excess in excesses:
        largest = float(excess.max())
        if largest > worst or np.isnan(largest):
            worst = largest
    return worst


class InfeasibleLeafStep(ValueError):
    """No leaf assignment meets the minimum class rates for this routing."""


def leaf_step(
    costs: FloatArray,
    shares: FloatArray,
    minimum_rates: FloatArray,
    free: NDArray[np.bool_] | None = None,
    current: FloatArray | None = None,
) -> FloatArray:
    """Cheapest feasible leaf classes for a fixed routing.

    Parameters
    ----------
    costs : array (n_classes, n_leaves)
        G_kl: cost of assigning leaf l wholly to class k.
    shares : array (n_classes, n_leaves)
        R_kl: share of class k that reaches leaf l.
    minimum_rates : array (n_classes,)
    free : bool array (n_leaves,), optional
        Leaves that may change; the others keep their column of ``current``.
    current : array (n_classes, n_leaves), optional

    Raises
    ------
    InfeasibleLeafStep
        If the rates cannot be met by the free leaves. Coverage takes a whole leaf per class, so
        this may happen although the rates add up to less than one.
    """
    if free is None or bool(np.all(free)):
        assigned = cheapest_assignment(costs)
        met = np.sum(shares * assigned, axis=1) >= minimum_rates - RATE_SLACK
        return assigned if np.all(met) else _leaf_program(costs, shares, minimum_rates, None, None)
    if current is None:
        raise ValueError("leaf_step needs the current leaf classes when some leaves are fixed.")
    return _leaf_program(costs, shares, minimum_rates, free, current)


def cheapest_assignment(costs: FloatArray) -> FloatArray:
    """Minimum cost with every class on a leaf: best class per leaf, then least regret."""
    n_classes, n_leaves = costs.shape
    chosen = costs.argmin(axis=0)
    if len(set(chosen.tolist())) < n_classes:
        # Each class claims one leaf of its own; a leaf pays what it loses against its best.
        classes, leaves = linear_sum_assignment(costs - np.min(costs, axis=0))
        chosen[leaves] = classes
    assigned = np.zeros((n_classes, n_leaves))
    assigned[chosen, np.arange(n_leaves)] = 1.0
    return assigned


def _leaf_program(
    costs: FloatArray,
    shares: FloatArray,
    minimum_rates: FloatArray,
    free: NDArray[np.bool_] | None,
    current: FloatArray | None,
) -> FloatArray:
    """The leaf step as a linear program over the free leaves (HiGHS)."""
    n_classes, n_leaves = costs.shape
    result = np.zeros_like(costs) if current is None else np.array(current, dtype=float)
    index = np.arange(n_leaves) if free is None else np.flatnonzero(free)
    if len(index) == 0:
        if np.any(np.sum(shares * result, axis=1) < minimum_rates - RATE_SLACK):
            raise InfeasibleLeafStep("the fixed leaves do not meet the minimum class rates.")
        return result
    fixed = result.copy()
    fixed[:, index] = 0.0
    rows, columns = _program_layout(n_classes, len(index))
    one_per_leaf = coo_array((np.ones(len(rows)), (columns, np.arange(len(rows)))))
    coverage = coo_array((-np.ones(len(rows)), (rows, np.arange(len(rows)))))
    rates = coo_array((-shares[:, index].ravel(), (rows, np.arange(len(rows)))))
    scale = max(float(np.max(np.abs(costs[:, index]))), 1e-300)
    solved = linprog(
        costs[:, index].ravel() / scale,
        A_ub=vstack([coverage, rates]).tocsr(),
        b_ub=np.concatenate(
            [fixed.sum(axis=1) - 1, np.sum(shares * fixed, axis=1) - minimum_rates]
        ),
        A_eq=one_per_leaf.tocsr(),
        b_eq=np.ones(len(index)),
        bounds=(0, 1),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if solved.status != 0:
        raise InfeasibleLeafStep(
            "no leaf assignment meets the minimum class rates for this routing."
        )
    columns_found = np.clip(solved.x.reshape(n_classes, len(index)), 0.0, 1.0)
    result[:, index] = columns_found / columns_found.sum(axis=0)
    return result


def _program_layout(n_classes: int, n_leaves: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Class and leaf index of every variable of the leaf program, in row-major order."""
    classes, leaves = np.divmod(np.arange(n_classes * n_leaves), n_leaves)
    return classes, leaves
