"""Descents on one problem: the engine of its rows answers, and a clock is looked at in between.

Whole programs of descents (program.py) run in one call where they surely end before the clock has
to be looked at; the bits are those of their descents one by one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from softsplit.engines.base import RowEngine
from softsplit.engines.compiled import (
    CompiledRows,
    InMemory,
    Passes,
    PassesReference,
    passes_reference,
)
from softsplit.engines.gram import Metric
from softsplit.engines.outer import IDENTITY
from softsplit.problem.leaves import RATE_SLACK, ClassAssignment
from softsplit.problem.loss import ExpectedCost, Loss
from softsplit.problem.penalties import of_single_features
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.active_set.descent import (
    CALLS,
    DONE,
    ENDED,
    NEVER,
    PAIRS,
    STEPS,
    VALUE,
    DescentLimits,
    DescentState,
    descend_elsewhere,
    new_state,
    state_reference,
)
from softsplit.solvers.active_set.faces import Sparse
from softsplit.solvers.active_set.objective import RemoteObjective, Terms, rate_terms
from softsplit.solvers.active_set.program import (
    ANEW,
    EVALUATIONS,
    GIVEN_UP,
    ITERATIONS,
    OBJECTIVE,
    Program,
    follow,
    forget,
    line_of,
)
from softsplit.solvers.active_set.rated import RatedObjective
from softsplit.solvers.base import Budget, OutOfBudget, Solution
from softsplit.solvers.starts.grouping import GreedyTrees
from softsplit.support.arrays import FloatArray


@dataclass(frozen=True)
class ClockOptions:
    """How often compiled code, which cannot look at the clock, comes back to Python for it.

    Times are of one core of the machines on which the library was measured, and rough.
    """

    slice_seconds: float = 0.2
    """Long descents return to Python this often."""

    first_order_seconds: float = 1e-8
    """Time of a first-order step for each row and coefficient, before one was measured."""

    newton_seconds: float = 3e-9
    """Time of a Newton step for each product in it, on a slow machine."""

    usual_part: float = 0.25
    """Part of that which it takes on others."""

    late_seconds: float = 0.3
    """A step may end so much after the time limit."""


@dataclass(frozen=True)
class StepTimes:
    """Estimated seconds of steps over ``n_rows`` rows and ``size`` coefficients."""

    size: int
    n_rows: int
    clock: ClockOptions = ClockOptions()

    @property
    def first_order(self) -> float:
        """Of a first-order step."""
        return self.clock.first_order_seconds * self.n_rows * self.size

    @property
    def newton(self) -> float:
        """Of a Newton step, on a slow machine."""
        return self.clock.newton_seconds * self.size**2 * (self.n_rows + self.size)

    def within_a_slice(self, steps: int, newton: int) -> bool:
        """Return whether so many steps and Newton steps will usually end within a slice."""
        seconds = steps * self.first_order + newton * self.clock.usual_part * self.newton
        return seconds <= self.clock.slice_seconds


@dataclass
class IterationBudget:
    """Iterations and calls of one run against its budget."""

    budget: Budget
    max_iter: int
    iterations: int = 0
    calls: int = 0
    seconds_per_iteration: float = 0.0
    clock: ClockOptions = ClockOptions()

    @property
    def left(self) -> int:
        """Iterations that may still be made."""
        return self.max_iter - self.iterations

    def check(self) -> None:
        """Raise ``OutOfBudget`` if nothing is left."""
        if self.left <= 0 or self.budget.exhausted:
            raise OutOfBudget

    def allowance(self, wanted: int, times: StepTimes, before_newton: int) -> int:
        """Return the iterations that may be run before the clock is looked at again.

        ``times`` are used until an iteration has been measured; ``before_newton`` of them come
        before the first Newton step. That may cost far more than others: it is then timed by
        itself.
        """
        self.check()
        seconds = self.clock.slice_seconds
        pace = max(self.seconds_per_iteration or times.first_order, 1e-9)
        allowed = max(1, min(wanted, self.left, int(seconds / pace)))
        if before_newton >= 0 and times.newton * allowed > seconds:
            return min(allowed, max(1, before_newton))
        return allowed

    def too_late(self, times: StepTimes) -> bool:
        """Return whether a Newton step would end too long after the time limit."""
        late = self.budget.remaining + self.clock.late_seconds
        return self.clock.usual_part * times.newton > late

    def record(self, iterations: int, calls: int, began: float) -> None:
        """Record that so much was done since ``began`` of the clock."""
        self.iterations += iterations
        self.calls += calls
        self.seconds_per_iteration = (self.budget.now() - began) / max(iterations, 1)


class ProgramEnd(NamedTuple):
    """Where a program has ended: F, the leaves, and whether it was given up."""

    value: float
    leaf_values: FloatArray
    given_up: bool


class DescentRun:
    """Descents on one problem, over all its rows or those of another engine.

    Attributes
    ----------
    ended : bool
        Whether the last descent ended by itself rather than by its iteration limit.
    rate_weight : float
        The usual weight of the rate terms.
    limits : RateLimits or None
        Requirements on rates of any rows, with the minimum rates of the classes among them:
        descents over all rows then ask the engine of their cells (rated.py).
    n_rates : int
        Rates that have a multiplier: those of the classes, or the lines of ``limits``.
    """

    def __init__(
        self, problem: TrainingProblem, work: IterationBudget, rows: RowEngine | None = None
    ) -> None:
        self.problem = problem
        self.work = work
        self.rows = problem.rows if rows is None else rows
        self.ended = False
        self.rate_weight = 20.0 * problem.rows.n_rows * problem.cost_unit
        self.limits, self.n_rates = None, problem.n_groups
        if problem.rate_limits is not None and rows is None:
            self.limits = problem.rate_limits.with_minimum(problem.minimum_rates)
            self.n_rates = len(self.limits)
        compiled = isinstance(self.rows, InMemory) and self.limits is None
        self._machine = self.rows if isinstance(self.rows, InMemory) and compiled else None
        self._branches = None if self._machine is None else self._machine.branches
        self._metric = Metric(*map(np.ascontiguousarray, self.rows.metric()))
        free, centre = problem.free_branches, np.zeros((0, 0))
        if problem.proximal is not None:
            centre = problem.proximal.centre.splits
        if self._branches is not None:
            free = np.ones(len(self._branches), dtype=bool)
            centre = np.ascontiguousarray(centre[self._branches]) if len(centre) else centre
        self.state = new_state(free, self.n_rates, problem.global_floor, *self._metric)
        self._reference = state_reference(self.state)
        groups = problem.feature_groups or of_single_features(problem.n_features)
        self._rows_of_weights = groups.places(len(free))
        self._prices = np.ones(problem.n_features)
        if groups.prices is not None:
            self._prices = groups.prices[groups.of]
        bounds = problem.bounds
        if self._branches is not None:
            bounds = bounds.restrict(branches=self._branches)
        low, high = bounds.splits
        self._bounds = low.ravel(), high.ravel()
        self._terms = Terms(
            problem.rows.group_totals,
            problem.minimum_rates,
            np.zeros(self.n_rates),
            self.rate_weight,
            0.0 if problem.proximal is None else problem.proximal.strength,
            centre,
            problem.ridge,
        )
        self.passes: Passes | None = None
        self._last: tuple[Passes, PassesReference] | None = None
        self._penalties: dict[float, Sparse] = {}
        self._scaled: dict[DescentLimits, DescentLimits] = {}
        self._others: tuple[Passes, FloatArray, PassesReference] | None = None
        self._result = np.zeros(4)
        self._no_leaves = np.zeros((problem.n_groups, problem.topology.n_leaves))
        self._costs = _costs_of(problem.loss)
        known = len(self._costs) > 0 and problem.block is None
        self._whole = known and compiled and isinstance(self.rows, CompiledRows)
        self._remote: RemoteObjective | None = None
        self.forget(problem.steepness)

    @cached_property
    def greedy(self) -> GreedyTrees:
        """Greedy trees of this problem, from which a search draws."""
        return GreedyTrees(self.problem)

    def on_few_rows(self, limit: int) -> DescentRun:
        """Descents over a sample of about ``limit`` rows in this process; itself if that is all."""
        few = self.rows.sample(limit)
        if self._machine is not None and few is getattr(self.rows, "samples", None):
            return self
        double = replace(few, features=np.asarray(few.features, dtype=float))
        return DescentRun(self.problem, self.work, CompiledRows(double))

    def forget(self, steepness: float) -> None:
        """Drop the curvature pairs; set the preconditioner for gates of this steepness."""
        forget(self._reference, self._metric, float(steepness))

    @property
    def by_table(self) -> FloatArray:
        """Derivative of the loss by its table at the last evaluation, (n_groups, n_leaves)."""
        if self._remote is not None:
            return self._remote.last.table
        assert self._machine is not None and self.passes is not None
        return self._machine.mass(self.passes)

    def rates(self, leaf_values: FloatArray) -> FloatArray:
        """Class rates at the last evaluation, which had rate terms and these leaf classes."""
        if self._remote is not None:
            return np.sum(self.problem.shares(self._remote.last.mass) * leaf_values, axis=1)
        assert self.passes is not None
        if self.passes.outer != IDENTITY:
            return self.passes.correct_mass / self._terms.group_totals
        return np.sum(self.problem.shares(self.by_table) * leaf_values, axis=1)

    def price(self, found: Solution) -> None:
        """Begin with the multipliers of ``found``: trees are then compared by its Lagrangian."""
        if self.limits is None or not found.status.usable:
            return
        prices, n_groups = found.kkt.multipliers, self.problem.n_groups
        minimum = np.flatnonzero(self.problem.minimum_rates)
        self._terms = self._terms._replace(
            multipliers=np.concatenate([prices[n_groups:], prices[minimum]])
        )

    @property
    def multipliers(self) -> FloatArray:
        """The multipliers of the rates with which descents begin, (n_rates,)."""
        return self._terms.multipliers

    def lacking(self, leaf_values: FloatArray, margin: float) -> FloatArray:
        """What rates lacked at the last evaluation of what is asked for and ``margin`` more.

        Between two bounds that are close the margin is no more than half of what is between them.
        """
        if isinstance(self._remote, RatedObjective):
            assert self.limits is not None
            return self._remote.short + np.minimum(margin, self.limits.room)
        target = np.minimum(self.problem.minimum_rates + margin, 1.0)
        lack: FloatArray = target - self.rates(leaf_values)
        return lack

    def rates_hold(self, leaf_values: FloatArray) -> bool:
        """Whether all rates were met at the last evaluation, to a rounding error."""
        if isinstance(self._remote, RatedObjective):
            return bool(np.max(self._remote.short) <= RATE_SLACK)
        return bool(np.all(self.rates(leaf_values) >= self.problem.minimum_rates - RATE_SLACK))

    def cheapest_leaves(self, leaf_values: FloatArray) -> FloatArray:
        """The best leaves for the routing of the last evaluation, by the rule of the loss.

        The minimum rates are left to the rate terms of the descents.
        """
        problem, by_table = self.problem, self.by_table
        mass = by_table if problem.loss.outer == IDENTITY else np.zeros_like(by_table)
        return problem.leaves_for(problem.loss.leaf_gradient(by_table), mass, leaf_values)

    def descend(
        self,
        theta: FloatArray,
        leaf_values: FloatArray,
        limits: DescentLimits,
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
        table = loss.table(leaf_values)
        sparse, engine = self._sparse(strength), self.rows if rows is None else rows
        if self.limits is not None and terms.rate_weight > 0:
            self._remote = RatedObjective(
                self.limits, table, leaf_values, steepness, terms, self.state.free, rows
            )
            return self._run(theta, None, terms, sparse, limits)
        if self._machine is None:
            self._remote = RemoteObjective(
                engine, table, leaf_values, loss.outer, steepness, terms, self.state.free
            )
            return self._run(theta, None, terms, sparse, limits)
        assert isinstance(engine, InMemory)
        self.passes = self._room(
            engine, loss.outer, terms.rate_weight > 0 or limits.newton_from < NEVER
        )
        self.passes = engine.with_table(self.passes, table, leaf_values, steepness)
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

    def in_one_go(
        self,
        program: Program,
        theta: FloatArray,
        leaf_values: FloatArray,
        aim: float,
        rows: RowEngine | None = None,
    ) -> ProgramEnd | None:
        """Where a program leads from ``theta``, which moves in place; see ``program.Descend``.

        None if it has to go through its descents one by one: it may take longer than a slice or
        more iterations than are left, or the rows or leaves are not such that compiled code knows.
        """
        problem, leaves = self.problem, np.array(leaf_values, dtype=float)
        lines = program.lines(problem.steepness, problem.cost_unit)
        short = StepTimes(theta.size, self.rows.n_rows).within_a_slice(
            lines.iterations, lines.newton
        )
        if not self._whole or not short or not 0 < lines.iterations <= self.work.left:
            return None
        self.work.check()
        assert isinstance(self.rows, CompiledRows)
        self.passes = self.rows.with_table(
            self._room(self.rows, IDENTITY, True), problem.loss.table(leaves), leaves,
            problem.steepness,
        )  # fmt: skip
        reference = self._referenced(self.passes)
        others = reference if rows is None else self._reweighed(self.passes, rows)
        result, began = self._result, self.work.budget.now()
        follow(
            lines.array, theta, leaves, float(aim), self._costs, self._metric, reference, others,
            self._terms, self._sparse(1.0), self._reference, result,
        )  # fmt: skip
        self.work.record(int(result[ITERATIONS]), int(result[EVALUATIONS]), began)
        return ProgramEnd(float(result[OBJECTIVE]), leaves, bool(result[GIVEN_UP]))

    def _reweighed(self, passes: Passes, rows: RowEngine) -> PassesReference:
        """``passes`` with the row weights of another engine."""
        assert isinstance(rows, CompiledRows)
        if self._others is None or self._others[0] is not passes:
            weights = np.empty(rows.n_rows)
            other = passes._replace(rows=passes.rows._replace(weights=weights))
            self._others = passes, weights, passes_reference(other)
        self._others[1][...] = rows.samples.weights
        return self._others[2]

    def arguments(self, leaf_values: FloatArray) -> tuple[Passes, Terms, Sparse, DescentState]:
        """What the parts of a descent over rows in memory take, with these leaf classes."""
        assert self._machine is not None
        problem = self.problem
        passes = self._room(self._machine, problem.loss.outer, True)
        table = problem.loss.table(leaf_values)
        self.passes = self._machine.with_table(passes, table, leaf_values, problem.steepness)
        return self.passes, self._terms, self._sparse(1.0), self.state

    def _room(self, engine: InMemory, outer: int, curved: bool) -> Passes:
        """Arrays for passes with this outer function, those of the last descent if they will do.

        ``curved`` if class rates or Newton steps are asked for, which take more of them.
        """
        nonlinear = outer != IDENTITY and curved
        topology = self.problem.topology
        if self.passes is None or (nonlinear and len(self.passes.outer_curvature) == 0):
            return engine.passes(topology.n_branches, topology.n_leaves, outer, nonlinear)
        return self.passes if self.passes.outer == outer else self.passes._replace(outer=outer)

    @staticmethod
    def _without_branches(passes: Passes, terms: Terms) -> float:
        """Loss and rate terms where no branch is free."""
        block, value = passes.rows, passes.rows.cost_constant
        if terms.rate_weight > 0:
            none = np.zeros_like(terms.group_totals)
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
                *self._bounds, *self._rows_of_weights, self._prices,
            )  # fmt: skip
        return self._penalties[fraction]

    def _in_cost_units(self, limits: DescentLimits) -> DescentLimits:
        """Limits whose tolerances are those of this problem; made once for each."""
        if limits not in self._scaled:
            self._scaled[limits] = limits.in_units(self.problem.cost_unit)
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
        limits: DescentLimits,
    ) -> float:
        """A descent in slices, with a look at the clock between them."""
        left, limits = limits.max_iter, self._in_cost_units(limits)
        counters = self.state.counters
        if passes is None:
            counters[PAIRS + 1 :] = 0  # it begins anew, with the curvature that is known
        elif left == 0:
            self._descend(theta, passes, terms, sparse, limits, anew=True)
            self.ended = False
            return float(self.state.numbers[VALUE])
        n_rows = self.rows.n_rows if passes is None else passes.scores.shape[1]
        times, anew = StepTimes(theta.size, n_rows, self.work.clock), True
        while True:
            part = limits
            if left > 0:
                before_newton = limits.newton_from - (0 if anew else int(counters[DONE]))
                part = limits._replace(max_iter=self.work.allowance(left, times, before_newton))
                if self.work.too_late(times):
                    part = part._replace(newton_from=NEVER)
            began = self.work.budget.now()
            if passes is None:
                assert self._remote is not None
                counters[STEPS] = counters[CALLS] = 0
                descend_elsewhere(
                    theta, self._remote, sparse, part, self.state,
                    lambda: self.work.budget.exhausted,
                )  # fmt: skip
            else:
                self._descend(theta, passes, terms, sparse, part, anew)
            if limits.max_iter == 0:
                return float(self.state.numbers[VALUE])
            anew = False
            self.work.record(int(counters[STEPS]), int(counters[CALLS]), began)
            left -= int(counters[STEPS])
            if counters[ENDED] or left <= 0:
                self.ended = bool(counters[ENDED])
                return float(self.state.numbers[VALUE])

    def _descend(
        self,
        theta: FloatArray,
        passes: Passes,
        terms: Terms,
        sparse: Sparse,
        limits: DescentLimits,
        anew: bool,
    ) -> None:
        """A descent, or more of the last one: a program of one line."""
        line = np.array([line_of(limits, passes.steepness, outer=passes.outer)])
        line[0, ANEW] = anew
        reference = self._referenced(passes)
        follow(
            line, theta, self._no_leaves, 0.0, self._costs, self._metric, reference, reference,
            terms, sparse, self._reference, self._result,
        )  # fmt: skip


def _costs_of(loss: Loss) -> FloatArray:
    """The costs of the paper's loss, for compiled leaf steps; (0, 0) for any other."""
    if isinstance(loss, ExpectedCost) and isinstance(loss.leaf_rule, ClassAssignment):
        return np.array(loss.costs, dtype=float, order="C")
    return np.zeros((0, 0))
