"""The leaves of a tree: which are allowed, and which are best for a routing.

Weights and thresholds lie within bounds (bounds.py), and all leaves on a simplex:

    low_jt <= a_jt <= high_jt,  low_t <= mu_t <= high_t      bounds
    c_kl >= 0,  sum_k c_kl = 1              for each leaf     leaf simplex
    rate_k = sum_l R_kl c_kl >= rho_k       for each class    minimum class rate

where R_kl = M_kl / n_k is the share of class k that reaches leaf l. The paper adds

    sum_l c_kl >= 1                         for each class    class coverage

A *leaf rule* belongs to a loss. With G the derivative of the loss by c for a fixed routing:

    ClassAssignment      the expected cost is linear in c, sum_kl G_kl c_kl, and least where every
                         leaf has one class: an assignment problem, under rates a linear program
    ClassDistributions   the log-loss is least where each leaf has the class shares of the rows it
                         is responsible for: expectation steps, c_kl in proportion to -c_kl G_kl
    CountedDistributions the same with pseudo-counts s_k in every leaf, a prior
                         - sum_kl s_k log c_kl: c_kl in proportion to s_k - c_kl G_kl
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_array, vstack

from softsplit.problem.bounds import Bounds
from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled
from softsplit.tree.parameters import Topology, TreeParameters

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
        return _worst(self.box, self.leaves, self.coverage, self.rates)


class LeafRule(Protocol):
    """Which leaves are allowed, and which are best for a routing."""

    @property
    def exact(self) -> bool:
        """Whether ``step`` ends at the best leaves of a loss that is linear in them."""

    def check(self, topology: Topology, n_classes: int) -> None:
        """Raise ``ValueError`` if a tree of this shape has no allowed leaves."""

    def coverage(self, leaf_classes: FloatArray) -> float:
        """By how much a class lacks leaves that it must have."""

    def without_features(self, shares: FloatArray) -> FloatArray | None:
        """The leaf of a tree that uses no feature, from the class shares; None if leaves differ."""

    def step(
        self,
        gradient: FloatArray,
        shares: FloatArray,
        minimum_rates: FloatArray | None,
        free: NDArray[np.bool_] | None = None,
        current: FloatArray | None = None,
    ) -> FloatArray:
        """Better leaves for a fixed routing, (n_classes, n_leaves).

        Parameters
        ----------
        gradient : array (n_classes, n_leaves)
            G_kl: derivative of the loss by c_kl.
        shares : array (n_classes, n_leaves)
            R_kl: share of class k that reaches leaf l; of no meaning without rates.
        minimum_rates : array (n_classes,), or None where none is asked for
        free : bool array (n_leaves,), optional
            Leaves that may change; the others keep their column of ``current``.
        current : array (n_classes, n_leaves), optional

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
        leaf_classes: FloatArray,
    ) -> float:
        """What other leaves would gain to first order; zero at the best ones."""


def violation(
    parameters: TreeParameters,
    rates: FloatArray,
    minimum_rates: FloatArray,
    rule: LeafRule,
    bounds: Bounds,
) -> Violation:
    """How far a tree with the given class rates is from feasible."""
    c = parameters.leaf_classes
    return Violation(
        box=bounds.violation(parameters),
        leaves=_worst(_largest(c.sum(axis=0) - 1), -float(c.min())),
        coverage=rule.coverage(c),
        rates=_worst(float((minimum_rates - rates).max())),
    )


def _largest(values: FloatArray) -> float:
    """The largest size; NaN if any entry is."""
    return max(float(values.max()), -float(values.min()))


def _worst(*excesses: float) -> float:
    """Largest positive excess, zero if there is none; NaN if any is (unlike ``max``)."""
    worst = 0.0
    for excess in excesses:
        if not excess <= worst:
            worst = excess
        if worst != worst:
            return worst
    return worst


class InfeasibleLeafStep(ValueError):
    """No leaf assignment meets the minimum class rates for this routing."""


@dataclass(frozen=True)
class ClassAssignment:
    """One class to a leaf, and a leaf to every class; mixed only where class rates bind."""

    exact: bool = True

    def check(self, topology: Topology, n_classes: int) -> None:
        if topology.n_leaves < n_classes:
            raise ValueError(
                f"depth {topology.depth} gives {topology.n_leaves} leaves for {n_classes} "
                f"classes; each class needs a leaf, so raise depth to at least "
                f"{Topology.for_classes(n_classes).depth} or use depth='auto'."
            )

    def coverage(self, leaf_classes: FloatArray) -> float:
        return _worst(1.0 - float(leaf_classes.sum(axis=1).min()))

    def without_features(self, shares: FloatArray) -> None:
        """Every class has leaves of its own: thresholds part the rows by chance."""
        return None

    def step(
        self,
        gradient: FloatArray,
        shares: FloatArray,
        minimum_rates: FloatArray | None,
        free: NDArray[np.bool_] | None = None,
        current: FloatArray | None = None,
    ) -> FloatArray:
        """The cheapest leaves.

        Coverage takes a whole leaf per class, so that the rates may be out of reach although they
        add up to less than one.
        """
        if free is None or bool(np.all(free)):
            assigned = cheapest_assignment(gradient)
            if minimum_rates is None:
                return assigned
            met = np.sum(shares * assigned, axis=1) >= minimum_rates - RATE_SLACK
            if np.all(met):
                return assigned
            return _leaf_program(gradient, shares, minimum_rates, None, None)
        if current is None:
            raise ValueError(
                "a leaf step needs the current leaf classes when some leaves are fixed."
            )
        rates = np.zeros(len(gradient)) if minimum_rates is None else minimum_rates
        return _leaf_program(gradient, shares, rates, free, current)

    def gap(
        self,
        gradient: FloatArray,
        shares: FloatArray,
        free: NDArray[np.bool_] | None,
        leaf_classes: FloatArray,
    ) -> float:
        try:
            best = self.step(gradient, shares, None, free, leaf_classes)
        except InfeasibleLeafStep:
            # Fixed leaves that miss coverage by a rounding error: there is nothing to choose from,
            # and the violation is reported as such.
            return 0.0
        return float(max(0.0, np.sum(gradient * (leaf_classes - best))))


def cheapest_assignment(costs: FloatArray) -> FloatArray:
    """Minimum cost with every class on a leaf: best class per leaf, then least regret."""
    assigned = np.zeros(costs.shape)
    labels = cheapest_labels(np.ascontiguousarray(costs, dtype=float))
    assigned[labels, np.arange(len(labels))] = 1.0
    return assigned


@compiled
def cheapest_labels(costs):  # type: ignore[no-untyped-def]
    """The class of each leaf in the cheapest assignment, (n_leaves,)."""
    n_classes, n_leaves = costs.shape
    labels, seen = np.zeros(n_leaves, dtype=np.int64), np.zeros(n_classes, dtype=np.int64)
    for leaf in range(n_leaves):
        for k in range(1, n_classes):
            if costs[k, leaf] < costs[labels[leaf], leaf]:
                labels[leaf] = k
        seen[labels[leaf]] = 1
    if seen.sum() == n_classes:
        return labels
    # Each class claims one leaf of its own; a leaf pays what it loses against its best.
    regret = np.empty((n_classes, n_leaves))
    for leaf in range(n_leaves):
        for k in range(n_classes):
            regret[k, leaf] = costs[k, leaf] - costs[labels[leaf], leaf]
    owners = _owners(regret)
    for leaf in range(n_leaves):
        if owners[leaf] >= 0:
            labels[leaf] = owners[leaf]
    return labels


@compiled
def _owners(costs):  # type: ignore[no-untyped-def]
    """The class that owns each leaf, -1 for none, where every class owns one at the least total.

    Class by class, each along a shortest augmenting path with respect to prices of classes and
    leaves that leave no bargain (the Hungarian method). Place 0 of the arrays stands for none.
    """
    n_classes, n_leaves = costs.shape
    of_class, of_leaf = np.zeros(n_classes + 1), np.zeros(n_leaves + 1)
    owner, way = np.zeros(n_leaves + 1, dtype=np.int64), np.zeros(n_leaves + 1, dtype=np.int64)
    for k in range(1, n_classes + 1):
        owner[0], here = k, 0
        shortest, visited = np.full(n_leaves + 1, np.inf), np.zeros(n_leaves + 1, dtype=np.bool_)
        while True:
            visited[here] = True
            length, following = np.inf, 0
            for leaf in range(1, n_leaves + 1):
                if visited[leaf]:
                    continue
                gap = costs[owner[here] - 1, leaf - 1] - of_class[owner[here]] - of_leaf[leaf]
                if gap < shortest[leaf]:
                    shortest[leaf], way[leaf] = gap, here
                if shortest[leaf] < length:
                    length, following = shortest[leaf], leaf
            if following == 0:  # costs that are no numbers: there is no path
                return owner[1:] - 1
            for leaf in range(n_leaves + 1):
                if visited[leaf]:
                    of_class[owner[leaf]] += length
                    of_leaf[leaf] -= length
                else:
                    shortest[leaf] -= length
            here = following
            if owner[here] == 0:
                break
        while here != 0:
            owner[here] = owner[way[here]]
            here = way[here]
    return owner[1:] - 1


def _leaf_program(
    costs: FloatArray,
    shares: FloatArray,
    minimum_rates: FloatArray,
    free: NDArray[np.bool_] | None,
    current: FloatArray | None,
    slack: float = 0.0,
) -> FloatArray:
    """The leaf step as a linear program over the free leaves (HiGHS).

    Rates may be missed by ``slack``.
    """
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
            [fixed.sum(axis=1) - 1, np.sum(shares * fixed, axis=1) - minimum_rates + slack]
        ),
        A_eq=one_per_leaf.tocsr(),
        b_eq=np.ones(len(index)),
        bounds=(0, 1),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if solved.status != 0 and slack == 0:  # a rate may be missed by rounding alone
        return _leaf_program(costs, shares, minimum_rates, free, current, RATE_SLACK)
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


ASSIGNMENT = ClassAssignment()
"""The rule of the expected cost."""


TINY_SHARE = 1e-300
"""Floor under the logarithm of a share."""

SMOOTHING = 0.02
"""Part of a leaf's distribution that every class shares, so that no row gets probability zero."""


class Distributions(ABC):
    """What rules of class distributions share: any leaves are allowed, and expectation steps."""

    exact = False

    def check(self, topology: Topology, n_classes: int) -> None:  # noqa: B027 (nothing to refuse)
        """Any number of leaves will do."""

    def coverage(self, leaf_classes: FloatArray) -> float:
        return 0.0

    @abstractmethod
    def expected(self, responsibility: FloatArray) -> FloatArray:
        """Leaves from the weight of rows of class k that leaf l is responsible for."""

    def step(
        self,
        gradient: FloatArray,
        shares: FloatArray,
        minimum_rates: FloatArray | None,
        free: NDArray[np.bool_] | None = None,
        current: FloatArray | None = None,
    ) -> FloatArray:
        """One expectation step from ``current``; ``gradient`` is that of the loss alone.

        Where it would miss the rates it goes only as far as they allow.
        """
        if current is None:
            raise ValueError("a step of class distributions needs the current ones.")
        leaves = self.expected(-current * gradient)
        if free is not None:
            leaves = np.where(free, leaves, current)
        return _within_rates(leaves, current, shares, minimum_rates)


@dataclass(frozen=True)
class ClassDistributions(Distributions):
    """A distribution over the classes in every leaf, mixed with a little of every class."""

    smoothing: float = SMOOTHING

    def without_features(self, shares: FloatArray) -> FloatArray:
        return self.soften(shares)

    def soften(self, leaf_classes: FloatArray) -> FloatArray:
        """Mix in a little of every class, so that no row gets probability zero."""
        return (1 - self.smoothing) * leaf_classes + self.smoothing / len(leaf_classes)

    def expected(self, responsibility: FloatArray) -> FloatArray:
        return self.soften(responsibility / np.maximum(responsibility.sum(axis=0), TINY_SHARE))

    def gap(
        self,
        gradient: FloatArray,
        shares: FloatArray,
        free: NDArray[np.bool_] | None,
        leaf_classes: FloatArray,
    ) -> float:
        """Over the distributions that hold at least the share of every class that is mixed in."""
        least = self.smoothing / len(leaf_classes)
        movable = leaf_classes - least
        gain = np.sum(gradient * movable, axis=0) - gradient.min(axis=0) * movable.sum(axis=0)
        if free is not None:
            gain = np.where(free, gain, 0.0)
        return float(max(0.0, np.sum(gain)))


@runtime_checkable
class LeafPrior(Protocol):
    """A leaf rule that adds a term of the leaves to the loss."""

    def prior(self, leaf_classes: FloatArray) -> tuple[float, FloatArray]:
        """The term and its derivative, (n_classes, n_leaves)."""


@dataclass(frozen=True)
class CountedDistributions(Distributions):
    """A distribution over the classes in every leaf, as if it had seen a few rows before.

    ``pseudo_counts`` (n_classes,) are those rows: no class has probability zero, and a leaf that
    hardly any row reaches has their shares.
    """

    pseudo_counts: FloatArray

    def without_features(self, shares: FloatArray) -> FloatArray:
        return shares

    def prior(self, leaf_classes: FloatArray) -> tuple[float, FloatArray]:
        counts, held = self.pseudo_counts[:, None], np.maximum(leaf_classes, TINY_SHARE)
        return -float(np.sum(counts * np.log(held))), -counts / held

    def expected(self, responsibility: FloatArray) -> FloatArray:
        counts = self.pseudo_counts[:, None] + responsibility
        shares: FloatArray = counts / counts.sum(axis=0)
        return shares

    def gap(
        self,
        gradient: FloatArray,
        shares: FloatArray,
        free: NDArray[np.bool_] | None,
        leaf_classes: FloatArray,
    ) -> float:
        """Largest derivative by a log-odds of a leaf; ``gradient`` is that of loss and prior."""
        mean = np.sum(leaf_classes * gradient, axis=0)
        residual = np.abs(leaf_classes * (gradient - mean))
        return float(np.max(residual if free is None else residual[:, free], initial=0.0))


def _within_rates(
    leaves: FloatArray, current: FloatArray, shares: FloatArray, minimum_rates: FloatArray | None
) -> FloatArray:
    """``leaves``, or as much of the way there from ``current`` as the class rates allow."""
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
