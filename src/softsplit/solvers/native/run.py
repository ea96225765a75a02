"""One problem's arrays around the compiled descent, and the clock of a run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.block_pass import complete_forest
from softsplit.engines.samples import Samples
from softsplit.problem.leaves import cheapest_assignment
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import Budget
from softsplit.solvers.native.bundles import (
    MEMORY,
    Smooth,
    SmoothReference,
    Workspace,
    WorkspaceReference,
    smooth_reference,
    workspace_reference,
)
from softsplit.solvers.native.descent import DONE, NEVER, NO_NEWTON, PAIRS, STALLED, Limits, descend
from softsplit.solvers.native.faces import Sparse
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import TreeParameters

SLICE_SECONDS = 0.2
"""Compiled code cannot look at the clock: long descents return to Python this often."""

SLOW_NEWTON = 3e-9
"""Seconds of a Newton step for each product in it, on a slow machine."""

USUAL = 0.25
"""Part of that which it takes on others."""

LATE = 0.3
"""Seconds by which a step may end after the time limit."""


class OutOfBudget(Exception):
    """The time or the iterations of a run are used up."""


@dataclass
class Meter:
    """Iterations and calls of one run against its budget."""

    budget: Budget
    max_iter: int
    iterations: int = 0
    calls: int = 0
    seconds_per_iteration: float = 0.0

    def allowance(self, wanted: int, guess: float) -> int:
        """Iterations that may be run before the clock is looked at again.

        ``guess`` is the time of an iteration in seconds, used until one has been measured.
        """
        if self.iterations >= self.max_iter or self.budget.exhausted:
            raise OutOfBudget
        pace = max(self.seconds_per_iteration or guess, 1e-9)
        return max(1, min(wanted, self.max_iter - self.iterations, int(SLICE_SECONDS / pace)))

    def record(self, iterations: int, calls: int, seconds: float) -> None:
        self.iterations += iterations
        self.calls += calls
        self.seconds_per_iteration = seconds / max(iterations, 1)


class Engine:
    """Descents on one problem, over all its rows or a subset of them."""

    def __init__(
        self, problem: TrainingProblem, meter: Meter, samples: Samples | None = None
    ) -> None:
        self.problem = problem
        self.meter = meter
        self.samples = samples or problem.samples
        self.ended = False
        """Whether the last descent ended by itself rather than by its iteration limit."""
        self.rate_weight = 20.0 * problem.samples.n_rows * problem.cost_unit
        self._inverse, self._diagonal = self.samples.gram.inverse, self.samples.gram.diagonal
        self.work = self._workspace(problem.free_branches)
        self._plain = self._smooth_part()
        self.forget(problem.steepness)

    def _workspace(self, free: NDArray[np.bool_]) -> Workspace:
        """Arrays for a theta of one row per entry of ``free``."""
        problem, n_rows = self.problem, self.samples.n_rows
        branches, width = len(free), problem.n_features + 1
        return Workspace(
            scores=np.empty((branches, n_rows)),
            slopes=np.empty((branches, n_rows)),
            mass=np.empty((problem.n_classes, problem.topology.n_leaves)),
            steps=np.zeros((MEMORY, branches, width)),
            changes=np.zeros((MEMORY, branches, width)),
            products=np.ones(MEMORY),
            counters=np.zeros(4, dtype=np.int64),
            active=np.zeros(problem.n_classes),
            damping=np.zeros(1),
            inverse=np.array(self._inverse),
            diagonal=np.array(self._diagonal),
            free=free,
            floor=problem.global_floor,
        )

    @cached_property
    def _reference(self) -> WorkspaceReference:
        made: WorkspaceReference = reference(workspace_reference, self.work)
        return made

    def forget(self, steepness: float) -> None:
        """Drop the curvature pairs; set the preconditioner for gates of this steepness.

        The curvature of a gate is of the order of its squared steepness.
        """
        self.work.counters[PAIRS] = 0
        self.work.damping[0] = 0.0
        self.work.inverse[...] = self._inverse * (16.0 / steepness**2)
        self.work.diagonal[...] = self._diagonal * (16.0 / steepness**2)

    @property
    def mass(self) -> FloatArray:
        """Leaf masses at the point of the last evaluation, (n_classes, n_leaves)."""
        return self.work.mass

    def rates(self, leaf_classes: FloatArray) -> FloatArray:
        """Class rates at the point of the last evaluation, with these leaf classes."""
        return np.sum(self.problem.shares(self.mass) * leaf_classes, axis=1)

    def cheapest_leaves(self, leaf_classes: FloatArray) -> FloatArray:
        """Cheapest leaf classes for the masses of the last evaluation, every class covered.

        The minimum rates are left to the rate terms of the descents.
        """
        if self.problem.block is None:
            return cheapest_assignment(self.problem.loss.leaf_gradient(self.mass))
        none = np.zeros(self.problem.n_classes)
        return self.problem.leaves_for(self.mass, leaf_classes, none)

    def arguments(
        self, leaf_classes: FloatArray
    ) -> tuple[SmoothReference, Sparse, WorkspaceReference]:
        """What the parts of a descent with these leaf classes take."""
        smooth = self._smooth(self.problem.loss.table(leaf_classes), leaf_classes, None, None)
        return reference(smooth_reference, smooth), self._sparse(1.0), self._reference

    def descend(
        self,
        theta: FloatArray,
        leaf_classes: FloatArray,
        limits: Limits,
        *,
        steepness: float | None = None,
        strength: float = 1.0,
        multipliers: FloatArray | None = None,
        rate_weight: float | None = None,
        row_weights: FloatArray | None = None,
    ) -> float:
        """Lower cost + rate terms + ``strength`` x penalties over ``theta``, in place; F.

        ``row_weights`` replace those of the samples.
        """
        table = self.problem.loss.table(leaf_classes)
        smooth = self._smooth(table, leaf_classes, steepness, multipliers)
        if rate_weight is not None:
            smooth = smooth._replace(rate_weight=float(rate_weight))
        if row_weights is not None:
            smooth = smooth._replace(row_weights=row_weights)
        return self._run(theta, smooth, self._sparse(strength), limits)

    def descend_log(
        self,
        theta: FloatArray,
        leaf_classes: FloatArray,
        limits: Limits,
        steepness: float,
        row_weights: FloatArray,
    ) -> float:
        """Lower the log-loss over ``theta``, in place, without penalties."""
        smooth = self._smooth(leaf_classes, leaf_classes, steepness, None)._replace(
            row_weights=row_weights, logarithmic=True
        )
        return self._run(theta, smooth, self._sparse(0.0), limits)

    def _smooth(
        self,
        table: FloatArray,
        leaf_classes: FloatArray,
        steepness: float | None,
        multipliers: FloatArray | None,
    ) -> Smooth:
        return self._plain._replace(
            table=np.ascontiguousarray(table),
            leaf_classes=np.ascontiguousarray(leaf_classes),
            multipliers=self._plain.multipliers if multipliers is None else multipliers,
            steepness=self._plain.steepness if steepness is None else float(steepness),
        )

    def _smooth_part(self) -> Smooth:
        """What all descents of this engine share: everything but the leaves."""
        samples, problem = self.samples, self.problem
        unset = np.zeros((problem.n_classes, problem.topology.n_leaves))
        return Smooth(
            samples.features,
            samples.starts,
            samples.weights,
            samples.class_totals,
            unset,
            unset,
            problem.minimum_rates,
            np.zeros(problem.n_classes),
            self.rate_weight,
            float(problem.steepness),
            False,
            complete_forest(problem.topology.n_branches),
            *proximal_term(problem),
        )

    def _sparse(self, fraction: float) -> Sparse:
        local, global_ = self.problem.penalties.local, self.problem.penalties.global_
        one, two = local.surrogate, global_.surrogate
        return Sparse(
            one.kind, one.first, one.second, float(fraction * local.strength),
            two.kind, two.first, two.second, float(fraction * global_.strength),
        )  # fmt: skip

    def _run(self, theta: FloatArray, smooth: Smooth, sparse: Sparse, limits: Limits) -> float:
        left = limits.max_iter
        unit = self.problem.cost_unit
        arguments = reference(smooth_reference, smooth), sparse
        limits = limits._replace(tol=limits.tol * unit, least=limits.least * unit)
        counters = self.work.counters
        # Newton steps may cost far more than others: the first is then timed by itself.
        newton_guess = SLOW_NEWTON * theta.size**2 * (self.samples.n_rows + theta.size)
        counters[STALLED] = counters[DONE] = counters[NO_NEWTON] = 0
        if left == 0:
            value, *_ = descend(theta, *arguments, limits, self._reference)
            return float(value)
        while True:
            allowed = self.meter.allowance(left, 1e-8 * self.work.scores.size * theta.shape[1])
            before_newton = limits.newton_from - int(counters[DONE])
            if before_newton >= 0 and newton_guess * allowed > SLICE_SECONDS:
                allowed = min(allowed, max(1, before_newton))
            part = limits._replace(max_iter=allowed)
            if USUAL * newton_guess > self.meter.budget.remaining + LATE:
                part = part._replace(newton_from=NEVER)  # it would end too late
            began = time.perf_counter()
            value, iterations, calls, _, ended = descend(theta, *arguments, part, self._reference)
            self.meter.record(iterations, calls, time.perf_counter() - began)
            left -= iterations
            if ended or left <= 0:
                self.ended = bool(ended)
                return float(value)


def reference(make: Callable[[Any], Any], bundle: Smooth | Workspace) -> Any:
    """What compiled functions take of a bundle.

    Numba runs a little Python for it. An interruption in there comes out as another error.
    """
    try:
        return make(bundle)
    except SystemError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise


def proximal_term(problem: TrainingProblem) -> tuple[float, FloatArray]:
    """psi and the centre as a theta; 0 and an empty array without a proximal term."""
    if problem.proximal is None:
        return 0.0, np.zeros((0, 0))
    return problem.proximal.strength, pack(problem.proximal.centre)


def pack(parameters: TreeParameters) -> FloatArray:
    """theta, shape (n_branches, n_features + 1): weights and threshold of each branch."""
    return np.ascontiguousarray(np.vstack([parameters.weights, parameters.thresholds]).T)


def unpack(theta: FloatArray, leaf_classes: FloatArray) -> TreeParameters:
    """The tree with the branches ``theta``."""
    return TreeParameters(
        np.ascontiguousarray(theta[:, :-1].T), theta[:, -1].copy(), np.array(leaf_classes)
    )
