"""The global optimum of tiny training problems, found the hard way.

Without minimum class rates the cost is linear in the leaf classes, so that some best tree has one
class in each leaf. Every assignment of classes to leaves that covers all classes is tried (up to
exchanging the sides of a branch, which turns its split round and changes nothing), and within each
every set of coefficients that may differ from zero: on such a face the penalties are smooth. There
many random points are looked at and the best of them descended from by L-BFGS-B.

Formulas are those of brute_force.py, on arrays; nothing of the library is used.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from brute_force import PAPER_SURROGATES, left_and_right_ancestors


@dataclass(frozen=True)
class TinyProblem:
    """Rows (n, p), labels, costs[y, k] and the two strengths of a penalty."""

    X: np.ndarray
    y: np.ndarray
    costs: np.ndarray
    surrogate: object
    local: float
    overall: float
    depth: int
    steepness: float

    @property
    def n_branches(self) -> int:
        return 2**self.depth - 1

    def objective(self, a: np.ndarray, mu: np.ndarray, classes: tuple[int, ...]) -> np.ndarray:
        """For many splits at once: a (m, p, branches), mu (m, branches); one class per leaf."""
        scores = np.einsum("ij,mjt->mit", self.X, a) / self.X.shape[1] - mu[:, None, :]
        left = expit(self.steepness * scores)
        total = np.zeros(len(a))
        for leaf, label in enumerate(classes):
            lefts, rights = left_and_right_ancestors(leaf, self.depth)
            reach = np.prod(left[:, :, lefts], axis=2) * np.prod(1 - left[:, :, rights], axis=2)
            total += reach @ self.costs[self.y, label]
        return total + self._penalty(a)

    def _penalty(self, a: np.ndarray) -> np.ndarray:
        phi = np.vectorize(PAPER_SURROGATES[self.surrogate.name], otypes=[float])
        first, second = self.surrogate.first, self.surrogate.second
        sizes = np.abs(a)
        value = np.zeros(len(a))
        if self.local:
            value += self.local * phi(sizes, first, second).sum(axis=(1, 2))
        if self.overall:
            value += self.overall * phi(sizes.max(axis=2), first, second).sum(axis=1)
        return value


def assignments(n_classes: int, depth: int) -> list[tuple[int, ...]]:
    """Classes of the leaves that cover all classes, one of each family of mirror images."""

    def sorted_sides(classes: tuple[int, ...]) -> tuple[int, ...]:
        if len(classes) == 1:
            return classes
        half = len(classes) // 2
        sides = sorted(map(sorted_sides, (classes[:half], classes[half:])))
        return (*sides[0], *sides[1])

    every = itertools.product(range(n_classes), repeat=2**depth)
    return sorted({sorted_sides(c) for c in every if len(set(c)) == n_classes})


def global_optimum(problem: TinyProblem, seed: int = 0, looks: int = 4000, descents: int = 12):
    """Lowest objective over all leaf assignments, faces and starts."""
    rng = np.random.default_rng(seed)
    p, n_branches = problem.X.shape[1], problem.n_branches
    best = np.inf
    for classes in assignments(len(problem.costs), problem.depth):
        for support in itertools.product((False, True), repeat=p * n_branches):
            free = np.reshape(support, (p, n_branches))
            best = min(best, _lowest(problem, classes, free, rng, looks, descents))
    return best


def _lowest(problem, classes, free, rng, looks, descents) -> float:
    """Lowest objective with these classes in the leaves and zero weights where not ``free``."""
    a = rng.uniform(-1, 1, (looks, *free.shape)) * free
    a[looks // 2 :] = np.sign(a[looks // 2 :]) * np.abs(a[looks // 2 :]) ** 4  # small ones too
    rows = problem.X[rng.integers(len(problem.X), size=(looks, free.shape[1]))]
    through = np.einsum("mtj,mjt->mt", rows, a) / problem.X.shape[1]
    spread = rng.normal(scale=0.1, size=through.shape)
    mu = np.where(rng.random(through.shape) < 0.8, through + spread * np.abs(through) * 5, spread)
    mu = np.clip(mu, -1, 1)
    values = problem.objective(a, mu, classes)
    lowest = float(values.min())
    n_free = int(free.sum())

    def objective(theta):
        weights = np.zeros((1, *free.shape))
        weights[0][free] = theta[:n_free]
        return float(problem.objective(weights, theta[None, n_free:], classes)[0])

    for i in np.argsort(values)[:descents]:
        start = np.concatenate([a[i][free], mu[i]])
        found = minimize(objective, start, method="L-BFGS-B", bounds=[(-1, 1)] * len(start))
        lowest = min(lowest, float(found.fun))
    return lowest
