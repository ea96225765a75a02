"""Class shares of leaves, the classes that are predicted from them, and how both are reconciled.

With M_kl the weight of the training rows of class k that reach leaf l and n_k that of all rows of
class k, a leaf of a tree that was trained for costs has the class shares

    c_kl = (M_kl + pi_k s) / (sum_k M_kl + s),      pi_k = n_k / sum_k n_k

as if every leaf had seen s further rows with the class frequencies of all rows. No share is zero,
and a leaf that no row reaches has the shares pi. Class weights and costs take no part: shares
estimate what a row is, not what to predict. Leaves below a branch that all have the same class are
pooled: costs gave that branch nothing to decide, so it decides nothing here either.

Where gates are not shut, a row is in many leaves at once, and shares of masses would be mixed
twice: once when leaves are filled, once when they are read. So a few expectation steps (of the EM
algorithm, Dempster, Laird and Rubin 1977) follow, in which M_kl counts what leaf l is responsible
for, sum_i weight_i P_il c_kl / sum_m P_im c_km over the rows of class k. Each step raises the
likelihood of the rows; where gates are shut, they change nothing.

Between two leaves, the class with the larger reach is predicted, while the mixture of shares may
slightly favour the other. Where every leaf predicts the largest of its shares, probabilities are
made *argmax-consistent*, as in scikit-learn: classes above the predicted one are lowered to it.
Where costs or class rates made a leaf predict another class than its largest share, mixtures stay
as they are. A leaf with less than one row has no evidence against its class, and no share above
that of its class.

Predicting k for a row of class y costs cost[y, k]. With class probabilities q, the prediction k
has the expected cost

    sum_y q_y cost[y, k],

which is least where the votes sum_y q_y gain[y, k] are largest; gain[y, k] is by how much k is
cheaper than the dearest prediction for y. Votes are linear in q, so leaves have votes as they have
shares.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray

EXPECTATION_STEPS = 3
"""More than these three gain nothing on held-out rows."""

BELOW = 1.0 - 1e-9
"""A class that was lowered to the predicted one stays below it by this factor."""

ALIKE = 0.005
"""Leaves whose classes differ by no more carry the same: solvers may end near a class only."""


def smoothed_shares(
    mass: FloatArray, leaf_values: FloatArray, class_totals: FloatArray, pseudo: float
) -> FloatArray:
    """Class shares of every leaf, (n_classes, n_leaves), from the masses it is responsible for.

    Parameters
    ----------
    mass, leaf_values : array of shape (n_classes, n_leaves)
    class_totals : array of shape (n_classes,)
    pseudo : float
        s, in the unit of the masses.
    """
    mass = _pooled(mass, leaf_values)
    prior = class_totals / class_totals.sum()
    shares = (mass + pseudo * prior[:, None]) / (mass.sum(axis=0) + pseudo)
    level = consistent_with(shares.T, np.argmax(leaf_values, axis=0)).T
    return np.where(mass.sum(axis=0) < pseudo, level, shares)


def _pooled(mass: FloatArray, leaf_values: FloatArray) -> FloatArray:
    """For leaves that count as one, the mass of all of them; from pairs of leaves upwards."""
    n_classes, n_leaves = mass.shape
    pooled, width = np.array(mass, order="C"), 2
    while width <= n_leaves:
        below = leaf_values.reshape(n_classes, -1, width)
        one = np.all(np.abs(below - below[:, :, :1]) <= ALIKE, axis=(0, 2))
        sums = mass.reshape(n_classes, -1, width).sum(axis=2, keepdims=True)
        pooled.reshape(n_classes, -1, width)[:, one] = sums[:, one]
        width *= 2
    return pooled


def consistency_bound(shares: FloatArray, predicted: NDArray[np.intp]) -> float:
    """A bound: where the largest probability of a row exceeds it, that class is predicted.

    Otherwise the reach of leaves that predict another class is at least one half.
    """
    own = np.arange(len(shares))[:, None] == predicted
    inside, outside = shares[own].max(), shares[~own].max()
    return float(max(inside, outside) + outside) / 2


def consistent_with(
    proba: FloatArray, predicted: NDArray[np.intp], factors: FloatArray | None = None
) -> FloatArray:
    """Probabilities (n_rows, n_classes) in which the predicted class has the largest f_k p_k.

    Classes above it are lowered to it. ``factors`` (n_classes,) are all 1 if not given.
    """
    rows = np.arange(len(proba))
    weighed = proba if factors is None else proba * factors
    own = weighed[rows, predicted]
    # A predicted class of probability 0 would leave nothing to share.
    own = np.maximum(own, np.finfo(float).tiny)
    lowered = np.minimum(weighed, BELOW * own[:, None])
    lowered[rows, predicted] = own
    if factors is not None:
        lowered = lowered / factors
    return lowered / lowered.sum(axis=1, keepdims=True)


def decision_gains(costs: FloatArray) -> FloatArray:
    """gain[y, k], numbers from 0 to 1; for equal costs of all errors the identity.

    A class that costs the same whatever is predicted has gain 1 throughout: no decision depends on
    it, and a row that is surely of this class still has votes.
    """
    gains = costs.max(axis=1, keepdims=True) - costs
    largest = gains.max()
    gains = gains / largest if largest > 0 else gains
    return np.where(np.any(gains > 0, axis=1, keepdims=True), gains, 1.0)


def cost_factors(costs: FloatArray) -> FloatArray | None:
    """f with f_y for every error of class y; None where errors of a class differ in cost."""
    costs = costs - np.diag(costs)[:, None]
    worst: FloatArray = costs.max(axis=1)
    even = np.allclose(costs, worst[:, None] * (1 - np.eye(len(costs))), rtol=1e-12, atol=0)
    return worst if even and np.all(worst > 0) else None
