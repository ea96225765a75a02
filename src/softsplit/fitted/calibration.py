"""Probabilities of a tree made right on new rows by one number, the temperature.

With c_kl the share of class k in leaf l, a tree of temperature T has the shares

    c_kl(T) = c_kl^(1 / T) / sum_j c_jl^(1 / T)

in its leaves (Guo, Pleiss, Sun and Weinberger 2017 have it for the last layer of a network), and T
is that of the least log-loss on the new rows. The order of the classes in a leaf stays, questions
stay, and ``predict`` stays: the class of a walk is that of its leaf, and a tree that decides by the
mixture keeps its votes. What reads shares of leaves (files, exports, reports) needs to know
nothing of T.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from softsplit.fitted.conformal import HeldOutScores
from softsplit.fitted.model import TreeModel
from softsplit.support.arrays import FloatArray

HOTTEST = 20.0
"""T is between 1 / hottest and hottest: beyond, shares are even or 0 and 1."""

SMALLEST_SHARE = 1e-12
"""Smaller shares and probabilities count as this one."""


def tempered(shares: FloatArray, temperature: float) -> FloatArray:
    """c_kl(T), (n_classes, n_leaves)."""
    logs = np.log(np.maximum(shares, SMALLEST_SHARE)) / temperature
    weights = np.exp(logs - logs.max(axis=0))
    return np.asarray(weights / weights.sum(axis=0))


def best_temperature(
    reach: FloatArray, shares: FloatArray, labels: NDArray[np.int64], weight: FloatArray
) -> float:
    """T of the least log-loss; ``reach`` (n_rows, n_leaves) are the probabilities of leaves."""

    def loss(log_t: float) -> float:
        mixed = reach @ tempered(shares, float(np.exp(log_t))).T
        log_proba = np.log(np.maximum(mixed[np.arange(len(labels)), labels], SMALLEST_SHARE))
        return -float(weight @ log_proba)

    end = np.log(HOTTEST)
    return float(np.exp(minimize_scalar(loss, bounds=(-end, end), method="bounded").x))


def calibrated(
    model: TreeModel, X: FloatArray, labels: NDArray[np.int64], weight: FloatArray
) -> TreeModel:
    """The tree with the temperature of new rows, which are its held-out rows from now on."""
    if model.walk is None and model.distributions is None and model.call_costs is not None:
        raise ValueError(
            "a tree that decides by the mixture under a cost matrix cannot be calibrated: its "
            "classes would change; fit it with decision='walk'."
        )
    reach = model.leaf_proba(X)
    shares = tempered(model.leaf_shares, best_temperature(reach, model.leaf_shares, labels, weight))
    if model.walk is None:
        model = replace(model, distributions=shares)
    else:
        model = replace(model, parameters=replace(model.parameters, leaf_values=shares))
    return replace(model, held_out=HeldOutScores.of(model.predict_proba(X), labels, weight))
