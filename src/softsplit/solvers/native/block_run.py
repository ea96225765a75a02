"""The engine of a restricted problem whose fixed part has been worked out in advance.

Stages hand over theta of the whole tree; the descent sees the rows of the free branches, the
samples that reach them, and the bases of collapse.py. Fixed branches cost nothing.
"""

from __future__ import annotations

import numpy as np

from softsplit.engines.block_pass import Forest
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.native.bundles import Smooth
from softsplit.solvers.native.descent import Limits
from softsplit.solvers.native.faces import Sparse
from softsplit.solvers.native.run import Engine, Meter
from softsplit.support.arrays import FloatArray


def make_engine(problem: TrainingProblem, meter: Meter) -> Engine:
    """The engine that suits a problem."""
    return Engine(problem, meter) if problem.collapsed is None else BlockEngine(problem, meter)


class BlockEngine(Engine):
    """Descents over the free branches of a collapsed problem, at its own steepness only."""

    def __init__(self, problem: TrainingProblem, meter: Meter) -> None:
        assert problem.collapsed is not None
        self.problem = problem
        self.meter = meter
        self.collapsed = problem.collapsed
        self.samples = self.collapsed.samples
        self.ended = False
        self.rate_weight = 20.0 * problem.samples.n_rows * problem.cost_unit
        # Newton steps come first here. A Gram matrix for each block would cost more than it saves.
        self._inverse, self._diagonal = np.zeros((0, 0)), problem.samples.gram.diagonal
        self.work = self._workspace(np.ones(len(self.collapsed.branches), dtype=bool))
        self._plain = self._smooth_part()
        self.forget(problem.steepness)
        self._forest: tuple[bytes, Forest] | None = None

    @property
    def mass(self) -> FloatArray:
        return self.collapsed.mass(self.work.scores)

    def _smooth(
        self,
        table: FloatArray,
        leaf_classes: FloatArray,
        steepness: float | None,
        multipliers: FloatArray | None,
    ) -> Smooth:
        if steepness is not None and steepness != self.problem.steepness:
            raise ValueError(
                "a stage with a steepness of its own cannot run on a block whose fixed gates are "
                "cached; leave the log-loss warm-up out of the recipe 'given'."
            )
        whole = super()._smooth(table, leaf_classes, None, multipliers)
        centre = whole.centre[self.collapsed.branches] if whole.proximal > 0 else whole.centre
        return whole._replace(
            forest=self._bases(table, leaf_classes), centre=np.ascontiguousarray(centre)
        )

    def _bases(self, table: FloatArray, leaf_classes: FloatArray) -> Forest:
        """Bases for these leaves; the last ones are kept, as stages ask for each several times."""
        key = leaf_classes.tobytes()
        if self._forest is None or self._forest[0] != key:
            self._forest = key, self.collapsed.forest(table, leaf_classes)
        return self._forest[1]

    def _run(self, theta: FloatArray, smooth: Smooth, sparse: Sparse, limits: Limits) -> float:
        if len(self.collapsed.branches) == 0:
            self.ended = True
            return self._value_of_leaves(smooth)
        part = np.ascontiguousarray(theta[self.collapsed.branches])
        try:
            return super()._run(part, smooth, sparse, limits)
        finally:
            theta[self.collapsed.branches] = part  # a descent that is cut off has come this far

    def _value_of_leaves(self, smooth: Smooth) -> float:
        """Cost and rate terms where no branch is free."""
        forest = smooth.forest
        if smooth.rate_weight <= 0:
            return forest.cost_constant
        short = smooth.minimum_rates - forest.rate_constants / smooth.class_totals
        active = np.maximum(0.0, smooth.multipliers + smooth.rate_weight * short)
        terms = (active**2 - smooth.multipliers**2) / (2.0 * smooth.rate_weight)
        return forest.cost_constant + float(np.sum(terms))
