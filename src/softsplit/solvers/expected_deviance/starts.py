"""Trees to start from: questions found one after the other for linear leaves of least squares.

With the working response r and weights h of the family (its targets, for squares), a branch with
the weights v of its rows asks by one of

    axis         the column and cut, of five quantiles of each, where two ridge regressions fit best
    one of six   the same, at random among the best cuts of the six best columns
    curvature    the principal Hessian direction (Li 1992): the largest eigenvalue, in size, of
                 Z' diag(v e) Z against Z' diag(v) Z with the residual e of the ridge regression
    clusters     the linear discriminant of two means of (Z, r)

``Starts.race`` descends from each for some steps and puts them in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from softsplit.solvers.base import Budget
from softsplit.solvers.expected_deviance.descent import Descended, descend
from softsplit.solvers.expected_deviance.problem import NumberProblem, SoftTree
from softsplit.support.arrays import FloatArray
from softsplit.tree.routing import node_reach

CUTS = (1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6)
"""Quantiles of a column at which it may be cut."""

STEEPNESS = 3.0
"""Score at a deviation of the cut column, or of a direction, from the cut."""

CUT_COLUMNS = 30
"""Most columns of the regressions that a cut is judged by."""

START_ROWS = 2_000
"""Most rows from which questions are found."""

RACE_STEPS = 12
"""Steps of the descents that are compared."""

RULES = ("axis", "one of six", "curvature", "clusters")


class Working(NamedTuple):
    """Columns with a constant (n_rows, n_columns + 1), response, weights and ridge."""

    columns: FloatArray
    response: FloatArray
    weight: FloatArray
    ridge: FloatArray
    gated: NDArray[np.intp]  # columns that questions may use
    orders: NDArray[np.intp]  # (n_rows, n_columns): rows by ascending values

    def moments(self, weight: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """Return Z'vZ, Z'vr and r'vr."""
        weighted = self.columns * weight[:, None]
        r = self.response
        return weighted.T @ self.columns, weighted.T @ r, float(weight @ (r * r))

    def fitted(self, weight: FloatArray) -> FloatArray:
        """Return the fit of the ridge regression of some rows."""
        square, pull, _ = self.moments(weight)
        return np.asarray(self.columns @ np.linalg.solve(square + self.ridge, pull))


def working(problem: NumberProblem) -> Working:
    """Return a linear least-squares problem like this one."""
    targets = problem.targets
    eta = targets.offset + problem.start
    response, factor = problem.family.working(targets.values, eta)
    ridge = np.eye(problem.n_columns + 1) * 2.0 * problem.featureless
    ridge[-1, -1] = 1e-6
    columns = np.concatenate([problem.lines.T, np.ones((len(response), 1))], axis=1)
    gated = np.flatnonzero(problem.signs == 0.0)
    orders = np.argsort(columns[:, :-1], axis=0, kind="stable")
    response = response - targets.offset
    return Working(columns, response, targets.totals * factor, ridge, gated, orders)


class Starts:
    """The questions of each rule, found level by level when a race asks for them.

    Attributes
    ----------
    problem : NumberProblem
    given : Working
        Of at most START_ROWS of its rows.
    gates : dict of lists of arrays (n_columns + 1,)
        Of each rule, with ``reach``, the weights of rows at every node that is known.
    """

    def __init__(
        self, problem: NumberProblem, generator: np.random.Generator, constant: bool = False
    ) -> None:
        n_rows = problem.lines.shape[1]
        part = problem
        if n_rows > START_ROWS:
            part = problem.part(np.sort(generator.permutation(n_rows)[:START_ROWS]))
        self.problem, self.given, self.constant = problem, working(part), constant
        rules = RULES if len(self.given.gated) else ()
        self.generators = dict(zip(rules, generator.spawn(len(rules)), strict=True))
        self.gates: dict[str, list[FloatArray]] = {rule: [] for rule in rules}
        self.reach = {rule: [self.given.weight] for rule in rules}

    def questions(self, rule: str, depth: int) -> FloatArray:
        """Return gates that follow a rule, each from the rows that reach it."""
        gates, reach = self.gates[rule], self.reach[rule]
        for t in range(len(gates), 2**depth - 1):
            gates.append(gate(self.given, reach[t], rule, self.generators[rule]))
            left = _gate(self.given, gates[t])
            reach += [reach[t] * left, reach[t] * (1.0 - left)]
        return np.reshape(gates[: 2**depth - 1], (2**depth - 1, -1))

    def race(self, depth: int, budget: Budget | None = None) -> list[Descended]:
        """Return the starts of a depth after some steps of a descent, the best first."""
        every = [self.questions(rule, depth) for rule in self.gates] if depth else []
        every = every or [np.zeros((0, 0))]
        trees = [with_leaves(self.problem, self.given, gates) for gates in every]
        if self.constant:
            trees = [tree.with_constants() for tree in trees]
        ends = [descend(self.problem, tree, RACE_STEPS, budget=budget) for tree in trees]
        return sorted(ends, key=lambda end: end.value)


def _gate(given: Working, question: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        return np.asarray(1.0 / (1.0 + np.exp(-given.columns @ question)))


def with_leaves(problem: NumberProblem, given: Working, gates: FloatArray) -> SoftTree:
    """Return the tree with these gates, and a ridge regression in each leaf."""
    if not len(gates):
        tree = SoftTree.leaf(problem)
        square, pull, _ = given.moments(given.weight)
        tree.matrix[1] = np.linalg.solve(square + given.ridge, pull)
        return tree
    n, size = len(gates), problem.n_columns + 1
    left = np.stack([_gate(given, question) for question in gates])
    reach = node_reach(left, 1.0 - left) * given.weight
    matrix, free = np.zeros((2 * n + 1, size)), np.ones((2 * n + 1, size), dtype=bool)
    matrix[:n], free[:n, :-1] = gates, problem.signs == 0.0
    for node in range(n, 2 * n + 1):
        square, pull, _ = given.moments(reach[node])
        matrix[node] = np.linalg.solve(square + given.ridge, pull)
    return SoftTree(np.arange(problem.n_columns), matrix, free)


def gate(
    given: Working, weight: FloatArray, rule: str, generator: np.random.Generator
) -> FloatArray:
    """Return the question (w, -m) of a branch whose rows have these weights."""
    question = np.zeros(given.columns.shape[1])
    if rule in ("axis", "one of six"):
        cuts = sorted(axis_cuts(given, weight))
        if not cuts:
            return question
        place = int(generator.integers(min(6, len(cuts)))) if rule == "one of six" else 0
        _, column, cut, scale = cuts[place]
        question[column], question[-1] = STEEPNESS / scale, -STEEPNESS * cut / scale
        return question
    columns = given.columns[:, given.gated]
    share = weight / weight.sum()
    centred = columns - share @ columns
    spread = (centred * share[:, None]).T @ centred + 0.05 * np.eye(len(given.gated))
    if rule == "curvature":
        residual = given.response - given.fitted(weight)
        bent = (centred * (share * residual)[:, None]).T @ centred
        values, vectors = eigh(bent, spread)
        direction = vectors[:, int(np.argmax(np.abs(values)))]
    else:
        direction = np.linalg.solve(spread, _between_means(given, centred, share, generator))
    along = columns @ direction
    middle = _quantiles(along, weight, (0.5,))[0]
    scale = max(float(np.sqrt(share @ (along - middle) ** 2)), 1e-9)
    question[given.gated], question[-1] = STEEPNESS * direction / scale, -STEEPNESS * middle / scale
    return question


def axis_cuts(given: Working, weight: FloatArray) -> Iterator[tuple[float, int, float, float]]:
    """Yield the deviance that is left, the column, its best cut and the scale of the column.

    The two regressions are on at most CUT_COLUMNS columns, those with the largest coefficients in
    the regression of all rows, and a constant.
    """
    total, pull, square = given.moments(weight)
    held = np.arange(len(pull))
    if len(pull) > CUT_COLUMNS + 1:
        sizes = np.abs(np.linalg.solve(total + given.ridge, pull)[:-1])
        held = np.append(np.sort(np.argsort(-sizes, kind="stable")[:CUT_COLUMNS]), len(pull) - 1)
    columns, ridge = given.columns[:, held], given.ridge[np.ix_(held, held)]
    total, pull = total[np.ix_(held, held)], pull[held]
    weighted = columns * weight[:, None]
    for j in given.gated.tolist():
        column = given.columns[:, j]
        order = given.orders[:, j]
        values, mass = column[order], np.cumsum(weight[order])
        places = np.searchsorted(mass, np.array(CUTS) * mass[-1])
        # A cut lies halfway to the next value, so that no row is on it.
        cuts = values[np.minimum(places, len(values) - 1)]
        above = np.searchsorted(values, cuts, side="right")
        cuts, above = cuts[above < len(values)], above[above < len(values)]
        cuts = np.array(sorted(set((0.5 * (cuts + values[above])).tolist())))
        if not len(cuts):
            continue
        cell = np.searchsorted(cuts, column)
        squares, pulls, sizes = [], [], []
        for k in range(len(cuts)):
            some = cell == k
            here = weighted[some]
            squares.append(here.T @ columns[some])
            pulls.append(here.T @ given.response[some])
            sizes.append(float(weight[some] @ given.response[some] ** 2))
        low, low_pull = np.cumsum(squares, axis=0), np.cumsum(pulls, axis=0)
        both = np.concatenate([low, total - low]) + ridge
        pulled = np.concatenate([low_pull, pull - low_pull])
        solved = np.linalg.solve(both, pulled[..., None])[..., 0]
        fitted = np.einsum("ij,ij->i", pulled, solved)
        left = square - fitted[: len(cuts)] - fitted[len(cuts) :]
        best = int(np.argmin(left))
        yield float(left[best]), j, float(cuts[best]), _scale(column, weight)


def _scale(column: FloatArray, weight: FloatArray) -> float:
    share = weight / weight.sum()
    return max(float(np.sqrt(share @ (column - share @ column) ** 2)), 1e-6)


def _quantiles(values: FloatArray, weight: FloatArray, levels: tuple[float, ...]) -> FloatArray:
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weight[order])
    places = np.searchsorted(total, np.array(levels) * total[-1])
    return values[order[np.minimum(places, len(order) - 1)]]


def _between_means(
    given: Working, centred: FloatArray, share: FloatArray, generator: np.random.Generator
) -> FloatArray:
    """Return the difference of two means of (Z, r), in Z, by a dozen steps of Lloyd."""
    response = given.response - share @ given.response
    size = max(float(np.sqrt(share @ response**2)), 1e-12)
    points = np.column_stack([centred, response * np.sqrt(centred.shape[1]) / size])
    first, second = points[generator.choice(len(points), 2, p=share)]
    for _ in range(12):
        near = points @ (second - first) > 0.5 * float(second @ second - first @ first)
        if not 0.0 < float(share @ near) < 1.0:
            break
        first = (share * ~near) @ points / float(share @ ~near)
        second = (share * near) @ points / float(share @ near)
    return np.asarray((second - first)[:-1])
