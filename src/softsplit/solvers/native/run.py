"""Descents on one problem: they ask the engine of its rows, and a clock is looked at in between."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from softsplit.engines.base import RowEngine
from softsplit.engines.compiled import (
    CompiledRows,
    InMemory,
    Passes,
    PassesReference,
    passes_reference,
)
from softsplit.engines.outer import IDENTITY
from softsplit.problem.groups import of_single_features
from softsplit.problem.loss import Loss
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import Budget
from softsplit.solvers.native.descent import (
    NEVER,
    Limits,
    descend,
    descend_elsewhere,
)
from softsplit.solvers.native.faces import Sparse
from softsplit.solvers.native.objective import RemoteObjective, Terms, rate_terms
from softsplit.solvers.native.state import (
    CALLS,
    DONE,
    ENDED,
    PAIRS,
    STEPS,
    VALUE,
    StateReference,
    new_state,
    state_reference,
)
from softsplit.support.arrays import FloatArray

SLICE_SECONDS = 0.2
"""Compiled code cannot look at the clock: long descents return to Python this often."""

SLOW_NEWTON = 3e-9
"""Seconds of a Newton step for each product in it, on a slow machine."""

USUAL = 0.25
"""Part of that which it takes on others."""

LATE = 0.3
"""Seconds by which a step may end after the time limit."""


LOOK = Limits(0, 0.0, 0.0, 1, NEVER)
"""Evaluate only."""


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


class DescentRun:
    """Descents on one problem, over all its rows or those of another engine.

    Attributes
    ----------
    ended : bool
        Whether the last descent ended by itself rather than by its iteration limit.
    rate_weight : float
        The usual weight of the rate terms.
    """

    def __init__(
        self, problem: TrainingProblem, meter: Meter, rows: RowEngine | None = None
    ) -> None:
        self.problem = problem
        self.meter = meter
        self.rows = problem.rows if rows is None else rows
        self.ended = False
        self.rate_weight = 20.0 * problem.rows.n_rows * problem.cost_unit
        self._machine = self.rows if isinstance(self.rows, InMemory) else None
        self._branches = None if self._machine is None else self._machine.branches
        self._metric = self.rows.metric()
        free, centre = problem.free_branches, np.zeros((0, 0))
        if problem.proximal is not None:
            centre = problem.proximal.centre.splits
        if self._branches is not None:
            free = np.ones(len(self._branches), dtype=bool)
            centre = np.ascontiguousarray(centre[self._branches]) if len(centre) else centre
        self.state = new_state(free, problem.n_classes, problem.global_floor, *self._metric)
        self._reference = state_reference(self.state)
        groups = problem.groups or of_single_features(problem.n_features)
        self._rows_of_weights = groups.places(len(free))
        self._terms = Terms(
            problem.rows.class_totals,
            problem.minimum_rates,
            np.zeros(problem.n_classes),
            self.rate_weight,
            0.0 if problem.proximal is None else problem.proximal.strength,
            centre,
            problem.ridge,
        )
        self.passes: Passes | None = None
        self._last: tuple[Passes, PassesReference] | None = None
        self._penalties: dict[float, Sparse] = {}
        self._scaled: dict[Limits, Limits] = {}
        self._remote: RemoteObjective | None = None
        self.forget(problem.steepness)

    def on_few_rows(self, limit: int) -> DescentRun:
        """Descents over a sample of about ``limit`` rows in this process; itself if that is all."""
        few = self.rows.sample(limit)
        if isinstance(self.rows, CompiledRows) and few is self.rows.samples:
            return self
        return DescentRun(self.problem, self.meter, CompiledRows(few))

    def forget(self, steepness: float) -> None:
        """Drop the curvature pairs; set the preconditioner for gates of this steepness.

        The curvature of a gate is of the order of its squared steepness.
        """
        state = self.state
        state.counters[PAIRS] = 0
        state.damping[0] = 0.0
        state.inverse[...] = self._metric.inverse * (16.0 / steepness**2)
        state.diagonal[...] = self._metric.diagonal * (16.0 / steepness**2)

    @property
    def by_table(self) -> FloatArray:
        """Derivative of the loss by its table at the last evaluation, (n_classes, n_leaves)."""
        if self._remote is not None:
            return self._remote.last.table
        assert self._machine is not None and self.passes is not None
        return self._machine.mass(self.passes)

    def rates(self, leaf_classes: FloatArray) -> FloatArray:
        """Class rates at the last evaluation, which had rate terms and these leaf classes."""
        if self._remote is not None:
            return np.sum(self.problem.shares(self._remote.last.mass) * leaf_classes, axis=1)
        assert self.passes is not None
        if self.passes.outer != IDENTITY:
            return self.passes.right / self._terms.class_totals
        return np.sum(self.problem.shares(self.by_table) * leaf_classes, axis=1)

    def cheapest_leaves(self, leaf_classes: FloatArray) -> FloatArray:
        """The best leaves for the routing of the last evaluation, by the rule of the loss.

        The minimum rates are left to the rate terms of the descents.
        """
        problem, by_table = self.problem, self.by_table
        mass = by_table if problem.loss.outer == IDENTITY else np.zeros_like(by_table)
        return problem.leaves_for(problem.loss.leaf_gradient(by_table), mass, leaf_classes)

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
        rows: RowEngine | None = None,
        loss: Loss | None = None,
    ) -> float:
        """Lower loss + rate terms + ``strength`` x penalties over ``theta``, in place; F.

        ``rows`` and ``loss`` replace those of the problem; ``rows`` differ in weights only.
        """
        loss = self.problem.loss if loss is None else loss
        steepness = self.problem.steepness if steepness is None else float(steepness)
        terms = self._terms
        if multipliers is not None:
            terms = terms._replace(multipliers=multipliers)
        if rate_weight is not None:
            terms = terms._replace(rate_weight=float(rate_weight))
        table = loss.table(leaf_classes)
        sparse, engine = self._sparse(strength), self.rows if rows is None else rows
        if self._machine is None:
            self._remote = RemoteObjective(
                engine, table, leaf_classes, loss.outer, steepness, terms, self.state.free
            )
            return self._run(theta, None, terms, sparse, limits)
        assert isinstance(engine, InMemory)
        self.passes = self._room(
            engine, loss.outer, terms.rate_weight > 0 or limits.newton_from < NEVER
        )
        self.passes = engine.asked(self.passes, table, leaf_classes, steepness)
        if self._branches is None:
            return self._run(theta, self.passes, terms, sparse, limits)
        if len(self._branches) == 0:
            self.ended = True
            return self._without_branches(self.passes, terms)
        part = np.ascontiguousarray(theta[self._branches])
        try:
            return self._run(part, self.passes, terms, sparse, limits)
        finally:
            theta[self._branches] = part  # a descent that is cut off has come this far

    def arguments(
        self, leaf_classes: FloatArray
    ) -> tuple[PassesReference, Terms, Sparse, StateReference]:
        """What the parts of a descent over rows in memory take, with these leaf classes."""
        assert self._machine is not None
        problem = self.problem
        passes = self._room(self._machine, problem.loss.outer, True)
        table = problem.loss.table(leaf_classes)
        self.passes = self._machine.asked(passes, table, leaf_classes, problem.steepness)
        return self._referenced(self.passes), self._terms, self._sparse(1.0), self._reference

    def _room(self, engine: InMemory, outer: int, curved: bool) -> Passes:
        """Arrays for passes with this outer function, those of the last descent if they will do.

        ``curved`` if class rates or Newton steps are asked for, which take more of them.
        """
        bent = outer != IDENTITY and curved
        topology = self.problem.topology
        if self.passes is None or (bent and len(self.passes.bends) == 0):
            return engine.passes(topology.n_branches, topology.n_leaves, outer, bent)
        return self.passes if self.passes.outer == outer else self.passes._replace(outer=outer)

    @staticmethod
    def _without_branches(passes: Passes, terms: Terms) -> float:
        """Loss and rate terms where no branch is free."""
        block, value = passes.rows, passes.rows.cost_constant
        if terms.rate_weight > 0:
            none = np.zeros_like(terms.class_totals)
            value += rate_terms(block.rate_constants, terms, none, none.copy())
        return float(value)

    def _sparse(self, fraction: float) -> Sparse:
        """Both penalties at a part of their strengths; made once for each."""
        if fraction not in self._penalties:
            local, global_ = self.problem.penalties.local, self.problem.penalties.global_
            one, two = local.surrogate, global_.surrogate
            self._penalties[fraction] = Sparse(
                one.kind, one.first, one.second, float(fraction * local.strength),
                two.kind, two.first, two.second, float(fraction * global_.strength),
                float(self.problem.bound), *self._rows_of_weights,
            )  # fmt: skip
        return self._penalties[fraction]

    def _in_cost_units(self, limits: Limits) -> Limits:
        """Limits whose tolerances are those of this problem; made once for each."""
        if limits not in self._scaled:
            unit = self.problem.cost_unit
            self._scaled[limits] = limits._replace(tol=limits.tol * unit, least=limits.least * unit)
        return self._scaled[limits]

    def _referenced(self, passes: Passes) -> PassesReference:
        """What compiled functions take of ``passes``; the last one is kept."""
        if self._last is None or self._last[0] is not passes:
            self._last = passes, passes_reference(passes)
        return self._last[1]

    def _run(
        self,
        theta: FloatArray,
        passes: Passes | None,
        terms: Terms,
        sparse: Sparse,
        limits: Limits,
    ) -> float:
        """A descent in slices, with a look at the clock between them."""
        left, limits = limits.max_iter, self._in_cost_units(limits)
        counters = self.state.counters
        counters[PAIRS + 1 :] = 0  # it begins anew, with the curvature that is known
        reference = None if passes is None else self._referenced(passes)
        if left == 0 and reference is not None:
            descend(theta, reference, terms, sparse, limits, self._reference)
            return float(self.state.numbers[VALUE])
        n_rows = self.rows.n_rows if passes is None else passes.scores.shape[1]
        # Newton steps may cost far more than others: the first is then timed by itself.
        newton_guess = SLOW_NEWTON * theta.size**2 * (n_rows + theta.size)
        guess = 1e-8 * n_rows * theta.size
        while True:
            part = limits
            if left > 0:
                allowed = self.meter.allowance(left, guess)
                before_newton = limits.newton_from - int(counters[DONE])
                if before_newton >= 0 and newton_guess * allowed > SLICE_SECONDS:
                    allowed = min(allowed, max(1, before_newton))
                part = limits._replace(max_iter=allowed)
                if USUAL * newton_guess > self.meter.budget.remaining + LATE:
                    part = part._replace(newton_from=NEVER)  # it would end too late
            began = time.perf_counter()
            counters[STEPS] = counters[CALLS] = 0
            if reference is None:
                assert self._remote is not None
                descend_elsewhere(
                    theta, self._remote, sparse, part, self.state, self._reference,
                    lambda: self.meter.budget.exhausted,
                )  # fmt: skip
            else:
                descend(theta, reference, terms, sparse, part, self._reference)
            if limits.max_iter == 0:
                return float(self.state.numbers[VALUE])
            seconds = time.perf_counter() - began
            self.meter.record(int(counters[STEPS]), int(counters[CALLS]), seconds)
            left -= int(counters[STEPS])
            if counters[ENDED] or left <= 0:
                self.ended = bool(counters[ENDED])
                return float(self.state.numbers[VALUE])
