"""Monotone effects in a training problem: signs of slopes, and an order of the leaves.

A mixture P_k = sum_l c_kl P_l has, by a feature x_j with weights w_jt,

    d P(level >= i) / d x_j = sum_t w_jt g_t R_t (V_left - V_right),     g_t, R_t >= 0

with V = P(level >= i) of what the leaves below say. So it never falls for any row if at every
branch t with w_jt != 0

    w_jt <= 0     and     V of every leaf on the left  <=  V of every leaf on the right

(for an effect of sign -, w_jt >= 0). Which side is low is a convention: swapping the sides of a
branch changes nothing, so all branches have it on the left. A number with hinges has one slope
between each two knots, the cumulative sums of its weights in original units, and the sign is that
of all slopes.

**Chart.** Trees that hold this are the image of a box, in which any descent with bounds works:

    slopes            y_i = sum_{j <= i} a_j / span_j                            sign of y_i fixed
    leaves            continuation log-odds a_il = logit P(level >= i | level >= i - 1), and the
                      distribution of the classes within a level, which is free
    chain of leaves   l_1, ..., l_n from left to right below a topmost branch that uses a monotone
                      feature: a_i,l_1 free, a_i,l_{m+1} - a_i,l_m >= 0

Ordered continuation log-odds (hazard rate order) imply ordered P(level >= i), which is
first-order stochastic dominance. For two levels both are the same, and for trees of two levels of
branches a chain is no stronger than what is needed: leaves that need no order may be swapped.

Leaves that no row reaches (below a branch without weights that is shut) are in no chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from softsplit.problem.bounds import Bounds
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import Topology, TreeParameters

SHUT = 30.0
"""Log-odds from which on a branch without weights sends all rows to one side."""

REFLECTED = 0.1
"""A slope of a start that has the wrong sign keeps this part of its size with the right one: it
may grow again, where a zero would leave the support."""

IN_ORDER = 1e-9
"""Violations of the order up to this are rounding."""

LARGEST = 30.0
"""Continuation log-odds are kept within this: a probability of 1e-13 is as good as none."""


@dataclass(frozen=True, eq=False)
class MonotoneOrder:
    """The effects of a problem.

    Attributes
    ----------
    columns : tuple of int arrays
        Features of each monotone variable: its value, then its hinges by ascending knots.
    signs : tuple of int
        1 or -1 for each variable.
    units : array (n_features,)
        What a weight is divided by to be a slope in original units, up to a common factor.
    levels : int array (n_groups,)
        Level of each class.
    """

    columns: tuple[NDArray[np.intp], ...]
    signs: tuple[int, ...]
    units: FloatArray
    levels: NDArray[np.intp]

    @cached_property
    def sign_of(self) -> FloatArray:
        """Sign of the effect of each feature, 0 where it is free."""
        signs = np.zeros(len(self.units))
        for columns, sign in zip(self.columns, self.signs, strict=True):
            signs[columns] = sign
        return signs

    def restrict(self, features: NDArray[np.intp]) -> MonotoneOrder:
        """Return the order for some of the features, numbered anew."""
        place = np.full(len(self.units), -1)
        place[features] = np.arange(len(features))
        pairs = [
            (kept, sign)
            for columns, sign in zip(self.columns, self.signs, strict=True)
            if len(kept := place[columns][place[columns] >= 0])
        ]
        return MonotoneOrder(
            tuple(kept for kept, _ in pairs),
            tuple(sign for _, sign in pairs),
            self.units[features],
            self.levels,
        )

    def bounds(self, within: Bounds, strict: bool) -> Bounds:
        """Return bounds in which the weight of every monotone value has its sign.

        Hinges have none, but with ``strict``, where a solver knows no slopes: an effect then only
        becomes steeper.
        """
        low, high = np.array(within.low), np.array(within.high)
        for columns, sign in zip(self.columns, self.signs, strict=True):
            held = columns if strict else columns[:1]
            (high if sign > 0 else low)[held] = 0.0
        return replace(within, low=low, high=high)

    def uses(self, weights: FloatArray) -> NDArray[np.bool_]:
        """Whether each branch of weights (n_features, n_branches) uses a monotone feature."""
        return np.any(weights[self.sign_of != 0] != 0, axis=0)

    def chart(self, used: NDArray[np.bool_], shut: NDArray[np.intp]) -> OrderedChart:
        """Return the chart of trees with these weights in use, (n_branches, n_features).

        ``shut`` is 1 for a branch that sends all rows to the left, -1 to the right, 0 for others.
        """
        return OrderedChart(self, used, shut)

    def chart_of(self, tree: TreeParameters, steepness: float) -> OrderedChart:
        """Return the chart around ``tree``."""
        return self.chart(tree.weights.T != 0, shut_sides(tree, steepness))

    def admitted(self, tree: TreeParameters, steepness: float) -> TreeParameters:
        """Return a start within the order: low levels on the left, signs by reflection.

        A tree that is in order stays as it is.
        """
        if self.violation(tree, steepness) <= IN_ORDER:
            return tree
        # 1. Low levels on the left; 2. slopes of the wrong sign are reflected, and smaller.
        tree = self._turned(tree)
        chart = self.chart_of(tree, steepness)
        weights = chart.slopes_of(tree.weights.T)
        wrong = chart.sign * weights < 0
        weights = chart.weights_of(np.where(wrong, -REFLECTED * weights, weights)).T + 0.0
        # scores at the middle of the scaled features stay
        moved = 0.5 * (weights - tree.weights).sum(axis=0) / len(weights)
        # 3. Leaves in order.
        leaves = chart.ordered(np.log(np.maximum(tree.leaf_values, 1e-12)))
        return TreeParameters(weights, tree.thresholds + moved, np.exp(leaves))

    def _turned(self, tree: TreeParameters) -> TreeParameters:
        """Swap the sides of branches whose left has the higher mean level."""
        n_branches = len(tree.thresholds)
        mean = np.concatenate([np.zeros(n_branches), self.levels @ tree.leaf_values])
        for t in reversed(range(n_branches)):
            mean[t] = 0.5 * (mean[2 * t + 1] + mean[2 * t + 2])
        order, flips = list(range(2 * n_branches + 1)), np.ones(n_branches)
        for t in range(n_branches):
            left, right = 2 * order[t] + 1, 2 * order[t] + 2
            if mean[left] > mean[right]:
                flips[t], left, right = -1.0, right, left
            order[2 * t + 1], order[2 * t + 2] = left, right
        branches, leaves = order[:n_branches], [node - n_branches for node in order[n_branches:]]
        return TreeParameters(
            tree.weights[:, branches] * flips + 0.0,
            tree.thresholds[branches] * flips + 0.0,
            tree.leaf_values[:, leaves],
        )

    def violation(self, tree: TreeParameters, steepness: float) -> float:
        """Return by how much a slope has the wrong sign, or two leaves the wrong order."""
        chart = self.chart_of(tree, steepness)
        slopes = chart.slopes_of(tree.weights.T)
        worst = float(np.max(-chart.sign * slopes, initial=0.0))
        levels = np.arange(1, self.levels.max() + 1)
        share = (self.levels >= levels[:, None]).astype(float) @ tree.leaf_values
        for chain in chart.chains:
            worst = max(worst, float(np.max(-np.diff(share[:, chain], axis=1), initial=0.0)))
        return worst


def shut_sides(tree: TreeParameters, steepness: float) -> NDArray[np.intp]:
    """For each branch 1 if it sends all rows to the left, -1 to the right, 0 otherwise."""
    score = -steepness * tree.thresholds
    idle = ~np.any(tree.weights != 0, axis=0)
    return np.where(idle & (np.abs(score) >= SHUT), np.sign(score), 0).astype(np.intp)


def chains_of(uses: NDArray[np.bool_], shut: NDArray[np.intp]) -> list[list[int]]:
    """Leaves that are ordered, from left to right; single ones where nothing orders them."""
    n_branches = len(uses)
    topology = Topology.with_branches(n_branches)
    dead = np.zeros(2 * n_branches + 1, dtype=bool)
    for t in range(n_branches):
        for child, side in ((2 * t + 1, -1), (2 * t + 2, 1)):
            dead[child] = dead[t] or shut[t] == side
    chains: list[list[int]] = []

    def walk(node: int) -> None:
        if node >= n_branches or uses[node]:
            below = list(topology.leaves_below(node))
            alive = [leaf for leaf in below if not dead[n_branches + leaf]]
            chains.extend([[leaf] for leaf in below if dead[n_branches + leaf]])
            if alive:
                chains.append(alive)
        else:
            walk(2 * node + 1)
            walk(2 * node + 2)

    walk(0)
    return chains


class OrderedChart:
    """Coordinates in which a tree that holds a ``MonotoneOrder`` has bounds only.

    Attributes
    ----------
    sign : array (n_branches, n_features)
        Sign that the coordinate of each weight must have, 0 where it is free.
    chains : list of lists of int
        Leaves in order.
    """

    def __init__(
        self, order: MonotoneOrder, used: NDArray[np.bool_], shut: NDArray[np.intp]
    ) -> None:
        self.levels = order.levels
        self.n_steps = int(order.levels.max())
        self.sign = np.where(used, -order.sign_of, 0.0)
        self.chains = chains_of(np.any(used & (order.sign_of != 0), axis=1), shut)
        self._bent: list[tuple[int, NDArray[np.intp], FloatArray]] = []
        for columns in order.columns:
            if len(columns) == 1:
                continue
            for t in range(len(used)):
                bent = columns[used[t, columns]]
                if len(bent) > 1:
                    self._bent.append((t, bent, order.units[bent] / order.units[bent[0]]))
        self._members = [np.flatnonzero(self.levels == i) for i in range(self.n_steps + 1)]

    # --- weights ----------------------------------------------------------------------------------

    def slopes_of(self, weights: FloatArray) -> FloatArray:
        """Coordinates of weights (n_branches, n_features): slopes where a variable bends."""
        slopes = np.array(weights)
        for t, columns, ratio in self._bent:
            slopes[t, columns] = np.cumsum(weights[t, columns] / ratio)
        return slopes

    def weights_of(self, slopes: FloatArray) -> FloatArray:
        """Weights of these coordinates."""
        weights = np.array(slopes)
        for t, columns, ratio in self._bent:
            weights[t, columns] = np.diff(slopes[t, columns], prepend=0.0) * ratio
        return weights

    def by_slopes(self, by_weights: FloatArray) -> FloatArray:
        """Derivatives by the coordinates from those by weights (..., n_branches, n_features)."""
        derivatives = np.array(by_weights)
        for t, columns, ratio in self._bent:
            scaled = by_weights[..., t, columns] * ratio
            derivatives[..., t, columns] = scaled
            derivatives[..., t, columns[:-1]] -= scaled[..., 1:]
        return derivatives

    # --- leaves -----------------------------------------------------------------------------------

    def steps_of(self, log_shares: FloatArray) -> FloatArray:
        """Coordinates of leaves, (n_steps + n_groups, n_leaves), nearest to log-odds of classes.

        Continuation log-odds that are not in order become so (isotonic regression); in a chain all
        but the first are differences.
        """
        from sklearn.isotonic import isotonic_regression  # here: compiling needs no scikit-learn

        # 1. log P(level = i), and from the highest level down the log-odds of level >= i against
        # level = i - 1.
        total = _log_sum(log_shares, range(len(log_shares)))
        held = [_log_sum(log_shares, members) - total for members in self._members]
        steps = np.empty((self.n_steps + len(log_shares), log_shares.shape[1]))
        above = held[-1]
        for i in range(self.n_steps, 0, -1):
            steps[i - 1] = np.clip(above - held[i - 1], -LARGEST, LARGEST)
            above = np.logaddexp(above, held[i - 1])
        # 2. Within a level the classes keep their log-odds.
        steps[self.n_steps :] = log_shares
        # 3. Along a chain the odds rise; all but the first leaf hold the difference.
        for chain in self.chains:
            if len(chain) > 1:
                for i in range(self.n_steps):
                    rising = isotonic_regression(steps[i, chain])
                    steps[i, chain] = np.diff(rising, prepend=0.0)
        return steps

    def log_shares_of(self, steps: FloatArray) -> FloatArray:
        """Logarithms of the class shares of leaves with these coordinates."""
        odds = self._odds(steps)
        log_shares = np.empty((len(self.levels), steps.shape[1]))
        reach = np.zeros(steps.shape[1])  # log P(level >= i)
        for i, members in enumerate(self._members):
            # log P(level = i) = log P(level >= i) - log(1 + odds of a higher level)
            here = reach - (np.logaddexp(0.0, odds[i]) if i < self.n_steps else 0.0)
            within = steps[self.n_steps :][members]
            log_shares[members] = here + within - _log_sum(within, range(len(members)))
            if i < self.n_steps:
                reach = reach - np.logaddexp(0.0, -odds[i])
        return log_shares

    def by_steps(self, steps: FloatArray, by_log_odds: FloatArray) -> FloatArray:
        """Derivatives by the coordinates from those by the log-odds of the classes.

        ``by_log_odds`` may be several, (..., n_groups, n_leaves).
        """
        odds = self._odds(steps)
        derivatives = np.zeros((*by_log_odds.shape[:-2], *steps.shape))
        masses = []
        for members in self._members:
            own, within = by_log_odds[..., members, :], steps[self.n_steps :][members]
            masses.append(own.sum(axis=-2))
            if len(members) > 1:
                inner = np.exp(within - _log_sum(within, range(len(members))))
                derivatives[..., self.n_steps + members, :] = own - inner * masses[-1][..., None, :]
        # From the highest level down, p = P(level >= i | level >= i - 1): (1 - p) of what lies
        # above, less p of what lies at level i - 1.
        above = np.zeros_like(masses[-1])
        for i in reversed(range(self.n_steps)):
            above = above + masses[i + 1]
            up = 1.0 / (1.0 + np.exp(-np.clip(odds[i], -700.0, 700.0)))
            derivatives[..., i, :] = (1.0 - up) * above - up * masses[i]
        # Coordinates of a chain are differences: a derivative sums those of all leaves after it.
        for chain in self.chains:
            if len(chain) > 1:
                back = derivatives[..., : self.n_steps, chain]
                derivatives[..., : self.n_steps, chain] = np.cumsum(back[..., ::-1], axis=-1)[
                    ..., ::-1
                ]
        return derivatives

    def ordered(self, log_shares: FloatArray) -> FloatArray:
        """Logarithms of class shares in order, near those that are given."""
        return self.log_shares_of(self.steps_of(log_shares))

    @cached_property
    def differences(self) -> NDArray[np.bool_]:
        """Which leaves have differences for coordinates, (n_leaves,); these are not negative."""
        mask = np.zeros(sum(map(len, self.chains)), dtype=bool)
        for chain in self.chains:
            mask[chain[1:]] = True
        return mask

    def _odds(self, steps: FloatArray) -> FloatArray:
        odds = steps[: self.n_steps].copy()
        for chain in self.chains:
            if len(chain) > 1:
                odds[:, chain] = np.cumsum(odds[:, chain], axis=1)
        return odds

    # --- both -------------------------------------------------------------------------------------

    def residual(
        self,
        weights: FloatArray,
        by_weights: FloatArray,
        leaf_values: FloatArray,
        by_leaves: FloatArray,
    ) -> tuple[float, float]:
        """Largest changes of a projected gradient step: of slopes in use, and of leaves.

        ``by_leaves`` are derivatives by the class shares; weights are (n_branches, n_features).
        """
        slopes, by_slopes = self.slopes_of(weights), self.by_slopes(by_weights)
        stepped = slopes - by_slopes
        stepped = np.where(self.sign * stepped < 0, 0.0, stepped)
        moved = np.where(weights != 0, np.abs(slopes - stepped), 0.0)
        steps = self.steps_of(np.log(np.maximum(leaf_values, 1e-300)))
        mean = np.sum(leaf_values * by_leaves, axis=0)
        gradient = self.by_steps(steps, leaf_values * (by_leaves - mean))
        after = steps - gradient
        held = after[: self.n_steps, self.differences]
        after[: self.n_steps, self.differences] = np.maximum(held, 0.0)
        return float(np.max(moved, initial=0.0)), float(np.max(np.abs(after - steps), initial=0.0))


def _log_sum(values: FloatArray, rows: Sequence[int] | NDArray[np.intp]) -> FloatArray:
    """log sum exp of some rows."""
    chosen = values[list(rows)]
    top = chosen.max(axis=0)
    return top + np.log(np.exp(chosen - top).sum(axis=0))
