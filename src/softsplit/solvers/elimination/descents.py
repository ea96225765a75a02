"""Descents over the rows of a problem: rows in memory (``RowDescents``), or behind an engine.

``RowDescents`` runs compiled L-BFGS (lbfgs.py) in slices, between which it looks at the budget.
Within bounds of the weights both take L-BFGS-B (Byrd, Lu, Nocedal and Zhu 1995).

The last descent over many rows of either goes on with the Hessian of a sample
(subsampled_newton.py): L-BFGS needs hundreds of passes where valleys are long.

``EngineDescents`` asks an engine for sums over all its rows, which may be anywhere. The sample
grows (``SampleSizes``): what some 20,000 rows leave open is settled on 100,000 before all rows are
asked; a quick engine is asked at once.

Units are those of support_tree.py. With m columns and unit = steepness / n_features an engine of
those columns is asked at steepness unit m, where weights are the same and

    threshold  mu   = (unit / 2 sum_j w_j - b) / (unit m)
    d / d w_j       = d / d a_j + 1 / (2 m) d / d mu          d / d b = - 1 / (unit m) d / d mu
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from softsplit.engines.base import Sums, columns_drawn_from, with_columns
from softsplit.engines.outer import IDENTITY, LOGARITHM
from softsplit.engines.samples import DrawnRows, Samples, centred
from softsplit.problem.bounds import Bounds
from softsplit.problem.leaves import CountedDistributions
from softsplit.problem.order import MonotoneOrder
from softsplit.problem.problem import TrainingProblem
from softsplit.problem.rates import RateLimits
from softsplit.solvers.base import Budget, OutOfBudget
from softsplit.solvers.elimination.lbfgs import (
    NO_INVERSE,
    descend,
    ended,
    new_memory,
    steps_of,
)
from softsplit.solvers.elimination.objective import (
    ClassMasses,
    RowMasses,
    Shrinkage,
    SmoothFunction,
    StandardisedRows,
    TaughtRows,
    by_log_odds,
    column_blocks,
    first_of_each_class,
    shrink,
    softmax,
)
from softsplit.solvers.elimination.options import DEFAULTS, EliminationOptions
from softsplit.solvers.elimination.ordered import ordered_coordinates, turned_leaves
from softsplit.solvers.elimination.second_order import hessian, inverse_fisher, row_function
from softsplit.solvers.elimination.subsampled_newton import SubsampledNewton
from softsplit.solvers.elimination.support_tree import SupportTree
from softsplit.support.arrays import FloatArray
from softsplit.support.heap import give_back


class AllRows(Protocol):
    """All rows of a problem, as steps under penalties and class rates see them."""

    problem: TrainingProblem
    budget: Budget
    options: EliminationOptions
    steps: int

    @property
    def n_rows(self) -> int:
        """Distinct rows."""

    def function(
        self, tree: SupportTree, shrinkage: Shrinkage, free: NDArray[np.bool_]
    ) -> SmoothFunction:
        """The smooth log-loss of all parameters of trees shaped like ``tree``."""

    def hessian(
        self, tree: SupportTree, ridge: float, prices: FloatArray | None
    ) -> FloatArray | None:
        """As ``second_order.hessian`` on all rows; None where that is not known."""

    def masses(self, tree: SupportTree) -> ClassMasses:
        """The class masses of trees shaped like ``tree``."""

    def sampled(self) -> AllRows | None:
        """The same over a sample in this process, of the rates too; None if the rows are there."""


def class_shares(problem: TrainingProblem) -> FloatArray:
    """Share of each class in the weight of all rows."""
    totals = problem.rows.class_totals
    return totals / totals.sum()


# --- rows in memory -------------------------------------------------------------------------------


class RowDescents:
    """Descents over rows in memory: all rows of a problem, or a sample of them.

    Attributes
    ----------
    frame : StandardisedRows
        The rows without the numbers of their features, which are all zero there: their shape,
        classes and weights.
    steps : int
        Steps taken so far.
    unit : float
        Weight of a row, in which ridges count.
    total : float
        Weight of all rows.
    compared : bool
        Whether trees are only compared: a race is then shorter.
    """

    def __init__(
        self,
        problem: TrainingProblem,
        budget: Budget,
        samples: Samples | DrawnRows,
        options: EliminationOptions = DEFAULTS,
        *,
        compared: bool = False,
    ) -> None:
        rule = problem.loss.leaf_rule
        assert isinstance(rule, CountedDistributions)
        unit = problem.steepness / problem.n_features
        self.problem, self.budget, self.options = problem, budget, options
        self.total = float(samples.weights.sum())
        self.unit = problem.row_unit
        nothing = np.broadcast_to(0.0, (samples.n_features, samples.n_rows))
        self.frame = StandardisedRows(nothing, samples.starts, samples.weights, rule.pseudo_counts)
        self._samples, self._scale = samples, unit
        self._rows: StandardisedRows | None = None
        self.taught: TaughtRows | None = None
        if (once := samples.distinct) is not None:
            features = unit * (once.features.astype(float, copy=False) - 0.5)
            known = once.targets, once.targets.sum(axis=0), rule.pseudo_counts
            self.taught = TaughtRows(features, *known)
        self.bounds, self.order = problem.bounds, problem.order
        self.steps = 0
        self.compared = compared
        self._pace = 0.0

    @property
    def rows(self) -> StandardisedRows:
        """The rows of all columns, a copy that is made when it is first asked for."""
        if self._rows is None:
            self._rows = self.frame._replace(features=centred(self._samples, self._scale))
        return self._rows

    def standardised(self, columns: NDArray[np.intp]) -> FloatArray:
        """Some columns of the rows, (n_columns, n_rows)."""
        if self._rows is not None:
            return np.ascontiguousarray(self._rows.features[columns])
        return centred(self._samples, self._scale, columns)

    def blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        """All columns, some at a time, with their places: no copy of all of them is needed."""
        for some in column_blocks(*self.frame.features.shape):
            if self._rows is not None:
                yield some, self._rows.features[some]
            else:
                yield some, self.standardised(np.arange(some.start, some.stop))

    def release(self) -> None:
        """Forget a large copy of all columns; another is made if somebody asks for it."""
        if self._rows is None or self._rows is self.frame:
            return
        if self.frame.features.size > self.options.rows.kept_cells:
            self._rows = None
            give_back()

    def on(self, tree: SupportTree) -> StandardisedRows:
        """The rows of the columns of ``tree``."""
        if len(tree.columns) == len(self.frame.features):
            return self.rows
        self.release()  # trees of a path only lose columns
        return self.frame._replace(features=self.standardised(tree.columns))

    def summed(self, tree: SupportTree) -> StandardisedRows | TaughtRows:
        """The same for descents: rows that have class probabilities as targets stand there once."""
        if self.taught is None:
            return self.on(tree)
        if len(tree.columns) == len(self.taught.features):
            return self.taught
        return self.taught._replace(features=self.taught.features[tree.columns])

    def hold(self, rows: StandardisedRows) -> None:
        """Keep standardised rows in place of those that are made when they are asked for."""
        self._rows = self.frame = rows

    def restricted(self, columns: NDArray[np.intp]) -> RowDescents:
        """Descents over the same rows of some columns."""
        some = copy(self)
        some.hold(self.frame._replace(features=self.standardised(columns)))
        if self.taught is not None:
            some.taught = self.taught._replace(features=self.taught.features[columns])
        some.bounds = self.bounds.restrict(columns)
        some.order = None if self.order is None else self.order.restrict(columns)
        return some

    def turned(self, tree: SupportTree) -> SupportTree:
        """A tree that has just grown, with its new leaves in the monotone order if there is one."""
        return tree if self.order is None else turned_leaves(tree, self.order)

    @property
    def n_rows(self) -> int:
        """Distinct rows."""
        return int(self.frame.features.shape[1])

    def check(self) -> None:
        """Raise ``OutOfBudget`` if nothing is left."""
        if self.budget.exhausted:
            raise OutOfBudget

    def decrease_factor(self, tree: SupportTree, shrinkage: Shrinkage) -> float:
        """Return a factor >= 1 on the relative decrease that ends a descent over many rows: where
        the mean log-loss is below ``small_loss``, decreases are relative to that instead."""
        value, _ = self.function(tree, shrinkage, tree.free)(tree.vector)
        return max(1.0, self.options.final.small_loss * self.total / max(value, 1e-9 * self.total))

    def function(
        self, tree: SupportTree, shrinkage: Shrinkage, free: NDArray[np.bool_]
    ) -> SmoothFunction:
        """The smooth log-loss of all parameters of trees shaped like ``tree``."""
        return row_function(tree, self.summed(tree), shrinkage, free)

    def hessian(
        self, tree: SupportTree, ridge: float, prices: FloatArray | None
    ) -> FloatArray | None:
        """As ``second_order.hessian`` on all rows."""
        return hessian(tree, self.on(tree), ridge, prices)

    def masses(self, tree: SupportTree) -> ClassMasses:
        """The class masses of trees shaped like ``tree``."""
        return RowMasses(self.on(tree), tree.shape)

    def sampled(self) -> None:
        """Return None: the rows are in this process."""

    def descend(
        self,
        tree: SupportTree,
        shrinkage: Shrinkage,
        max_iter: int,
        decrease: float,
        *,
        tol: float = 0.0,
        leaves: bool = True,
        rows: StandardisedRows | None = None,
    ) -> tuple[SupportTree, float, bool]:
        """Return the tree at the end of a descent, its value, and whether it ended by itself.

        Without ``leaves`` only splits move. ``rows`` are ``on(tree)``, if the caller has them.
        ``decrease`` and ``tol`` are those of ``lbfgs.descend``.
        """
        rows = self.on(tree) if rows is None else rows
        summed = rows if self.taught is None else self.summed(tree)
        vector, free = tree.vector, tree.free
        if not leaves:
            free[tree.splits.size :] = False
        allowed = min(max_iter, self.budget.max_iter or max_iter)
        if self.bounds.finite:
            function = row_function(tree, summed, shrinkage, free)
            end = descent_within(
                tree, function, free, self.bounds, self.order, self.check, allowed, decrease, tol
            )
            self.steps += end.steps
            return tree.moved_to(end.x), end.value, end.over
        inverse = NO_INVERSE
        if shrinkage.entry == 0.0 and self.options.fisher.pays(
            int(np.count_nonzero(free)), len(tree.splits), max_iter
        ):
            inverse = inverse_fisher(vector, rows, shrinkage.ridge, free, tree.shape)
        memory, value = new_memory(free, inverse), np.inf
        race = self.options.race
        while True:
            self.check()
            done = steps_of(memory)
            size = summed.features.shape[1] * len(tree.splits)
            pace = self._pace or race.step_seconds * size
            part = min(allowed - done, max(1, int(race.slice_seconds / pace)))
            began = self.budget.now()
            value = descend(
                vector, summed, shrinkage, free, tree.shape, memory, part, decrease, tol
            )
            made = steps_of(memory) - done
            self.steps += made
            self._pace = (self.budget.now() - began) / max(made, 1) if size > 1e5 else 0.0
            if ended(memory) or steps_of(memory) >= allowed:
                return tree.moved_to(vector), float(value), ended(memory)

    def settle(
        self, tree: SupportTree, shrinkage: Shrinkage, max_iter: int, decrease: float, tol: float
    ) -> tuple[SupportTree, float, bool]:
        """Run the last descent of a tree over many rows; returns what ``descend`` does.

        Newton steps with the Hessian of a sample follow ``lead_in`` steps of L-BFGS. ``tol`` ends
        the latter only: Newton steps end by ``decrease``, since what is left then is far below the
        sampling error.
        """
        options = self.options.settling
        max_iter = min(max_iter, self.budget.max_iter or max_iter)
        lead_in = min(options.lead_in, max_iter)
        n_free, taught = int(np.count_nonzero(tree.free)), self.taught is not None
        pays = options.pays(n_free, self.n_rows, len(tree.splits))
        if taught or self.bounds.finite or not pays:
            return self.descend(tree, shrinkage, max_iter, decrease, tol=tol)
        tree, value, over = self.descend(tree, shrinkage, lead_in, decrease, tol=tol)
        if over or max_iter <= lead_in:
            return tree, value, over
        rows = self.on(tree)
        end = SubsampledNewton(self.budget, options.newton, options.newton.rounding).descend(
            row_function(tree, rows, shrinkage, tree.free),
            tree,
            first_of_each_class(rows, options.hessian_rows, options.fewest),
            shrinkage,
            min(max_iter - lead_in, options.newton.steps),
            decrease,
            0.0,
        )
        self.steps += end.steps
        left = max_iter - lead_in - end.steps
        if not end.over and end.steps >= options.newton.steps and left > 0:
            return self.descend(end.tree, shrinkage, left, decrease, tol=tol)
        return end.tree, end.value, end.over


# --- rows of an engine ----------------------------------------------------------------------------


class EngineFunction:
    """The function of objective.py over all rows of an engine, for trees shaped like ``tree``.

    It is a ``ClassMasses`` too. With ``limits`` the rows are grouped by the cells of these.
    """

    def __init__(
        self, problem: TrainingProblem, tree: SupportTree, limits: RateLimits | None = None
    ) -> None:
        if limits is None:
            self.rows, self.columns = with_columns(problem.rows, tree.columns)
        else:
            self.rows, self.columns = limits.with_columns(tree.columns)
        self.pseudo = problem.loss.leaf_rule.pseudo_counts  # type: ignore[attr-defined]
        self.steepness = problem.steepness / problem.n_features * self.rows.n_features
        self.shape = tree.shape
        self.totals = (problem if limits is None else limits).rows.class_totals

    def parts(self, x: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """Return the splits, the leaves' distributions, and the term of their prior."""
        n_branches, n_classes = self.shape
        splits = x[: n_branches * (len(self.columns) + 1)].reshape(n_branches, -1)
        leaves = np.empty((n_classes, n_branches + 1))
        prior = softmax(x[splits.size :].reshape(leaves.shape), self.pseudo, leaves)
        return splits, leaves, float(prior)

    def sums(self, splits: FloatArray, table: FloatArray, outer: int) -> Sums:
        """Return the sums of the engine, with the derivative by ``splits`` in their units."""
        n_features = self.rows.n_features
        asked = np.zeros((len(splits), n_features + 1))
        asked[:, self.columns] = splits[:, :-1]
        half = 0.5 / n_features
        asked[:, -1] = half * splits[:, :-1].sum(axis=1) - splits[:, -1] / self.steepness
        found = self.rows.evaluate(asked, table, outer, self.steepness)
        by_split = np.empty_like(splits)
        by_split[:, :-1] = found.splits[:, self.columns] + half * found.splits[:, -1:]
        by_split[:, -1] = -found.splits[:, -1] / self.steepness
        return Sums(found.value, by_split, found.mass, found.table)

    def smooth(self, shrinkage: Shrinkage, free: NDArray[np.bool_]) -> SmoothFunction:
        """The log-loss with its prior and ``shrinkage``."""

        def function(x: FloatArray) -> tuple[float, FloatArray]:
            splits, leaves, value = self.parts(x)
            found = self.sums(splits, leaves, LOGARITHM)
            gradient = np.empty_like(x)
            by_split = gradient[: splits.size].reshape(splits.shape)
            by_split[...] = found.splits
            by_leaf = gradient[splits.size :].reshape(leaves.shape)
            by_log_odds(leaves, np.ascontiguousarray(found.table), self.pseudo, by_leaf)
            value += found.value + shrink(splits, shrinkage, by_split)
            gradient[~free] = 0.0
            return value, gradient

        return function

    def at(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """As ``ClassMasses.at``."""
        splits, leaves, _ = self.parts(x)
        table = np.zeros((len(self.totals), leaves.shape[1]))  # sums of any table have the masses
        return leaves, self.sums(splits, table, IDENTITY).mass

    def add(self, x: FloatArray, prices: FloatArray, by_split: FloatArray) -> None:
        """As ``ClassMasses.add``."""
        splits, leaves, _ = self.parts(x)
        by_split += self.sums(splits, prices[:, None] * leaves, IDENTITY).splits


class EngineDescents:
    """Descents over all rows of a problem, which begin where those over ``few`` of them end.

    Attributes
    ----------
    steps : int
        Steps taken so far.
    """

    def __init__(self, problem: TrainingProblem, budget: Budget, few: RowDescents) -> None:
        self.problem, self.budget, self.few, self.options = problem, budget, few, few.options
        self.steps = 0
        self._sampled: RowDescents | None = None
        newton = few.options.engine.newton
        rounding = float(getattr(problem.rows, "rounding", newton.rounding))
        self._newton = SubsampledNewton(budget, newton, rounding)

    @property
    def n_rows(self) -> int:
        """Distinct rows."""
        return self.problem.rows.n_rows

    def function(
        self, tree: SupportTree, shrinkage: Shrinkage, free: NDArray[np.bool_]
    ) -> SmoothFunction:
        """The smooth log-loss of all parameters of trees shaped like ``tree``."""
        return self.masses(tree).smooth(shrinkage, free)

    def hessian(
        self, tree: SupportTree, ridge: float, prices: FloatArray | None
    ) -> FloatArray | None:
        """None: an engine gives no second derivatives of a support."""
        return None

    def masses(self, tree: SupportTree) -> EngineFunction:
        """The class masses of trees shaped like ``tree``."""
        return EngineFunction(self.problem, tree)

    def sampled(self) -> RowDescents:
        """Descents over a sample that is stratified by the cells of the rates."""
        if self._sampled is None:
            few = self.problem.on_sample(self.options.rows.support)
            self._sampled = RowDescents(few, self.budget, few.samples, self.options)
        return self._sampled

    def descend(
        self, tree: SupportTree, shrinkage: Shrinkage, max_iter: int, decrease: float, tol: float
    ) -> tuple[SupportTree, float, bool]:
        """Return the tree at the end of a descent, its value, and whether it ended by itself.

        ``decrease`` and ``tol`` are those of ``SubsampledNewton.descend``.
        """
        options = self.options.engine
        limit = min(max_iter, self.budget.max_iter or options.newton.steps)
        everywhere = self.function(tree, shrinkage, tree.free)
        quick = getattr(self.problem.rows, "quick", False) and not self.problem.bounds.finite
        if quick:  # steps on all rows cost less than elsewhere
            few = self.few.on(tree)
            return self._newton_steps(everywhere, tree, few, shrinkage, limit, decrease, tol)
        near_steps = min(options.near_steps, max_iter)  # fewer where trees are only compared
        near_decrease = options.near_decrease * self.few.decrease_factor(tree, shrinkage)
        tree, _, _ = self.few.settle(tree, shrinkage, near_steps, near_decrease, 0.0)
        if self.problem.bounds.finite:
            end = descent_within(
                tree, everywhere, tree.free, self.problem.bounds, self.problem.order,
                self.few.check, limit, decrease, tol,
            )  # fmt: skip
            self.steps += end.steps
            return tree.moved_to(end.x), end.value, end.over
        few, middle = self.few.on(tree), self._middle(tree)
        near = row_function(tree, middle, shrinkage, tree.free)
        settling = self.options.settling
        size = max(settling.hessian_rows, int(options.hessian_part * self.n_rows))
        costly = min(size, len(middle.weights)) * int(tree.free.sum()) ** 2 > options.costly
        curved = first_of_each_class(few if costly else middle, size, settling.fewest)
        if len(middle.weights) >= self.n_rows:
            return self._newton_steps(near, tree, curved, shrinkage, limit, decrease, tol)
        if middle.weights is not self.few.frame.weights:
            rough = max(decrease, options.middle_decrease)
            tree, _, _ = self._newton_steps(near, tree, few, shrinkage, limit, rough, 0.0)
        return self._newton_steps(everywhere, tree, curved, shrinkage, limit, decrease, tol)

    def _newton_steps(self, *given: Any) -> tuple[SupportTree, float, bool]:
        """Descend as ``SubsampledNewton`` does, and count the steps."""
        end = self._newton.descend(*given)
        self.steps += end.steps
        return end.tree, end.value, end.over

    def _middle(self, tree: SupportTree) -> StandardisedRows:
        """The middle sample of the columns of ``tree``."""
        drawn, columns = columns_drawn_from(
            self.problem.rows, tree.columns, self.options.rows.middle
        )
        samples = drawn.with_totals(self.problem.rows.class_totals)
        if samples.n_rows <= self.few.n_rows:
            return self.few.on(tree)
        unit = self.problem.steepness / self.problem.n_features
        features = centred(samples, unit, columns)
        return self.few.frame._replace(
            features=features, starts=samples.starts, weights=samples.weights
        )


# --- bounds ---------------------------------------------------------------------------------------


class BoundedEnd(NamedTuple):
    """Where a descent within bounds has led, its steps, and whether it ended by itself."""

    x: FloatArray
    value: float
    steps: int
    over: bool


def descent_within(
    tree: SupportTree,
    function: SmoothFunction,
    free: NDArray[np.bool_],
    bounds: Bounds,
    order: MonotoneOrder | None,
    check: Callable[[], None],
    max_iter: int,
    decrease: float,
    tol: float,
) -> BoundedEnd:
    """Descend from ``tree`` within ``bounds``, and in a monotone ``order`` if there is one."""
    limits = check, max_iter, decrease, tol
    if order is None:
        return bounded_descent(function, tree.vector, free, tree.vector_bounds(bounds), *limits)
    low, high = tree.vector_bounds(bounds)  # what has no room does not move
    chart = ordered_coordinates(tree, order, function, free & (low < high))
    end = bounded_descent(chart.function, chart.begun, chart.free, chart.box, *limits)
    return end._replace(x=chart.vector(end.x))


def bounded_descent(
    function: SmoothFunction,
    x: FloatArray,
    free: NDArray[np.bool_],
    box: tuple[FloatArray, FloatArray],
    check: Callable[[], None],
    max_iter: int,
    decrease: float,
    tol: float,
) -> BoundedEnd:
    """Descend from the point of ``box`` nearest to ``x``; what is not free stays.

    The descent ends after ``max_iter`` steps, when a step lowers the value by less than
    ``decrease`` of it, or when no projected derivative is larger than ``tol``. ``check`` is called
    before every evaluation and may raise.
    """
    begun = np.clip(x, *box)
    index = np.flatnonzero(free)
    limits = np.column_stack([box[0][index], box[1][index]])

    def spread(values: FloatArray) -> FloatArray:
        point = begun.copy()
        point[index] = np.clip(values, limits[:, 0], limits[:, 1])
        return point

    def restricted(values: FloatArray) -> tuple[float, FloatArray]:
        check()
        value, gradient = function(spread(values))
        return value, gradient[index]

    options = {"maxiter": max_iter, "ftol": decrease, "gtol": tol, "maxcor": 20}
    found = minimize(
        restricted, begun[index], jac=True, method="L-BFGS-B", bounds=limits, options=options
    )
    return BoundedEnd(spread(found.x), float(found.fun), int(found.nit), found.nit < max_iter)
