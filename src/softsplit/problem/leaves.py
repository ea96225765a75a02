"""Leaf rules: which leaves are feasible, and which are optimal for a fixed routing.

Weights and thresholds lie within bounds (bounds.py), and all leaves on a simplex:

    low_jt <= a_jt <= high_jt,  low_t <= mu_t <= high_t      bounds
    c_kl >= 0,  sum_k c_kl = 1              for each leaf     leaf simplex
    rate_k = sum_l R_kl c_kl >= rho_k       for each class    minimum class rate

where R_kl = M_kl / n_k is the share of class k that reaches leaf l. The paper adds

    sum_l c_kl >= 1                         for each class    class coverage

A *leaf rule* belongs to a loss. With G = dE/dc, shape (n_groups, n_leaves), for a fixed routing:

    ClassAssignment      the expected cost sum_kl G_kl c_kl is linear in c and minimal where every
                         leaf has one class: an assignment problem (Kuhn 1955), or a linear program
                         under minimum rates
    ClassDistributions   the log-loss is lowered by EM steps (Dempster, Laird and Rubin 1977): c_kl
                         proportional to the responsibility -c_kl G_kl of leaf l for class k
    CountedDistributions the same with pseudo-counts s_k in every leaf, a Dirichlet prior
                         - sum_kl s_k log c_kl: c_kl proportional to s_k - c_kl G_kl
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from softsplit.problem.bounds import Bounds
from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled
from softsplit.tree.parameters import Topology, TreeParameters

PROGRAM_TOLERANCES = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
"""Of the linear programs of leaf steps: a tenth of ``RATE_SLACK``."""

RATE_SLACK = 1e-9
"""A rate below its minimum by at most this counts as met: a rounding error."""


@dataclass(frozen=True)
class Violation:
    """Largest violation of each family of constraints; zero where it holds."""

    box: float
    leaves: float
    coverage: float
    rates: float

    @property
    def largest(self) -> float:
        return _worst(self.box, self.leaves, self.coverage, self.rates)


class LeafRule(Protocol):
    """The feasible leaves of a loss, and the optimal ones for a fixed routing."""

    @property
    def exact(self) -> bool:
        """Whether ``step`` returns the optimal leaves of a loss that is linear in them."""

    def check(self, topology: Topology, n_groups: int) -> None:
        """Raise ``ValueError`` if a tree of this topology has no feasible leaves."""

    def coverage(self, leaf_values: FloatArray) -> float:
        """Return the largest violation of class coverage."""

    def without_features(self, shares: FloatArray) -> FloatArray | None:
        """Return the common leaf of a tree without features; None if its leaves differ.

        ``shares`` are the class shares of the training rows.
        """

    def step(
        self,
        gradient: FloatArray,
        shares: FloatArray,
        minimum_rates: FloatArray | None,
        free: NDArray[np.bool_] | None = None,
        current: FloatArray | None = None,
    ) -> FloatArray:
        """Return better leaves for a fixed routing, shape (n_groups, n_leaves).

        Parameters
        ----------
        gradient : array (n_groups, n_leaves)
            G_kl = dE / dc_kl.
        shares : array (n_groups, n_leaves)
            R_kl: share of class k that reaches leaf l; ignored without minimum rates.
        minimum_rates : array (n_groups,), or None if there are none
        free : bool array (n_leaves,), optional
            Leaves that may change; the others keep their column of ``current``.
        current : array (n_groups, n_leaves), optional

        Raises
        ------
        InfeasibleLeafStep
            If no leaves meet the rates.
        """

    def gap(
        self,
        gradient: FloatArray,
        shares: FloatArray,
        free: NDArray[np.bool_] | None,
        leaf_values: FloatArray,
    ) -> float:
        """Return the first-order gain of the best leaves; zero at a stationary point."""


def violation(
    parameters: TreeParameters,
    shortfalls: FloatArray,
    rule: LeafRule,
    bounds: Bounds,
) -> Violation:
    """Return the violation of each family of constraints; ``shortfalls`` are what rates lack."""
    c = parameters.leaf_values
    return Violation(
        box=bounds.violation(parameters),
        leaves=_worst(_largest(c.sum(axis=0) - 1), -float(c.min())),
        coverage=rule.coverage(c),
        rates=_worst(float(shortfalls.max())),
    )


def _largest(values: FloatArray) -> float:
    """The largest size; NaN if any entry is."""
    return max(float(values.max()), -float(values.min()))


def _worst(*excesses: float) -> float:
    """Return the largest positive excess, zero if there is none; NaN if any is (unlike ``max``)."""
    worst = 0.0
    for excess in excesses:
        if not excess <= worst:
            worst = excess
        if worst != worst:
            return worst
    return worst


class InfeasibleLeafStep(ValueError):
    """Raised if no leaf assignment meets the minimum class rates for this routing."""


@dataclass(frozen=True)
class ClassAssignment:
    """One class per leaf and a leaf for every class; mixed leaves only where class rates bind."""

    exact: bool = True

    def check(self, topology: Topology, n_groups: int) -> None:
        if topology.n_leaves < n_groups:
            raise ValueError(
                f"depth {topology.depth} gives {topology.n_leaves} leaves for {n_groups} "
                f"classes; each class needs a leaf, so raise depth to at least "
                f"{Topology.with_leaves(n_groups).depth} or use depth='auto'."
            )

    def coverage(self, leaf_values: FloatArray) -> float:
        return _worst(1.0 - float(leaf_values.sum(axis=1).min()))

    def without_features(self, shares: FloatArray) -> None:
        """Return None: every class has leaves of its own, to which thresholds route at random."""
        return None

    def step(
        self,
        gradient: FloatArray,
        shares: FloatArray,
        minimum_rates: FloatArray | None,
        free: NDArray[np.bool_] | None = None,
        current: FloatArray | None = None,
    ) -> FloatArray:
        """Return the leaves of minimum cost.

        Coverage takes a whole leaf per class, so that rates may be infeasible although they add up
        to less than one.
        """
        if free is None or bool(np.all(free)):
            assigned = cheapest_assignment(gradient)
            if minimum_rates is None:
                return assigned
            met = np.sum(shares * assigned, axis=1) >= minimum_rates - RATE_SLACK
            if np.all(met):
                return assigned
            return _leaf_program(gradient, _own_rates(shares), minimum_rates)
        if current is None:
            raise ValueError(
                "a leaf step needs the current leaf classes when some leaves are fixed."
            )
        rates = np.zeros(len(gradient)) if minimum_rates is None else minimum_rates
        return _leaf_program(gradient, _own_rates(shares), rates, free, current)

    def within(self, gradient: FloatArray, lines: FloatArray, least: FloatArray) -> FloatArray:
        """Return the leaves of minimum cost with sum_kl lines_qkl c_kl >= least_q for all q.

        Of two bounds that meet the program has both, so that a rounding error is allowed for.
        """
        assigned = cheapest_assignment(gradient)
        if np.all(np.tensordot(lines, assigned) >= least - RATE_SLACK):
            return assigned
        return _leaf_program(gradient, lines, least, slack=RATE_SLACK)

    def gap(
        self,
        gradient: FloatArray,
        shares: FloatArray,
        free: NDArray[np.bool_] | None,
        leaf_values: FloatArray,
    ) -> float:
        try:
            best = self.step(gradient, shares, None, free, leaf_values)
        except InfeasibleLeafStep:
            # Fixed leaves miss coverage by a rounding error: no leaves are feasible, and
            # ``violation`` reports it.
            return 0.0
        return float(max(0.0, np.sum(gradient * (leaf_values - best))))


def cheapest_assignment(costs: FloatArray) -> FloatArray:
    """Return the assignment of minimum cost with a leaf for every class."""
    assigned = np.zeros(costs.shape)
    labels = cheapest_labels(np.ascontiguousarray(costs, dtype=float))
    assigned[labels, np.arange(len(labels))] = 1.0
    return assigned


@compiled
def cheapest_labels(costs):  # type: ignore[no-untyped-def]
    """Return the class of each leaf in the assignment of minimum cost, shape (n_leaves,)."""
    n_groups, n_leaves = costs.shape
    labels, seen = np.zeros(n_leaves, dtype=np.int64), np.zeros(n_groups, dtype=np.int64)
    # The cheapest class of each leaf is optimal if it leaves no class without a leaf.
    for leaf in range(n_leaves):
        for k in range(1, n_groups):
            if costs[k, leaf] < costs[labels[leaf], leaf]:
                labels[leaf] = k
        seen[labels[leaf]] = 1
    if seen.sum() == n_groups:
        return labels
    # Otherwise each class owns one leaf, and the others keep their cheapest class: the regret
    # costs[k, leaf] - min_k costs[k, leaf] of the owned leaves is minimal.
    regret = np.empty((n_groups, n_leaves))
    for leaf in range(n_leaves):
        for k in range(n_groups):
            regret[k, leaf] = costs[k, leaf] - costs[labels[leaf], leaf]
    owners = _owners(regret)
    for leaf in range(n_leaves):
        if owners[leaf] >= 0:
            labels[leaf] = owners[leaf]
    return labels


@compiled
def _owners(costs):  # type: ignore[no-untyped-def]
    """Return the class that owns each leaf, -1 for none: a linear assignment of minimum cost.

    The Hungarian method (Kuhn 1955) by shortest augmenting paths (Jonker and Volgenant 1987): the
    classes are assigned one after the other, each along a path of minimum reduced cost
    costs - of_group - of_leaf >= 0, with the dual variables of classes and leaves. Index 0 of the
    arrays stands for no class and no leaf.
    """
    n_groups, n_leaves = costs.shape
    of_group, of_leaf = np.zeros(n_groups + 1), np.zeros(n_leaves + 1)
    owner, way = np.zeros(n_leaves + 1, dtype=np.int64), np.zeros(n_leaves + 1, dtype=np.int64)
    for k in range(1, n_groups + 1):
        owner[0], here = k, 0
        shortest, visited = np.full(n_leaves + 1, np.inf), np.zeros(n_leaves + 1, dtype=np.bool_)
        # 1. Dijkstra's method from class k to a leaf without an owner.
        while True:
            visited[here] = True
            length, following = np.inf, 0
            for leaf in range(1, n_leaves + 1):
                if visited[leaf]:
                    continue
                gap = costs[owner[here] - 1, leaf - 1] - of_group[owner[here]] - of_leaf[leaf]
                if gap < shortest[leaf]:
                    shortest[leaf], way[leaf] = gap, here
                if shortest[leaf] < length:
                    length, following = shortest[leaf], leaf
            if following == 0:  # NaN costs: there is no path
                return owner[1:] - 1
            # 2. Dual variables: reduced costs >= 0, and zero on the tree of shortest paths.
            for leaf in range(n_leaves + 1):
                if visited[leaf]:
                    of_group[owner[leaf]] += length
                    of_leaf[leaf] -= length
                else:
                    shortest[leaf] -= length
            here = following
            if owner[here] == 0:
                break
        # 3. Reassign the leaves along the augmenting path.
        while here != 0:
            owner[here] = owner[way[here]]
            here = way[here]
    return owner[1:] - 1


def _own_rates(shares: FloatArray) -> FloatArray:
    """Coefficients of the class rates in c, (n_groups, n_groups, n_leaves)."""
    return np.eye(len(shares))[:, :, None] * shares


def _leaf_program(
    costs: FloatArray,
    lines: FloatArray,
    least: FloatArray,
    free: NDArray[np.bool_] | None = None,
    current: FloatArray | None = None,
    slack: float = 0.0,
) -> FloatArray:
    """Solve the leaf step as a linear program over the free leaves (HiGHS, by scipy).

    The rates sum_kl lines_qkl c_kl may be below ``least`` by ``slack``.
    """
    n_groups, n_leaves = costs.shape
    result = np.zeros_like(costs) if current is None else np.array(current, dtype=float)
    index = np.arange(n_leaves) if free is None else np.flatnonzero(free)
    if len(index) == 0:
        if np.any(np.tensordot(lines, result) < least - RATE_SLACK):
            raise InfeasibleLeafStep("the fixed leaves do not meet the minimum class rates.")
        return result
    fixed = result.copy()
    fixed[:, index] = 0.0
    one_per_leaf = np.tile(np.eye(len(index)), n_groups)
    coverage = np.kron(np.eye(n_groups), np.ones(len(index)))
    rates = lines[:, :, index].reshape(len(lines), -1)
    scale = max(float(np.max(np.abs(costs[:, index]))), TINY_SHARE)
    solved = linprog(
        costs[:, index].ravel() / scale,
        A_ub=-np.vstack([coverage, rates]),
        b_ub=np.append(fixed.sum(axis=1) - 1, np.tensordot(lines, fixed) - least + slack),
        A_eq=one_per_leaf,
        b_eq=np.ones(len(index)),
        bounds=(0, 1),
        method="highs",
        options=PROGRAM_TOLERANCES,
    )
    if solved.status != 0 and slack == 0:  # perhaps infeasible by rounding alone
        return _leaf_program(costs, lines, least, free, current, RATE_SLACK)
    if solved.status != 0:
        raise InfeasibleLeafStep("no leaf assignment meets the rates for this routing.")
    leaves = np.clip(solved.x.reshape(n_groups, len(index)), 0.0, 1.0)
    result[:, index] = leaves / leaves.sum(axis=0)
    return result


ASSIGNMENT = ClassAssignment()
"""The rule of the expected cost."""


# Compile-time constants of solvers/active_set/objective.py too.

TINY_SHARE = 1e-300
"""Lower bound of divisors and of arguments of logarithms."""

SMOOTHING = 0.02
"""Weight of the uniform distribution in each leaf, so that no row has probability zero."""


class Distributions(ABC):
    """Base of the rules of class distributions: any leaves are feasible, and steps are EM steps."""

    exact = False

    def check(self, topology: Topology, n_groups: int) -> None:  # noqa: B027 (nothing to refuse)
        """Accept any number of leaves."""

    def coverage(self, leaf_values: FloatArray) -> float:
        return 0.0

    @abstractmethod
    def expected(self, responsibility: FloatArray) -> FloatArray:
        """Return the leaves of the M step from the responsibilities -c_kl G_kl.

        That is the weight of the rows of class k for which leaf l is responsible, summed in the E
        step by the pass.
        """

    def step(
        self,
        gradient: FloatArray,
        shares: FloatArray,
        minimum_rates: FloatArray | None,
        free: NDArray[np.bool_] | None = None,
        current: FloatArray | None = None,
    ) -> FloatArray:
        """Return the leaves after one EM step from ``current``; ``gradient`` excludes the prior.

        A step that would violate the minimum rates is shortened.
        """
        if current is None:
            raise ValueError("a step of class distributions needs the current ones.")
        leaves = self.expected(-current * gradient)
        if free is not None:
            leaves = np.where(free, leaves, current)
        return _within_rates(leaves, current, shares, minimum_rates)


@dataclass(frozen=True)
class ClassDistributions(Distributions):
    """A class distribution in every leaf, mixed with the uniform one by ``smoothing``."""

    smoothing: float = SMOOTHING

    def without_features(self, shares: FloatArray) -> FloatArray:
        return self.soften(shares)

    def soften(self, leaf_values: FloatArray) -> FloatArray:
        """Return the mixture with the uniform distribution, so that no row has probability zero."""
        return (1 - self.smoothing) * leaf_values + self.smoothing / len(leaf_values)

    def expected(self, responsibility: FloatArray) -> FloatArray:
        return self.soften(responsibility / np.maximum(responsibility.sum(axis=0), TINY_SHARE))

    def gap(
        self,
        gradient: FloatArray,
        shares: FloatArray,
        free: NDArray[np.bool_] | None,
        leaf_values: FloatArray,
    ) -> float:
        """Return the gap over distributions with at least smoothing / n_groups of each class."""
        least = self.smoothing / len(leaf_values)
        movable = leaf_values - least
        gain = np.sum(gradient * movable, axis=0) - gradient.min(axis=0) * movable.sum(axis=0)
        if free is not None:
            gain = np.where(free, gain, 0.0)
        return float(max(0.0, np.sum(gain)))


@runtime_checkable
class LeafPrior(Protocol):
    """A leaf rule with a prior: a term of the leaf classes in the objective."""

    def prior(self, leaf_values: FloatArray) -> tuple[float, FloatArray]:
        """Return the term and its gradient, shape (n_groups, n_leaves)."""


@dataclass(frozen=True)
class CountedDistributions(Distributions):
    """A class distribution in every leaf under a Dirichlet prior.

    ``pseudo_counts`` s_k, shape (n_groups,), add -sum_kl s_k log c_kl to the loss: no class has
    probability zero, and a leaf that hardly any row reaches has the shares of the pseudo-counts.
    """

    pseudo_counts: FloatArray

    def without_features(self, shares: FloatArray) -> FloatArray:
        return shares

    def prior(self, leaf_values: FloatArray) -> tuple[float, FloatArray]:
        counts, held = self.pseudo_counts[:, None], np.maximum(leaf_values, TINY_SHARE)
        return -float(np.sum(counts * np.log(held))), -counts / held

    def expected(self, responsibility: FloatArray) -> FloatArray:
        counts = self.pseudo_counts[:, None] + responsibility
        return counts / counts.sum(axis=0)

    def gap(
        self,
        gradient: FloatArray,
        shares: FloatArray,
        free: NDArray[np.bool_] | None,
        leaf_values: FloatArray,
    ) -> float:
        """Return the largest derivative by a log-odds of a leaf; ``gradient`` includes prior."""
        mean = np.sum(leaf_values * gradient, axis=0)
        residual = np.abs(leaf_values * (gradient - mean))
        return float(np.max(residual if free is None else residual[:, free], initial=0.0))


def _within_rates(
    leaves: FloatArray, current: FloatArray, shares: FloatArray, minimum_rates: FloatArray | None
) -> FloatArray:
    """Return the feasible point nearest to ``leaves`` on the segment from ``current``."""
    if minimum_rates is None:
        return leaves
    here, there = (np.sum(shares * one, axis=1) for one in (current, leaves))
    least = minimum_rates - RATE_SLACK
    if np.all(there >= least):
        return leaves
    if np.any(here < least):
        raise InfeasibleLeafStep("the class distributions miss the minimum class rates.")
    falling = there < here  # rates are linear in the leaves
    part = np.min((here - least)[falling] / (here - there)[falling], initial=1.0)
    return current + part * (leaves - current)


DISTRIBUTIONS = ClassDistributions()
"""The rule of a log-loss without a prior."""
