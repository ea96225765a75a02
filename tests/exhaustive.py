"""The global optimum of tiny training problems, found the hard way.

Without minimum class rates the cost is linear in the leaf classes, so that some best tree has one
class in each leaf. Every assignment of classes to leaves that covers all classes is tried (up to
exchanging the sides of a branch, which turns its split round and changes nothing), and within each
every set of features that may be in use. There a_jt = beta_j s_jt with beta_j in [0, 1] and s_jt in
[-1, 1]: the penalty on features is smooth in beta_j, which at an optimum is max_t |a_jt|. Many
random points are looked at, and the best of them are descended from by L-BFGS-B.

Formulas are those of brute_force.py, on arrays; nothing of the library is used.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from brute_force import left_and_right_ancestors

SURROGATES = {
    "linear": (lambda u, q, e: u, lambda u, q, e: np.ones_like(u)),
    "exponential": (lambda u, q, e: 1 - np.exp(-q * u), lambda u, q, e: q * np.exp(-q * u)),
    "log": (lambda u, q, e: np.log(u + e), lambda u, q, e: 1 / (u + e)),
}
"""phi and its slope."""


@dataclass(frozen=True)
class TinyProblem:
    """Rows (n, p), labels, costs[y, k] and the strength of a penalty on features."""

    X: np.ndarray
    y: np.ndarray
    costs: np.ndarray
    surrogate: object
    strength: float
    depth: int
    steepness: float

    @property
    def n_branches(self) -> int:
        return 2**self.depth - 1

    def phi(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value, slope = SURROGATES[self.surrogate.name]
        numbers = self.surrogate.first, self.surrogate.second
        return value(u, *numbers), slope(u, *numbers)

    def costs_of(self, a: np.ndarray, mu: np.ndarray, classes: tuple[int, ...]) -> np.ndarray:
        """Expected costs of many splits at once: a (m, p, branches), mu (m, branches)."""
        scores = np.einsum("ij,mjt->mit", self.X, a) / self.X.shape[1] - mu[:, None, :]
        left = expit(self.steepness * scores)
        total = np.zeros(len(a))
        for leaf, label in enumerate(classes):
            lefts, rights = left_and_right_ancestors(leaf, self.depth)
            reach = np.prod(left[:, :, lefts], axis=2) * np.prod(1 - left[:, :, rights], axis=2)
            total += reach @ self.costs[self.y, label]
        return total

    def objective(self, a: np.ndarray, mu: np.ndarray, classes: tuple[int, ...]) -> float:
        sparse = self.phi(np.max(np.abs(a), axis=1))[0].sum()
        return float(self.costs_of(a[None], mu[None], classes)[0] + self.strength * sparse)

    def slope(self, a: np.ndarray, mu: np.ndarray, classes: tuple[int, ...]):
        """Expected cost of one tree, and its derivatives by a and mu."""
        left = expit(self.steepness * (self.X @ a / self.X.shape[1] - mu))
        total, by_score = 0.0, np.zeros_like(left)
        for leaf, label in enumerate(classes):
            lefts, rights = left_and_right_ancestors(leaf, self.depth)
            reach = np.prod(left[:, lefts], axis=1) * np.prod(1 - left[:, rights], axis=1)
            priced = reach * self.costs[self.y, label]
            total += priced.sum()
            for t in lefts:
                by_score[:, t] += self.steepness * priced * (1 - left[:, t])
            for t in rights:
                by_score[:, t] -= self.steepness * priced * left[:, t]
        return total, self.X.T @ by_score / self.X.shape[1], -by_score.sum(axis=0)


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


def global_optimum(
    problem: TinyProblem, seed: int = 0, looks: int = 20_000, descents: int = 40
) -> float:
    """Lowest objective over all leaf assignments, sets of features and starts."""
    rng = np.random.default_rng(seed)
    best = np.inf
    for classes in assignments(len(problem.costs), problem.depth):
        for used in itertools.product((False, True), repeat=problem.X.shape[1]):
            best = min(best, _lowest(problem, classes, np.array(used), rng, looks, descents))
    return best


def _lowest(problem, classes, used, rng, looks, descents) -> float:
    """Lowest objective with these classes in the leaves, of trees that use these features."""
    few = TinyProblem(
        problem.X * used, problem.y, problem.costs, problem.surrogate, problem.strength,
        problem.depth, problem.steepness,
    )  # fmt: skip
    shape = (looks, len(used), problem.n_branches)
    beta = rng.uniform(size=shape[:2]) ** rng.choice([1, 3], size=(looks, 1)) * used
    a = beta[:, :, None] * rng.uniform(-1, 1, shape)
    rows = problem.X[rng.integers(len(problem.X), size=(looks, 2, shape[2]))]
    share = rng.uniform(size=(looks, shape[2], 1))
    between = share * rows[:, 0] + (1 - share) * rows[:, 1]  # a place between two rows
    mu = np.clip(np.einsum("mtj,mjt->mt", between, a) / len(used), -1, 1)
    mu[::10] = rng.uniform(-1, 1, mu[::10].shape)
    values = few.costs_of(a, mu, classes)
    values += problem.strength * problem.phi(np.max(np.abs(a), axis=2))[0].sum(axis=1)
    ends = [_descended(few, a[i], mu[i], classes) for i in np.argsort(values)[:descents]]
    return min(ends)


def _descended(problem, a, mu, classes) -> float:
    p, n_branches = a.shape
    beta = np.max(np.abs(a), axis=1)
    share = a / np.where(beta > 0, beta, 1.0)[:, None]

    def parts(theta):
        return theta[:p], theta[p : p + a.size].reshape(a.shape), theta[p + a.size :]

    def value_and_slope(theta):
        beta, share, mu = parts(theta)
        value, by_a, by_mu = problem.slope(beta[:, None] * share, mu, classes)
        phi, rise = problem.phi(beta)
        by_beta = np.sum(by_a * share, axis=1) + problem.strength * rise
        slopes = np.concatenate([by_beta, (by_a * beta[:, None]).ravel(), by_mu])
        return value + problem.strength * phi.sum(), slopes

    bounds = [(0, 1)] * p + [(-1, 1)] * (a.size + n_branches)
    found = minimize(
        value_and_slope, np.concatenate([beta, share.ravel(), mu]), jac=True, method="L-BFGS-B",
        bounds=bounds, options={"maxiter": 500, "ftol": 1e-13, "gtol": 1e-9},
    )  # fmt: skip
    beta, share, mu = parts(found.x)
    return problem.objective(beta[:, None] * share, mu, classes)
