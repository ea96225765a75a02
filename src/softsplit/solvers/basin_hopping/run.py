"""Descents on one problem: the engine of its rows answers, and a clock is looked at in between."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from softsplit.engines.base import RowEngine
from softsplit.engines.compiled import NO_ROWS, CompiledRows, InMemory, Passes
from softsplit.engines.gram import Metric
from softsplit.engines.outer import IDENTITY
from softsplit.problem.leaves import RATE_SLACK, ClassAssignment
from softsplit.problem.loss import ExpectedCost, Loss
from softsplit.problem.penalties import of_single_features
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.active_set.descent import descend_elsewhere, descend_in_memory, forget
from softsplit.solvers.active_set.faces import Sparse
from softsplit.solvers.active_set.objective import AddedTerms, RemoteObjective, rate_terms
from softsplit.solvers.active_set.rated import RatedObjective
from softsplit.solvers.active_set.state import (
    CALLS,
    CHOSEN,
    ENDED,
    EVALUATE_ONLY,
    NEVER,
    PAIRS,
    PHASE,
    STEPS,
    TURN,
    VALUE,
    Added,
    DescentLimits,
    new_state,
)
from softsplit.solvers.base import Solution
from softsplit.solvers.basin_hopping.budget import IterationBudget, StepTimes
from softsplit.solvers.starts.grouping import GreedyTrees
from softsplit.support.arrays import FloatArray
from softsplit.support.bundle import Bundle, bundled


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
        self._bundled_state = bundled(self.state)
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
        self._terms = AddedTerms(
            problem.rows.group_totals,
            problem.minimum_rates,
            np.zeros(self.n_rates),
            self.rate_weight,
            0.0 if problem.proximal is None else problem.proximal.strength,
            centre,
            problem.ridge,
        )
        self.passes: Passes | None = None
        self._remote: RemoteObjective | None = None
        self._bundles: dict[tuple[int, float], tuple[Passes, Bundle]] = {}
        self._sums: dict[tuple[float, float | None], tuple[Added, Bundle]] = {}
        self._scaled: dict[DescentLimits, DescentLimits] = {}
        in_memory = isinstance(self._machine, CompiledRows) and problem.block is None
        self._costs = _costs_of(problem.loss) if in_memory else NO_ROWS
        self.forget(problem.steepness)

    @cached_property
    def greedy(self) -> GreedyTrees:
        """Greedy trees of this problem, from which a search draws."""
        return GreedyTrees(self.problem)

    @cached_property
    def _times(self) -> StepTimes:
        n_rows = self.rows.n_rows if self.passes is None else self.passes.scores.shape[1]
        return StepTimes.of(self.state.gradient.size, n_rows, self.work.clock)

    def on_few_rows(self, limit: int) -> DescentRun:
        """Descents over a sample of about ``limit`` rows in this process; itself if that is all."""
        few = self.rows.sample(limit)
        if self._machine is not None and few is getattr(self.rows, "samples", None):
            return self
        double = replace(few, features=np.asarray(few.features, dtype=float))
        return DescentRun(self.problem, self.work, CompiledRows(double))

    def forget(self, steepness: float) -> None:
        """Drop the curvature pairs; set the preconditioner for gates of this steepness."""
        forget(self._bundled_state, self._metric, float(steepness))

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

    def price(self, solution: Solution) -> None:
        """Begin with the multipliers of ``solution``: trees are then compared by its Lagrangian."""
        if self.limits is None or not solution.status.usable:
            return
        prices, n_groups = solution.kkt.multipliers, self.problem.n_groups
        minimum = np.flatnonzero(self.problem.minimum_rates)
        self._terms = self._terms._replace(
            multipliers=np.concatenate([prices[n_groups:], prices[minimum]])
        )
        self._sums.clear()

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
        return target - self.rates(leaf_values)

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
        seen: bool = False,
        choose: bool = False,
    ) -> float:
        """Lower loss + rate terms + ``strength`` x penalties over ``theta``, in place; F.

        ``rows`` and ``loss`` replace those of the problem; ``rows`` differ in weights only. With
        ``seen`` the last descent has ended at this point, and on this function: it is not evaluated
        again. With ``choose`` the cheapest leaves come first, in place, if they lower F with its
        rate terms: they may starve a rare class, which the rate terms then cannot mend.
        """
        self.ended = False
        if choose and len(self._costs) == 0:
            self._choose_leaves(theta, leaf_values, seen)
            seen, choose = True, False
        if seen and limits.max_iter == 0 and not choose:
            return self.value
        added = self.added(strength, multipliers, rate_weight)
        if not seen:
            self._ask_for(
                leaf_values,
                self.problem.loss if loss is None else loss,
                self.problem.steepness if steepness is None else float(steepness),
                added[0].terms,
                rows,
                limits,
            )
        if self._branches is None:
            return self._run(theta, leaf_values, added, limits, seen, choose)
        if len(self._branches) == 0:
            self.ended = True
            assert self.passes is not None
            return self._without_branches(self.passes, added[0].terms)
        part = np.ascontiguousarray(theta[self._branches])
        try:
            return self._run(part, leaf_values, added, limits, seen)
        finally:
            theta[self._branches] = part  # a descent that is cut off has come this far

    def _choose_leaves(self, theta: FloatArray, leaf_values: FloatArray, seen: bool) -> None:
        """Take the cheapest leaves, in place, if they lower F; the last evaluation is of these."""
        value = self.descend(theta, leaf_values, EVALUATE_ONLY, seen=seen)
        cheapest = self.cheapest_leaves(leaf_values)
        if np.any(cheapest != leaf_values):
            other = self.descend(theta, cheapest, EVALUATE_ONLY)
            if other <= value:
                leaf_values[...] = cheapest
            else:
                self.descend(theta, leaf_values, EVALUATE_ONLY)
        self.state.numbers[CHOSEN] = min(value, self.value)

    @property
    def value(self) -> float:
        """F at the last evaluation that counted."""
        return float(self.state.numbers[VALUE])

    @property
    def chosen_value(self) -> float:
        """F with the leaves that the last descent with ``choose`` began with."""
        return float(self.state.numbers[CHOSEN])

    def _ask_for(
        self,
        leaf_values: FloatArray,
        loss: Loss,
        steepness: float,
        terms: AddedTerms,
        rows: RowEngine | None,
        limits: DescentLimits,
    ) -> None:
        """Prepare the evaluations of a descent."""
        rated, table = terms.rate_weight > 0, loss.table(leaf_values)
        if self.limits is not None and rated:
            self._remote = RatedObjective(
                self.limits, table, leaf_values, steepness, terms, self.state.free, rows
            )
        elif self._machine is None:
            self._remote = RemoteObjective(
                self.rows if rows is None else rows, table, leaf_values, loss.outer, steepness,
                terms, self.state.free,
            )  # fmt: skip
        else:
            engine = self._machine if rows is None else rows
            assert isinstance(engine, InMemory)
            room = self._room(engine, loss.outer, rated or limits.newton_from < NEVER)
            self.passes = engine.with_table(room, table, leaf_values, steepness)

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
    def _without_branches(passes: Passes, terms: AddedTerms) -> float:
        """Loss and rate terms where no branch is free."""
        block, value = passes.rows, passes.rows.cost_constant
        if terms.rate_weight > 0:
            none = np.zeros_like(terms.group_totals)
            value += rate_terms(block.rate_constants, terms, none, none.copy())
        return float(value)

    def added(
        self,
        strength: float = 1.0,
        multipliers: FloatArray | None = None,
        rate_weight: float | None = None,
    ) -> tuple[Added, Bundle]:
        """What is added to the loss, with both penalties at a part of their strengths."""
        key = strength, rate_weight
        if multipliers is None and key in self._sums:
            return self._sums[key]
        terms = self._terms
        if multipliers is not None:
            terms = terms._replace(multipliers=multipliers)
        if rate_weight is not None:
            terms = terms._replace(rate_weight=float(rate_weight))
        numbers: list[float] = []
        for penalty in (self.problem.penalties.local, self.problem.penalties.global_):
            kind = penalty.surrogate
            numbers += [kind.kind, kind.first, kind.second, float(strength * penalty.strength)]
        sparse = Sparse(*numbers, *self._bounds, *self._rows_of_weights, self._prices)  # type: ignore[arg-type,call-arg]
        added = Added(terms, sparse)
        both = added, bundled(added)
        return self._sums.setdefault(key, both) if multipliers is None else both

    def _bundled_passes(self, passes: Passes) -> Bundle:
        """Return ``passes`` as compiled functions take them; the last of each kind are kept."""
        kind = passes.outer, passes.steepness
        last, bundle = self._bundles.get(kind, (None, None))
        if bundle is None or last is None or last.rows is not passes.rows:
            bundle = bundled(passes)
            self._bundles[kind] = passes, bundle
        return bundle

    def _in_cost_units(self, limits: DescentLimits) -> DescentLimits:
        """Limits whose tolerances are those of this problem; made once for each."""
        if limits not in self._scaled:
            self._scaled[limits] = limits.in_units(self.problem.cost_unit)
        return self._scaled[limits]

    def _run(
        self,
        theta: FloatArray,
        leaf_values: FloatArray,
        added: tuple[Added, Bundle],
        limits: DescentLimits,
        seen: bool,
        choose: bool = False,
    ) -> float:
        """A descent in slices, with a look at the clock between them."""
        work, counters, passes, done = self.work, self.state.counters, self.passes, 0
        bundle = None if passes is None else self._bundled_passes(passes)
        part = limits = self._in_cost_units(limits)
        counters[PAIRS + 1 :] = 0  # it begins anew, with the curvature that is known
        if seen:
            counters[PHASE] = TURN
        while True:
            # 1. As many steps as may be made before the next look at the clock.
            if limits.max_iter > 0:
                part = work.allowed(limits, self._times, done)
                counters[STEPS] = counters[CALLS] = 0
                began = work.budget.now()
            # 2. These steps.
            if bundle is not None:
                leaves = leaf_values if choose else NO_ROWS
                descend_in_memory(
                    theta, leaves, self._costs, bundle, added[1], self._bundled_state, part,
                    choose,
                )  # fmt: skip
            else:
                assert self._remote is not None
                sparse, exhausted = added[0].sparse, lambda: work.budget.exhausted
                descend_elsewhere(theta, self._remote, sparse, part, self.state, exhausted)
            if limits.max_iter == 0:
                break
            # 3. The end, or another slice.
            steps = int(counters[STEPS])
            work.record(steps, int(counters[CALLS]), began)
            done += steps
            self.ended = bool(counters[ENDED])
            if self.ended or done >= limits.max_iter:
                break
            choose = False
        return self.value


def _costs_of(loss: Loss) -> FloatArray:
    """The costs of the paper's loss, for compiled leaf steps; (0, 0) for any other."""
    if isinstance(loss, ExpectedCost) and isinstance(loss.leaf_rule, ClassAssignment):
        return np.array(loss.costs, dtype=float, order="C")
    return NO_ROWS
