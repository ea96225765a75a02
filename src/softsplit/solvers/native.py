"""Our own solver: short compiled descents along a recipe of stages.

From a start the recipe is

1. warm-up    log-loss with soft leaves at growing steepness on a subset of the rows: far from a
              solution the expected cost at full steepness is flat, the log-loss is not;
2. path       expected cost at full steepness while the penalties grow to their strength;
3. polish     wake the zeros, descend tightly, then multiplier rounds for the class rates with the
              exact leaf step, so that the tree ends feasible.

The minimum-class-rate term is on in every stage that uses the expected cost: it keeps the tree
from collapsing onto the majority class.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from softsplit.constraints import InfeasibleLeafStep
from softsplit.problem import TrainingProblem
from softsplit.samples import Samples
from softsplit.solvers.base import Budget, Solution, Start, Status
from softsplit.solvers.descent import MEMORY, Limits, Smooth, Sparse, Workspace, descend
from softsplit.tree import FloatArray, TreeParameters

GRAM_RIDGE = 0.3
GRAM_LIMIT = 600
"""Most features for which the Gram matrix is inverted; beyond, only its diagonal is used."""


class Engine:
    """One problem's arrays and the compiled descent over them."""

    def __init__(self, problem: TrainingProblem, samples: Samples | None = None) -> None:
        self.problem = problem
        self.samples = samples or problem.samples
        width = problem.n_features + 1
        branches, rows = problem.topology.n_branches, self.samples.n_rows
        inverse, diagonal = preconditioner(self.samples)
        self.base_inverse, self.base_diagonal = inverse, diagonal
        self.work = Workspace(
            scores=np.empty((branches, rows)),
            slopes=np.empty((branches, rows)),
            mass=np.empty((problem.n_classes, problem.topology.n_leaves)),
            steps=np.zeros((MEMORY, branches * width)),
            changes=np.zeros((MEMORY, branches * width)),
            count=np.zeros(1, dtype=np.int64),
            inverse=np.array(inverse),
            diagonal=np.array(diagonal),
            free=problem.free_branches,
            floor=problem.global_floor,
        )
        self.calls = 0
        self.iterations = 0

    def forget(self, steepness: float) -> None:
        """Drop the curvature pairs and scale the preconditioner for another steepness."""
        self.work.count[0] = 0
        self.work.inverse[...] = self.base_inverse * (16.0 / steepness**2)
        self.work.diagonal[...] = self.base_diagonal * (16.0 / steepness**2)

    def run(
        self,
        theta: FloatArray,
        leaf_classes: FloatArray,
        limits: Limits,
        *,
        steepness: float,
        strength: float = 1.0,
        logarithmic: bool = False,
        row_weights: FloatArray | None = None,
        multipliers: FloatArray | None = None,
        rate_weight: float = 0.0,
    ) -> tuple[float, float]:
        """Descend in place; F and the residual at the end."""
        problem, samples = self.problem, self.samples
        table = leaf_classes if logarithmic else problem.loss.table(leaf_classes)
        smooth = Smooth(
            samples.features,
            samples.starts,
            samples.weights if row_weights is None else row_weights,
            samples.class_totals,
            np.ascontiguousarray(table),
            np.ascontiguousarray(leaf_classes),
            problem.minimum_rates,
            np.zeros(problem.n_classes) if multipliers is None else multipliers,
            float(rate_weight),
            float(steepness),
            logarithmic,
        )
        value, iterations, calls, residual = descend(
            theta, smooth, self.sparse(strength), limits, self.work
        )
        self.calls += calls
        self.iterations += iterations
        return float(value), float(residual)

    def sparse(self, fraction: float) -> Sparse:
        local, overall = self.problem.penalties.local, self.problem.penalties.overall
        a, b = local.surrogate, overall.surrogate
        return Sparse(
            a.kind, a.first, a.second, fraction * local.strength,
            b.kind, b.first, b.second, fraction * overall.strength,
        )  # fmt: skip


def preconditioner(samples: Samples) -> tuple[FloatArray, FloatArray]:
    """Inverse of the ridged Gram matrix of the rows (x / p, -1), and of its diagonal."""
    width = samples.n_features + 1
    design = np.empty((width, samples.n_rows))
    design[:-1] = samples.features / samples.n_features
    design[-1] = -1.0
    diagonal = np.einsum("ji,ji,i->j", design, design, samples.weights)
    diagonal = np.maximum(diagonal, 1e-8 * diagonal[-1] / samples.n_features**2)
    if width > GRAM_LIMIT:
        return np.zeros((0, 0)), 1.0 / diagonal
    root = np.sqrt(diagonal)
    gram = (design * samples.weights) @ design.T / np.outer(root, root)
    ridged = np.linalg.inv(gram + GRAM_RIDGE * np.eye(width))
    return ridged / np.outer(root, root), 1.0 / diagonal


def pack(parameters: TreeParameters) -> FloatArray:
    """(n_branches, n_features + 1): weights and threshold of each branch in a row."""
    return np.ascontiguousarray(np.vstack([parameters.weights, parameters.thresholds]).T)


def unpack(theta: FloatArray, leaf_classes: FloatArray) -> TreeParameters:
    return TreeParameters(
        np.ascontiguousarray(theta[:, :-1].T), theta[:, -1].copy(), np.array(leaf_classes)
    )


def stratified(samples: Samples, limit: int) -> Samples:
    """At most ``limit`` rows, with each class's share of rows but at least 30 of each.

    The first rows of a class are as good as random (see samples.py); weights are scaled so that
    class totals stay as they are.
    """
    counts = np.diff(samples.starts)
    if samples.n_rows <= limit:
        return samples
    take = np.minimum(counts, np.maximum(30, counts * limit // samples.n_rows))
    chosen = np.concatenate(
        [np.arange(low, low + size) for low, size in zip(samples.starts[:-1], take, strict=True)]
    )
    starts = np.concatenate([[0], np.cumsum(take)]).astype(np.int64)
    weights = samples.weights[chosen]
    totals = np.add.reduceat(weights, starts[:-1])
    weights = weights * np.repeat(samples.class_totals / totals, take)
    return Samples(
        np.ascontiguousarray(samples.features[:, chosen]), starts, weights, samples.class_totals
    )


@dataclass(frozen=True)
class WarmUp:
    """Log-loss with soft leaves at growing steepness; leaves are updated by expectation steps."""

    steepness: tuple[float, ...] = (4.0, 16.0, 64.0, 256.0)
    max_iter: int = 15
    rows: int = 1000
    balance: float = 0.0
    """Power of the inverse class totals by which rows are weighted: 1 balances the classes."""

    def apply(self, engine: Engine, theta: FloatArray, leaf_classes: FloatArray) -> FloatArray:
        samples = engine.samples
        tilt = (samples.class_totals.mean() / samples.class_totals) ** self.balance
        weights = samples.weights * np.repeat(tilt, np.diff(samples.starts))
        leaves = soften(leaf_classes)
        for steepness in self.steepness:
            if steepness > engine.problem.steepness:
                break
            engine.forget(steepness)
            for _ in range(3):
                limits = Limits(self.max_iter // 3, 1e-3, 1e-4, 2)
                settings = {"steepness": steepness, "strength": 0.0, "logarithmic": True}
                engine.run(theta, leaves, limits, row_weights=weights, **settings)
                engine.run(theta, leaves, Limits(0, 0, 0, 1), row_weights=weights, **settings)
                responsibility = -leaves * engine.work.mass
                leaves = soften(responsibility / np.maximum(responsibility.sum(axis=0), 1e-300))
        return leaves


def soften(leaf_classes: FloatArray, floor: float = 0.02) -> FloatArray:
    """Mix in a little of every class: no sample gets probability zero."""
    return (1 - floor) * leaf_classes + floor / len(leaf_classes)


@dataclass(frozen=True)
class Path:
    """Expected cost at full steepness, the penalties growing to their strength."""

    fractions: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0)
    max_iter: int = 20

    def apply(self, engine: Engine, theta: FloatArray, leaf_classes: FloatArray) -> FloatArray:
        problem = engine.problem
        leaves = leaf_classes
        engine.forget(problem.steepness)
        weight = 20.0 * problem.samples.class_totals.sum()
        for fraction in self.fractions:
            leaves = hard_leaves(problem, theta, leaves)
            engine.run(theta, leaves, Limits(self.max_iter, 1e-4, 1e-3, 2),
                       steepness=problem.steepness, strength=fraction, rate_weight=weight)
        return leaves


def hard_leaves(problem: TrainingProblem, theta: FloatArray, leaves: FloatArray) -> FloatArray:
    """Best pure leaf classes for the routing; the rates are left to the rate term."""
    relaxed = replace(problem, minimum_rates=np.zeros(problem.n_classes))
    return relaxed.best_leaves(problem.pin(unpack(theta, leaves))).leaf_classes


@dataclass(frozen=True)
class Polish:
    max_iter: int = 200
    rounds: int = 6

    def apply(self, engine: Engine, theta: FloatArray, leaves: FloatArray) -> FloatArray:
        problem = engine.problem
        weight = 20.0 * problem.samples.class_totals.sum()
        multipliers = np.zeros(problem.n_classes)
        for _ in range(self.rounds):
            engine.run(theta, leaves, Limits(self.max_iter, 1e-7, 1e-10, 5),
                       steepness=problem.steepness, multipliers=multipliers, rate_weight=weight)
            tree = unpack(theta, leaves)
            shortfall = problem.minimum_rates - problem.rates(tree)
            better = hard_leaves(problem, theta, leaves)
            if np.max(shortfall) <= 1e-9 and np.array_equal(better, leaves):
                break
            leaves = better
            multipliers = np.maximum(0.0, multipliers + weight * shortfall)
        return leaves


@dataclass(frozen=True)
class NativeSolver:
    name: str = "native"
    start_rules: tuple[str, ...] = ("groups", "points")
    releases_gil: bool = True
    zero_threshold: float = 0.0
    warm: WarmUp = WarmUp()
    path: Path = Path()
    polish: Polish = Polish()

    def solve(self, problem: TrainingProblem, start: Start, budget: Budget) -> Solution:
        began = time.perf_counter()
        theta = pack(start.parameters)
        leaves = start.parameters.leaf_classes
        engine = Engine(problem)
        if start.rule != "given" and self.warm.steepness:
            small = stratified(problem.samples, self.warm.rows)
            warm = engine if small is problem.samples else Engine(problem, small)
            leaves = self.warm.apply(warm, theta, leaves)
        leaves = self.path.apply(engine, theta, leaves)
        leaves = self.polish.apply(engine, theta, leaves)
        tree = unpack(theta, leaves)
        try:
            tree = problem.best_leaves(tree)
            status = Status.ACCEPTABLE
        except InfeasibleLeafStep:
            status = Status.INFEASIBLE
        seconds = time.perf_counter() - began
        return Solution.measure(problem, tree, status, n_iter=engine.iterations,
                                seconds=seconds, solver=self.name, message=f"{engine.calls}")
