"""Sparsity penalties: strength x surrogate x scope.

A surrogate phi is a concave, increasing scalar function on u >= 0:

    linear         u                      slope 1
    exponential    1 - exp(-sharpness u)  slope sharpness exp(-sharpness u)
    power          (u + offset)^q         slope q (u + offset)^(q - 1),    0 < q <= 1
    inverse power  -(u + offset)^-q       slope q (u + offset)^(-q - 1),   q > 0
    log            log(u + offset)        slope 1 / (u + offset)
    count          1 where u > 0, else 0  slope 0, and at u = 0 steeper than any loss

Its scope defines u, for weights of shape (n_features, n_branches):

    local   u_jt = |a_jt|             strength * sum_jt phi(u_jt)
    global  u_j  = max_t |a_jt|       strength * sum_j  phi(u_j)

The gradient is strength * phi'(u) sign(a), for a global penalty at the largest |a_jt| of a feature.
Each model of the paper is one line: L1 = linear/local, Linf = linear/global, L0loc =
exponential/local, L0glob = exponential/global, appr1 = power, appr2 = inverse power. The other
surrogates approximate the count; trees under the count are found by backward elimination
(solvers/elimination).

Under a global penalty features may be grouped: the columns of one variable, or groups of the user.
Then u_g = max of |a_jt| over the features j of group g and the branches t; with singleton groups
that is max_t |a_jt| of the paper. Formulas for rows of weights, one per feature, hold for groups if
a row holds all weights of a group: ``rows`` makes such rows, padded with zeros, which change
neither a maximum nor a prox. Groups may have prices, factors on their part of the global penalty.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled
from softsplit.support.messages import shown

IntArray = NDArray[np.int64]


class Groups:
    """Groups of features; ``of`` (n_features,) is the group of each feature, 0, 1, ....

    ``prices`` (n_feature_groups,), if given, are factors of the groups in the global penalty, which
    is then strength * sum_g price_g phi(u_g).
    """

    def __init__(self, of: NDArray[np.integer], prices: FloatArray | None = None) -> None:
        self.of = np.asarray(of, dtype=np.int64)
        self.prices = prices

    @cached_property
    def order(self) -> IntArray:
        """The features in the order of their groups."""
        return np.argsort(self.of, kind="stable").astype(np.int64)

    @cached_property
    def sizes(self) -> IntArray:
        """Number of features of each group."""
        return np.bincount(self.of).astype(np.int64)

    @cached_property
    def _slots(self) -> IntArray:
        """Position of each feature in the padded rows, one row for each group."""
        widest = int(self.sizes.max())
        first = np.cumsum(self.sizes) - self.sizes
        slots = np.empty(len(self.of), dtype=np.int64)
        within = np.arange(len(self.of)) - first[self.of[self.order]]
        slots[self.order] = self.of[self.order] * widest + within
        return slots

    def rows(self, weights: FloatArray) -> FloatArray:
        """Return weights (n_features, n_branches) as padded rows, one for each group."""
        n_feature_groups, widest, n_branches = (
            len(self.sizes),
            int(self.sizes.max()),
            weights.shape[1],
        )
        lines = np.zeros((n_feature_groups * widest, n_branches))
        lines[self._slots] = weights
        return lines.reshape(n_feature_groups, widest * n_branches)

    def weights(self, rows: FloatArray) -> FloatArray:
        """Return the weights of which ``rows`` was made (the inverse of ``rows``)."""
        widest = int(self.sizes.max())
        return rows.reshape(len(self.sizes) * widest, -1)[self._slots]

    def places(self, n_branches: int) -> tuple[IntArray, IntArray]:
        """Return the weights of all groups as positions in flat splits (n_branches,
        n_features + 1), group after group: where each group begins, and the positions."""
        n_features = len(self.of)
        branches = np.arange(n_branches, dtype=np.int64) * (n_features + 1)
        places = (self.order[:, None] + branches).ravel()
        begins = np.concatenate([[0], np.cumsum(self.sizes)]) * n_branches
        return begins.astype(np.int64), places


def of_single_features(n_features: int) -> Groups:
    """Return singleton groups."""
    return Groups(np.arange(n_features))


Scope = Literal["local", "global"]

LINEAR, EXPONENTIAL, POWER, INVERSE_POWER, LOG, COUNT = range(6)

STEEPEST = 1e150
"""Larger slopes overflow when they are squared."""

# Compile-time constants.

CLIFF = 1e100
"""Slope of the count at zero: larger than that of any loss, so that zeros stay zero."""

NEWTON_STEPS = 60
"""Most Newton steps to a root: the convergence is monotone and quadratic, so few are made."""


@compiled
def surrogate_terms(kind, first, second, u):  # type: ignore[no-untyped-def]
    """Return phi(u), phi'(u) and phi''(u) at u >= 0: the only place with these formulas.

    ``first`` is the sharpness or the exponent q, ``second`` the offset.
    """
    if kind == EXPONENTIAL:
        decay = np.exp(-first * u)
        return -np.expm1(-first * u), first * decay, -first * first * decay
    if kind == POWER:
        base, value = u + second, (u + second) ** first
        slope = first * value / base
        return value, slope, (first - 1.0) * slope / base
    if kind == INVERSE_POWER:
        base, value = u + second, -((u + second) ** -first)
        slope = -first * value / base
        return value, slope, -(first + 1.0) * slope / base
    if kind == LOG:
        base = u + second
        return np.log(base), 1.0 / base, -1.0 / (base * base)
    if kind == COUNT:
        return (1.0, 0.0, 0.0) if u > 0.0 else (0.0, CLIFF, 0.0)
    return u, 1.0, 0.0


@compiled
def _map_terms(kind, first, second, u):  # type: ignore[no-untyped-def]
    terms = np.empty((3, u.size))
    for i in range(u.size):
        terms[0, i], terms[1, i], terms[2, i] = surrogate_terms(kind, first, second, u[i])
    return terms


@dataclass(frozen=True)
class Surrogate:
    """A scalar function phi on u >= 0; compiled code takes its ``kind`` and two parameters."""

    name: str
    kind: int
    first: float = 0.0
    second: float = 0.0

    def value(self, u: FloatArray) -> FloatArray:
        """Return phi(u), in the shape of ``u``."""
        return self._terms(u)[0]

    def slope(self, u: FloatArray) -> FloatArray:
        """Return phi'(u); at u = 0 the right derivative."""
        return self._terms(u)[1]

    @cached_property
    def slope_at_zero(self) -> float:
        """phi'(0), the right derivative."""
        return float(self.slope(np.zeros(1))[0])

    def curvature(self, u: FloatArray) -> FloatArray:
        """Return phi''(u) <= 0."""
        return self._terms(u)[2]

    def _terms(self, u: FloatArray) -> FloatArray:
        flat = np.ascontiguousarray(u, dtype=np.float64).ravel()
        terms: FloatArray = _map_terms(self.kind, self.first, self.second, flat)
        return terms.reshape(3, *np.shape(u))


def linear() -> Surrogate:
    """phi(u) = u: the l1 norm (local) or the l-infinity norm (global)."""
    return Surrogate("linear", LINEAR)


def exponential(sharpness: float = 5.0) -> Surrogate:
    """phi(u) = 1 - exp(-sharpness u): the l0 surrogate of the paper."""
    _require(
        0 < sharpness < np.inf, f"sharpness must be positive and finite, got {shown(sharpness)}."
    )
    return Surrogate("exponential", EXPONENTIAL, float(sharpness))


def power(exponent: float = 0.5, offset: float = 1e-5) -> Surrogate:
    """phi(u) = (u + offset)^exponent: appr1 of the paper."""
    _require(0 < exponent <= 1, f"exponent of 'power' must be in (0, 1], got {shown(exponent)}.")
    _require(0 < offset < np.inf, f"offset must be positive and finite, got {shown(offset)}.")
    return Surrogate("power", POWER, float(exponent), float(offset))


def inverse_power(exponent: float = 0.5, offset: float = 1e-5) -> Surrogate:
    """phi(u) = -(u + offset)^-exponent: appr2 of the paper."""
    _require(
        0 < exponent < np.inf,
        f"exponent of 'inverse_power' must be positive and finite, got {shown(exponent)}.",
    )
    _require(0 < offset < np.inf, f"offset must be positive and finite, got {shown(offset)}.")
    _require(
        -exponent * np.log(offset) < 230,
        f"exponent {exponent} with offset {offset} makes 'inverse_power' overflow at zero; lower "
        "the exponent or raise the offset.",
    )
    return Surrogate("inverse_power", INVERSE_POWER, float(exponent), float(offset))


def logarithmic(offset: float = 1e-5) -> Surrogate:
    """phi(u) = log(u + offset)."""
    _require(0 < offset < np.inf, f"offset must be positive and finite, got {shown(offset)}.")
    return Surrogate("log", LOG, 0.0, float(offset))


def counting() -> Surrogate:
    """phi(u) = 1 where u > 0: the number of coefficients (local) or of features (global)."""
    return Surrogate("count", COUNT)


BY_NAME: dict[str, tuple[Callable[..., Surrogate], tuple[str, ...]]] = {
    "l1": (linear, ()),
    "l0": (exponential, ("sharpness",)),
    "power": (power, ("exponent", "offset")),
    "inverse_power": (inverse_power, ("exponent", "offset")),
    "log": (logarithmic, ("offset",)),
    "count": (counting, ()),
}
"""Surrogates by the names that users know, with the parameters of an estimator that they take."""


@dataclass(frozen=True)
class Penalty:
    """strength * sum phi(u), with u per coefficient (local), or per feature or group (global)."""

    strength: float
    surrogate: Surrogate
    scope: Scope
    groups: Groups | None = None

    def __post_init__(self) -> None:
        _require(
            np.isfinite(self.strength) and self.strength >= 0,
            f"{self.scope}_strength must be a finite number >= 0, got {shown(self.strength)}.",
        )
        if self.strength > 0:
            slope = self.surrogate.slope_at_zero
            _require(
                slope < STEEPEST and self.strength * slope < STEEPEST,
                f"{self.scope}_strength {self.strength:g} makes the penalty rise too steeply at "
                "zero to compute with; lower it or sharpness, or raise offset.",
            )

    @property
    def prices(self) -> FloatArray | None:
        """Factors of the groups; None if all are one."""
        return None if self.groups is None else self.groups.prices

    def magnitudes(self, weights: FloatArray) -> FloatArray:
        """Return u, (n_features, n_branches) if local, else (n_features,) or a row per group."""
        sizes = np.abs(weights)
        return sizes if self.scope == "local" else np.max(self.rows(sizes), axis=1)

    def rows(self, weights: FloatArray) -> FloatArray:
        """Return the weights with one row for each feature, or for each group."""
        return weights if self.groups is None else self.groups.rows(weights)

    def from_rows(self, rows: FloatArray) -> FloatArray:
        """Return the weights of which ``rows`` was made, shape (n_features, n_branches)."""
        return rows if self.groups is None else self.groups.weights(rows)

    def value(self, weights: FloatArray) -> float:
        if self.strength == 0:
            return 0.0
        u, prices = self.magnitudes(weights), self.prices
        if self.surrogate.kind == COUNT:
            counted = np.count_nonzero(u) if prices is None else prices[u > 0].sum()
            return self.strength * float(counted)
        each = self.surrogate.value(u)
        return self.strength * float(np.sum(each if prices is None else prices * each))

    def slope(self, weights: FloatArray) -> FloatArray:
        """Return strength * phi'(u), in the shape of ``magnitudes``."""
        u = self.magnitudes(weights)
        if not self.strength:
            return np.zeros_like(u)
        each = self.strength * self.surrogate.slope(u)
        return each if self.prices is None else self.prices * each

    def gradient(self, weights: FloatArray) -> FloatArray:
        """Return the gradient; where there is none, the subgradient that is 0 at zeros and that
        belongs to the first of tied maxima."""
        slopes = self.slope(weights)
        if self.scope == "local":
            return slopes * np.sign(weights)
        rows = self.rows(weights)
        lines, largest = np.arange(len(rows)), np.argmax(np.abs(rows), axis=1)
        gradient = np.zeros_like(rows)
        gradient[lines, largest] = slopes * np.sign(rows[lines, largest])
        return self.from_rows(gradient)


@dataclass(frozen=True)
class PenaltyPair:
    """A local and a global penalty together; either may have strength zero."""

    local: Penalty
    global_: Penalty

    def __post_init__(self) -> None:
        _require(
            self.local.scope == "local" and self.global_.scope == "global",
            "PenaltyPair takes a local and then a global penalty.",
        )

    @classmethod
    def of(
        cls, surrogate: Surrogate, local_strength: float = 0.0, global_strength: float = 0.0
    ) -> PenaltyPair:
        """Return the penalties with the same surrogate in both scopes."""
        return cls(
            Penalty(local_strength, surrogate, "local"),
            Penalty(global_strength, surrogate, "global"),
        )

    def with_strengths(self, local: float, global_: float) -> PenaltyPair:
        """Return the same penalties at other strengths."""
        return PenaltyPair(
            replace(self.local, strength=local), replace(self.global_, strength=global_)
        )

    def of_groups(self, groups: Groups | None) -> PenaltyPair:
        """Return the same penalties with groups of features."""
        return PenaltyPair(self.local, replace(self.global_, groups=groups))

    @property
    def strengths(self) -> tuple[float, float]:
        """Local and global."""
        return self.local.strength, self.global_.strength

    @property
    def counts(self) -> bool:
        """Whether a surrogate is the count, even at strength zero."""
        return COUNT in (self.local.surrogate.kind, self.global_.surrogate.kind)

    def value(self, weights: FloatArray) -> float:
        return self.local.value(weights) + self.global_.value(weights)

    def gradient(self, weights: FloatArray) -> FloatArray:
        return self.local.gradient(weights) + self.global_.gradient(weights)

    def prox(self, weights: FloatArray, step: float, bound: FloatArray | float = 1.0) -> FloatArray:
        """Return argmin over |a| <= bound of |a - weights|^2 / 2 + step * value(a), globally.

        ``bound`` is one number or one for each weight, on the side of its sign; zero where that
        side is not allowed (``Bounds.largest_sizes``).
        """
        sizes = self.global_.rows(np.abs(weights))
        rows = np.empty_like(sizes)
        if isinstance(bound, np.ndarray):
            sizes = self.global_.rows(np.where(bound > 0, np.abs(weights), 0.0))
            limits = self.global_.rows(bound)
        else:
            limits = np.broadcast_to(float(bound), sizes.shape)
        local, global_ = self.local.surrogate, self.global_.surrogate
        _prox_rows(
            np.ascontiguousarray(sizes),
            (local.kind, local.first, local.second, step * self.local.strength),
            (global_.kind, global_.first, global_.second, step * self.global_.strength),
            np.ones(len(sizes)) if self.global_.prices is None else self.global_.prices,
            np.ascontiguousarray(limits),
            rows,
        )
        shrunk = self.global_.from_rows(rows)
        return np.where(shrunk > 0, np.copysign(shrunk, weights), 0.0)

    def linearised_prox(
        self,
        weights: FloatArray,
        at: FloatArray,
        floor: FloatArray | float = 0.0,
        bound: FloatArray | float = 1.0,
    ) -> FloatArray:
        """Return the prox, step 1, of the convex majorant that touches the penalty at ``at``.

        The majorant is a weighted l1 plus a weighted l-infinity norm with the slopes at ``at``. A
        point is stationary exactly if it is a fixed point of this map after a gradient step. Up to
        ``floor``, one number for each feature or group, fixed branches already pay the global term.
        ``bound`` is as in ``prox``.
        """
        # Soft thresholding by the local slopes, then a cap per row by the global slope.
        soft = np.abs(weights)
        if self.local.strength > 0:
            soft = np.maximum(soft - self.local.slope(at), 0.0)
        if self.global_.strength == 0:
            return np.copysign(np.minimum(soft, bound), weights)
        rows = self.global_.rows(soft)
        if isinstance(bound, np.ndarray):
            limits = self.global_.rows(bound)
            cap = np.maximum(_limited_cap(rows, limits, self.global_.slope(at)), floor)
            capped = np.minimum(np.minimum(rows, limits), cap[:, None])
            return np.copysign(self.global_.from_rows(capped), weights)
        cap = _linf_cap(rows, self.global_.slope(at))
        limit = np.minimum(np.maximum(cap, floor), bound)
        capped = self.global_.from_rows(np.minimum(rows, limit[:, None]))
        return np.copysign(capped, weights)


def _linf_cap(rows: FloatArray, slopes: FloatArray) -> FloatArray:
    """Return per row the b >= 0 with sum_t (row_t - b)_+ = slope, or 0 if the row sum is smaller.

    The prox of slope * max is min(row, b), by Moreau's decomposition the residual of a projection
    onto an l1 ball (Duchi et al. 2008).
    """
    ordered = -np.sort(-rows, axis=1)
    counts = np.arange(1, rows.shape[1] + 1)
    candidates = (np.cumsum(ordered, axis=1) - slopes[:, None]) / counts
    # With the k largest entries above b, b = (their sum - slope) / k; the largest b is consistent.
    return np.maximum(np.max(candidates, axis=1), 0.0)


def _limited_cap(rows: FloatArray, limits: FloatArray, slopes: FloatArray) -> FloatArray:
    """Return per row the least b >= 0 with sum (row_t - b) <= slope over t with row_t, limit_t > b.

    An entry at its limit does not change with b and takes no part of the slope.
    """
    tops = np.minimum(rows, limits)
    order = np.argsort(-tops, axis=1, kind="stable")
    tops = np.take_along_axis(tops, order, axis=1)
    sums = np.cumsum(np.take_along_axis(rows, order, axis=1), axis=1)
    counts = np.arange(1, rows.shape[1] + 1)
    below = np.column_stack([tops[:, 1:], np.zeros(len(rows))])
    # Between the k-th and the next top the first k entries are above b: a root, or the next top.
    roots = np.maximum((sums - slopes[:, None]) / counts, below)
    caps = np.where(roots < tops, roots, np.inf)
    return np.minimum(np.min(caps, axis=1), tops[:, 0])


@compiled
def _largest_root(tied, total, local, global_, upper):  # type: ignore[no-untyped-def]
    """Return the largest b in (0, upper] with tied (b + local slope) + global slope = total, or -1.

    It is the stationarity condition of ``tied`` entries of sum ``total`` with common value b. The
    left side is convex in b (slopes of these concave surrogates are convex), so that Newton's
    method from the right of the root descends monotonically; a flat or falling tangent means that
    there is no root.
    """
    b = min(total / tied, upper)
    for _ in range(NEWTON_STEPS):
        # excess = left side - total, rise = its derivative in b.
        _, slope_l, curve_l = surrogate_terms(local[0], local[1], local[2], b)
        _, slope_g, curve_g = surrogate_terms(global_[0], global_[1], global_[2], b)
        excess = tied * (b + local[3] * slope_l) + global_[3] * slope_g - total
        if excess <= 0.0:
            return b
        rise = tied * (1.0 + local[3] * curve_l) + global_[3] * curve_g
        if rise <= 0.0 or excess / rise >= b:
            return -1.0
        b -= excess / rise
        if excess / rise <= 1e-16 * b:
            return b
    return b


@compiled
def _row_value(sizes, best, cap, local, global_, shrunk):  # type: ignore[no-untyped-def]
    """Return the prox objective of a row with maximum ``cap``; write the entries to ``shrunk``."""
    value_zero, _, _ = surrogate_terms(local[0], local[1], local[2], 0.0)
    total = global_[3] * surrogate_terms(global_[0], global_[1], global_[2], cap)[0]
    # Each entry: the better of 0 and its own optimum, capped.
    for t in range(sizes.size):
        candidate = min(best[t], cap)
        value, _, _ = surrogate_terms(local[0], local[1], local[2], candidate)
        at_candidate = 0.5 * (candidate - sizes[t]) ** 2 + local[3] * value
        at_zero = 0.5 * sizes[t] ** 2 + local[3] * value_zero
        shrunk[t] = candidate if at_candidate < at_zero else 0.0
        total += min(at_candidate, at_zero)
    return total


@compiled
def _prox_rows(sizes, local, both, prices, limits, shrunk):  # type: ignore[no-untyped-def]
    """Exact prox of both penalties on every row of ``sizes`` (n_features, n_branches).

    ``both`` is the global penalty at price 1.

    With b = max_t of the result, an entry is 0, or its own local optimum if that lies below b,
    or tied at b, or at its limit below b. Of the entries whose limit is above b the tied ones are
    those with the largest sizes, so the optimal b is a root of the stationarity condition with the
    k largest tied, or a limit, or a local optimum, or 0: all are tried.
    """
    none = (LINEAR, 0.0, 0.0, 0.0)
    n_branches = sizes.shape[1]
    for j in range(sizes.shape[0]):
        row, global_ = sizes[j], (both[0], both[1], both[2], prices[j] * both[3])
        # 1. The optimum of each entry under the local penalty alone.
        best = np.empty(n_branches)
        for t in range(n_branches):
            best[t] = max(_largest_root(1.0, row[t], local, none, limits[j, t]), 0.0)
        order = np.argsort(row, kind="mergesort")[::-1]
        trial = np.zeros(n_branches)
        lowest = _row_value(row, best, 0.0, local, global_, trial)
        shrunk[j, :] = trial
        # 2. Candidates for b between two neighbouring limits, with the k largest entries tied; only
        # entries with limits above the interval can be tied there.
        above = 0.0
        while True:
            upper = np.inf
            for t in range(n_branches):
                if limits[j, t] > above:
                    upper = min(upper, limits[j, t])
            # The interval is above .. upper; one more entry is tied at a time.
            total, tied = 0.0, 0.0
            for k in range(n_branches):
                if limits[j, order[k]] > above:
                    total += row[order[k]]
                    tied += 1.0
                    cap = _largest_root(tied, total, local, global_, upper)
                    if cap > 0.0:
                        value = _row_value(row, best, cap, local, global_, trial)
                        if value < lowest:
                            lowest = value
                            shrunk[j, :] = trial
            if upper == np.inf:
                break
            above = upper
        # 3. Candidates for b at the optimum of a single entry.
        for k in range(n_branches):
            if best[k] > 0.0:
                value = _row_value(row, best, best[k], local, global_, trial)
                if value < lowest:
                    lowest = value
                    shrunk[j, :] = trial


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)
