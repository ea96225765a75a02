"""Descents over the rows of a problem: rows in memory (``RowDescents``), or behind an engine.

``RowDescents`` runs compiled L-BFGS (lbfgs.py) in slices, between which it looks at the budget.
Within bounds of the weights both take L-BFGS-B (bounded.py).

The last descent over many rows of either goes on with the Hessian of a sample
(subsampled_newton.py): L-BFGS needs hundreds of passes where valleys are long.

``EngineDescents`` asks an engine for sums over all its rows, which may be anywhere. The sample
grows (``EliminationOptions``): what some 20,000 rows leave open is settled on 100,000 before all
rows are asked; a quick engine is asked at once.

Units are those of support_tree.py. With m columns and unit = steepness / n_features an engine of
those columns is asked at steepness unit m, where weights are the same and

    threshold  mu   = (unit / 2 sum_j w_j - b) / (unit m)
    d / d w_j       = d / d a_j + 1 / (2 m) d / d mu          d / d b = - 1 / (unit m) d / d mu
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.base import Sums, columns_drawn_from, with_columns
from softsplit.engines.outer import IDENTITY, LOGARITHM
from softsplit.engines.samples import Samples, centred
from softsplit.problem.leaves import CountedDistributions
from softsplit.problem.problem import TrainingProblem
from softsplit.problem.rates import RateLimits
from softsplit.solvers.base import Budget
from softsplit.solvers.elimination.bounded import descent_within, turned_leaves
from softsplit.solvers.elimination.lbfgs import (
    NO_INVERSE,
    descend,
    ended,
    new_memory,
    steps_of,
)
from softsplit.solvers.elimination.objective import (
    Shrinkage,
    SmoothFunction,
    SoftTargetRows,
    StandardisedRows,
    by_log_odds,
    column_blocks,
    first_of_each_group,
    shrink,
    softmax,
)
from softsplit.solvers.elimination.options import DEFAULTS, EliminationOptions
from softsplit.solvers.elimination.second_order import hessian, inverse_fisher, row_function
from softsplit.solvers.elimination.subsampled_newton import (
    DAMPING,
    FAR,
    MOST_PARAMETERS,
    ROUNDING,
    newton_on_sample,
)
from softsplit.solvers.elimination.support_tree import SupportTree
from softsplit.support.arrays import FloatArray
from softsplit.support.parallel import n_threads

DescentEnd = tuple[SupportTree, float, bool]
"""The tree at the end of a descent, its value, and whether the descent ended by itself."""

HESSIAN_ROWS, FEWEST_OF_GROUP = 5_000, 100
"""Rows of the sample whose Hessian is computed, and at least so many of each class."""


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

    def hessian(self, tree: SupportTree, ridge: float) -> FloatArray | None:
        """As ``second_order.hessian`` on all rows; None where that is not known."""

    def sampled(self) -> AllRows | None:
        """The same over a sample in this process, of the rates too; None if the rows are there."""


def group_shares(problem: TrainingProblem) -> FloatArray:
    """Share of each class in the weight of all rows."""
    totals = problem.rows.group_totals
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
        samples: Samples,
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
        self.held_rows: StandardisedRows | None = None
        self.soft_targets: SoftTargetRows | None = None
        if (once := samples.distinct) is not None:
            features = unit * (once.features.astype(float, copy=False) - 0.5)
            known = once.targets, once.targets.sum(axis=0), rule.pseudo_counts
            self.soft_targets = SoftTargetRows(features, *known)
        self.bounds, self.order = problem.bounds, problem.order
        self.steps = 0
        self.compared = compared
        self._pace = 0.0  # seconds of a step over many rows; 0 if unknown

    @property
    def rows(self) -> StandardisedRows:
        """The rows of all columns, a copy that is made when it is first asked for."""
        if self.held_rows is None:
            self.held_rows = self.frame._replace(features=centred(self._samples, self._scale))
        return self.held_rows

    def standardised(self, columns: NDArray[np.intp]) -> FloatArray:
        """Some columns of the rows, (n_columns, n_rows)."""
        if self.held_rows is not None:
            return np.ascontiguousarray(self.held_rows.features[columns])
        return centred(self._samples, self._scale, columns)

    def blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        """All columns, some at a time, with their places: no copy of all of them is needed."""
        for some in column_blocks(*self.frame.features.shape):
            if self.held_rows is not None:
                yield some, self.held_rows.features[some]
            else:
                yield some, self.standardised(np.arange(some.start, some.stop))

    def release(self) -> None:
        """Forget a large copy of all columns; another is made if somebody asks for it."""
        if self.held_rows is None or self.held_rows is self.frame:
            return
        if self.frame.features.size > self.options.kept_cells:
            self.held_rows = None

    def on(self, tree: SupportTree) -> StandardisedRows:
        """The rows of the columns of ``tree``."""
        if len(tree.columns) == len(self.frame.features):
            return self.rows
        self.release()  # trees of a path only lose columns
        return self.frame._replace(features=self.standardised(tree.columns))

    def summed(self, tree: SupportTree) -> StandardisedRows | SoftTargetRows:
        """The same for descents: rows that have class probabilities as targets stand there once."""
        if self.soft_targets is None:
            return self.on(tree)
        if len(tree.columns) == len(self.soft_targets.features):
            return self.soft_targets
        return self.soft_targets._replace(features=self.soft_targets.features[tree.columns])

    def restricted(self, columns: NDArray[np.intp]) -> RowDescents:
        """Descents over the same rows of some columns."""
        some = copy(self)
        some.frame = self.frame._replace(features=self.standardised(columns))
        some.held_rows = some.frame
        if self.soft_targets is not None:
            some.soft_targets = self.soft_targets._replace(
                features=self.soft_targets.features[columns]
            )
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

    def decrease_factor(self, tree: SupportTree, shrinkage: Shrinkage) -> float:
        """Return a factor >= 1 on the relative decrease that ends a descent over many rows: where
        the mean log-loss is below 0.07, a tenth of log 2, decreases are relative to that instead.
        """
        value, _ = self.function(tree, shrinkage, tree.free)(tree.vector)
        return max(1.0, 0.07 * self.total / max(value, 1e-9 * self.total))

    def function(
        self, tree: SupportTree, shrinkage: Shrinkage, free: NDArray[np.bool_]
    ) -> SmoothFunction:
        """The smooth log-loss of all parameters of trees shaped like ``tree``."""
        return row_function(tree, self.summed(tree), shrinkage, free)

    def hessian(self, tree: SupportTree, ridge: float) -> FloatArray | None:
        """As ``second_order.hessian`` on all rows."""
        return hessian(tree, self.on(tree), ridge)

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
    ) -> DescentEnd:
        """Descend from ``tree`` by L-BFGS.

        Without ``leaves`` only splits move. ``rows`` are ``on(tree)``, if the caller has them.
        ``decrease`` and ``tol`` are those of ``lbfgs.descend``.
        """
        rows = self.on(tree) if rows is None else rows
        summed = rows if self.soft_targets is None else self.summed(tree)
        vector, free = tree.vector, tree.free
        if not leaves:
            free[tree.splits.size :] = False
        allowed = min(max_iter, self.budget.max_iter or max_iter)
        if self.bounds.finite:
            function = row_function(tree, summed, shrinkage, free)
            end = descent_within(
                tree, function, free, self.bounds, self.order, self.budget.check,
                (allowed, decrease, tol),
            )  # fmt: skip
            self.steps += end.steps
            return tree.moved_to(end.x), end.value, end.over
        inverse = NO_INVERSE
        if shrinkage.entry == 0.0 and _fisher_pays(int(np.count_nonzero(free)), tree, max_iter):
            inverse = inverse_fisher(vector, rows, shrinkage.ridge, free, tree.shape)
        memory, value, done = new_memory(free, inverse), np.inf, 0
        size = summed.features.shape[1] * len(tree.splits)
        while True:
            # compiled code cannot look at the clock: a slice takes about 0.1 seconds, by the pace
            # that was measured, or 30 nanoseconds for each row and branch
            self.budget.check()
            part = min(allowed - done, max(1, int(0.1 / (self._pace or 3e-8 * size))))
            began = self.budget.now()
            value = descend(
                vector, summed, shrinkage, free, tree.shape, memory, part, decrease, tol
            )
            taken = steps_of(memory) - done
            self.steps += taken
            done += taken
            self._pace = (self.budget.now() - began) / max(taken, 1) if size > 1e5 else 0.0
            if ended(memory) or done >= allowed:
                return tree.moved_to(vector), float(value), ended(memory)

    def descend_to_tolerance(
        self, tree: SupportTree, shrinkage: Shrinkage, max_iter: int, decrease: float, tol: float
    ) -> DescentEnd:
        """Run the last descent of a tree over many rows.

        1. Some steps of L-BFGS; all of them where Newton steps do not pay.
        2. Newton steps with the Hessian of a sample. They end by ``decrease``, not by ``tol``:
           what is left then is far below the sampling error.
        3. L-BFGS again, where they did not end by themselves.
        """
        max_iter = min(max_iter, self.budget.max_iter or max_iter)
        lead_in = max_iter
        if self.soft_targets is None and not self.bounds.finite and self._newton_pays(tree):
            lead_in = min(20, max_iter)
        # 1. L-BFGS
        tree, value, over = self.descend(tree, shrinkage, lead_in, decrease, tol=tol)
        if over or max_iter <= lead_in:
            return tree, value, over
        # 2. Newton steps
        rows, most = self.on(tree), min(max_iter - lead_in, NEWTON_STEPS)
        end = newton_on_sample(
            row_function(tree, rows, shrinkage, tree.free), tree,
            first_of_each_group(rows, HESSIAN_ROWS, FEWEST_OF_GROUP), shrinkage.ridge, self.budget,
            max_iter=most, decrease=decrease, renewals=NEWTON_RENEWALS,
        )  # fmt: skip
        self.steps += end.steps
        # 3. L-BFGS
        left = max_iter - lead_in - end.steps
        if not end.over and end.steps >= NEWTON_STEPS and left > 0:
            return self.descend(end.tree, shrinkage, left, decrease, tol=tol)
        return end.tree, end.value, end.over

    def _newton_pays(self, tree: SupportTree) -> bool:
        """Whether the Hessians of a last descent cost less than the steps that they save: at most
        1e4 products for each row and branch."""
        n_free = int(np.count_nonzero(tree.free))
        products = NEWTON_RENEWALS * min(self.n_rows, HESSIAN_ROWS) * n_free**2
        return n_free <= MOST_PARAMETERS and products <= 1e4 * self.n_rows * len(tree.splits)


NEWTON_RENEWALS, NEWTON_STEPS = 3, 100
"""Hessians and most Newton steps of a last descent over rows in memory."""


def _fisher_pays(n_free: int, tree: SupportTree, max_iter: int) -> bool:
    """Whether the Fisher information costs less than the steps that it saves: for each row, one
    step and branch less is worth 50 products."""
    return n_free <= 160 and n_free**2 <= 50.0 * len(tree.splits) * max_iter


# --- rows of an engine ----------------------------------------------------------------------------


class EngineFunction:
    """The function of objective.py over all rows of an engine, for trees shaped like ``tree``.

    With ``limits`` the rows are grouped by the cells of these.
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
        self.totals = (problem if limits is None else limits).rows.group_totals

    def parts(self, x: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """Return the splits, the leaves' distributions, and the term of their prior."""
        n_branches, n_groups = self.shape
        splits = x[: n_branches * (len(self.columns) + 1)].reshape(n_branches, -1)
        leaves = np.empty((n_groups, n_branches + 1))
        prior = softmax(x[splits.size :].reshape(leaves.shape), self.pseudo, leaves)
        return splits, leaves, float(prior)

    def sums(self, splits: FloatArray, table: FloatArray, outer: int) -> Sums:
        """Return the sums of the engine, with the derivative by ``splits`` in their units."""
        n_features = self.rows.n_features
        asked = np.zeros((len(splits), n_features + 1))
        asked[:, self.columns] = splits[:, :-1]
        half = 0.5 / n_features
        asked[:, -1] = half * splits[:, :-1].sum(axis=1) - splits[:, -1] / self.steepness
        sums = self.rows.evaluate(asked, table, outer, self.steepness)
        by_split = np.empty_like(splits)
        by_split[:, :-1] = sums.splits[:, self.columns] + half * sums.splits[:, -1:]
        by_split[:, -1] = -sums.splits[:, -1] / self.steepness
        return Sums(sums.value, by_split, sums.mass, sums.table)

    def smooth(self, shrinkage: Shrinkage, free: NDArray[np.bool_]) -> SmoothFunction:
        """The log-loss with its prior and ``shrinkage``."""

        def function(x: FloatArray) -> tuple[float, FloatArray]:
            splits, leaves, value = self.parts(x)
            sums = self.sums(splits, leaves, LOGARITHM)
            gradient = np.empty_like(x)
            by_split = gradient[: splits.size].reshape(splits.shape)
            by_split[...] = sums.splits
            by_leaf = gradient[splits.size :].reshape(leaves.shape)
            by_log_odds(leaves, np.ascontiguousarray(sums.table), self.pseudo, by_leaf)
            value += sums.value + shrink(splits, shrinkage, by_split)
            gradient[~free] = 0.0
            return value, gradient

        return function

    def masses(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the leaves' distributions, (n_groups, n_leaves), and the weight of each group, or
        cell, that reaches each leaf."""
        splits, leaves, _ = self.parts(x)
        table = np.zeros((len(self.totals), leaves.shape[1]))  # sums of any table have the masses
        return leaves, self.sums(splits, table, IDENTITY).mass


ENOUGH, CLOSE = 0.01, 0.01
"""Decreases that end a descent over a sample, and over all rows, in units of the sampling error."""

LONG_PASS = 2e7
"""Rows times parameters from which a descent over all rows ends by its decrease alone: derivatives
of single parameters would take dozens of passes more, and change no prediction."""


def _sampling_error(tree: SupportTree, n_rows: int) -> float:
    """By which part the log-loss of a tree of so many rows exceeds its least value elsewhere:
    about half a unit for each free parameter, where a row counts one."""
    return 0.5 * float(np.count_nonzero(tree.free)) / n_rows


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
        self._rounding = float(getattr(problem.rows, "rounding", ROUNDING))
        threads: int | None = getattr(problem.rows, "threads", None)
        self._threads = n_threads(None, self.n_rows) if threads is None else threads

    @property
    def n_rows(self) -> int:
        """Distinct rows."""
        return self.problem.rows.n_rows

    def function(
        self, tree: SupportTree, shrinkage: Shrinkage, free: NDArray[np.bool_]
    ) -> SmoothFunction:
        """The smooth log-loss of all parameters of trees shaped like ``tree``."""
        return EngineFunction(self.problem, tree).smooth(shrinkage, free)

    def hessian(self, tree: SupportTree, ridge: float) -> FloatArray | None:
        """None: an engine gives no second derivatives of a support."""
        return None

    def sampled(self) -> RowDescents:
        """Descents over a sample that is stratified by the cells of the rates."""
        if self._sampled is None:
            few = self.problem.on_sample(self.options.support_rows)
            self._sampled = RowDescents(few, self.budget, few.samples, self.options)
        return self._sampled

    def descend_to_tolerance(
        self, tree: SupportTree, shrinkage: Shrinkage, max_iter: int, decrease: float, tol: float
    ) -> DescentEnd:
        """Descend over all rows; ``decrease`` and ``tol`` are those of ``newton_on_sample``.

        Where each pass over all rows takes long, it ends well below the sampling error, and a
        descent over a sample where the rest is small beside what all rows will change.

        1. On the first sample. A quick engine is asked at once: steps on all rows cost less than
           elsewhere.
        2. On a middle sample, with the Hessian of the first.
        3. On all rows, with the Hessian of a part of the middle sample.
        """
        bounds, limit = self.problem.bounds, min(max_iter, self.budget.max_iter or 50)
        everywhere = self.function(tree, shrinkage, tree.free)
        few = self.few.on(tree)
        if getattr(self.problem.rows, "quick", False) and not bounds.finite:
            return self._newton_steps(everywhere, tree, few, shrinkage, limit, decrease, tol)
        # 1. the first sample
        factor = self.few.decrease_factor(tree, shrinkage)
        long = self.n_rows * int(tree.free.sum()) > LONG_PASS
        enough, close = (ENOUGH, CLOSE) if long else (0.0, 0.0)
        rough = max(1e-7, enough * _sampling_error(tree, self.few.n_rows)) * factor
        tree, _, _ = self.few.descend_to_tolerance(tree, shrinkage, min(300, max_iter), rough, 0.0)
        if bounds.finite:
            end = descent_within(
                tree, everywhere, tree.free, bounds, self.problem.order, self.budget.check,
                (limit, decrease, tol),
            )  # fmt: skip
            self.steps += end.steps
            return tree.moved_to(end.x), end.value, end.over
        # 2. the middle sample, whose Hessian may be too dear: pairs of steps correct it for less
        middle = self._middle(tree)
        near = row_function(tree, middle, shrinkage, tree.free)
        size = max(HESSIAN_ROWS, int(0.1 * self.n_rows))
        costly = min(size, len(middle.weights)) * int(tree.free.sum()) ** 2 > 2e10
        curved = first_of_each_group(few if costly else middle, size, FEWEST_OF_GROUP)
        if len(middle.weights) >= self.n_rows:
            return self._newton_steps(near, tree, curved, shrinkage, limit, decrease, tol)
        if middle.weights is not self.few.frame.weights:
            rough = max(decrease, 1e-6, enough * _sampling_error(tree, len(middle.weights)))
            tree, _, _ = self._newton_steps(near, tree, few, shrinkage, limit, rough, 0.0)
        # 3. all rows
        decrease = max(decrease, close * _sampling_error(tree, self.n_rows) * factor)
        tol = 0.0 if long else tol
        return self._newton_steps(everywhere, tree, curved, shrinkage, limit, decrease, tol)

    def _newton_steps(
        self,
        function: SmoothFunction,
        tree: SupportTree,
        sample: StandardisedRows,
        shrinkage: Shrinkage,
        max_iter: int,
        decrease: float,
        tol: float,
    ) -> DescentEnd:
        """Descend as ``newton_on_sample`` does, and count the steps.

        Where the last digits are not wanted, steps are damped, and few Hessians do.
        """
        cautious: dict[str, Any] = {"damping": DAMPING, "renewals": NEWTON_RENEWALS}
        end = newton_on_sample(
            function, tree, sample, shrinkage.ridge, self.budget,
            max_iter=max_iter, decrease=decrease, tol=tol, rounding=self._rounding,
            threads=self._threads, **(cautious if decrease > 2.0 * FAR else {}),
        )  # fmt: skip
        self.steps += end.steps
        return end.tree, end.value, end.over

    def _middle(self, tree: SupportTree) -> StandardisedRows:
        """The middle sample of the columns of ``tree``."""
        drawn, columns = columns_drawn_from(
            self.problem.rows, tree.columns, self.options.middle_rows
        )
        samples = drawn.with_totals(self.problem.rows.group_totals)
        if samples.n_rows <= self.few.n_rows:
            return self.few.on(tree)
        unit = self.problem.steepness / self.problem.n_features
        features = centred(samples, unit, columns)
        return self.few.frame._replace(
            features=features, starts=samples.starts, weights=samples.weights
        )
