"""Hops: from the best tree to a nearby basin and down again.

Each hop moves a copy of the best tree, descends, and is kept if the objective is lower. What the
moves share is that they change which features or which classes a branch is about, which no descent
does by itself:

regrow     a subtree is replaced by that of a freshly drawn tree
fresh      the freshly drawn tree itself
overshoot  descend with penalties several times too strong, which drops features
relax      descend with weak penalties, which lets features come back
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from softsplit.constraints import RATE_SLACK
from softsplit.solvers.engine import Engine, OutOfBudget, pack, unpack
from softsplit.solvers.stages import ROUGH, Polish, better_leaves
from softsplit.tree import FloatArray, TreeParameters

OVERSHOOT = (4.0, 2.0, 8.0)
RELAX = (0.1, 0.3, 0.0)
HOPELESS = 0.5
"""A hop that is still this part above the best after its first descent is given up."""


@dataclass(frozen=True)
class Hops:
    """A round of hops, one for each fresh tree, in a fixed cycle of moves."""

    max_iter: int = 40
    polish: Polish = field(default_factory=lambda: Polish(max_iter=150, rounds=4, newton_from=10))

    def improve(
        self, engine: Engine, best: TreeParameters, fresh: Sequence[TreeParameters]
    ) -> TreeParameters:
        """The best tree after all hops; ``best`` itself if none was lower."""
        theta, leaves = pack(best), best.leaf_classes
        lowest = engine.problem.objective(best)
        try:
            for number, tree in enumerate(fresh):
                moved, labels = self._move(engine, theta, leaves, tree, number)
                value, labels = self._descend(engine, moved, labels, lowest)
                margin = engine.meter.budget.tol * engine.problem.cost_unit
                if value < lowest - margin and self._feasible(engine, moved, labels):
                    lowest, theta, leaves = value, moved, labels
        except OutOfBudget:
            pass  # the best so far is what was asked for
        except KeyboardInterrupt:
            engine.meter.budget.cancel.requested = True
        return unpack(theta, leaves)

    def _move(
        self,
        engine: Engine,
        theta: FloatArray,
        leaves: FloatArray,
        tree: TreeParameters,
        number: int,
    ) -> tuple[FloatArray, FloatArray]:
        moved, turn = theta.copy(), number // 4
        engine.forget(engine.problem.steepness)
        labels = better_leaves(engine, moved, leaves)
        if number % 4 == 0 and len(theta) > 1:
            regrow(moved, pack(tree), turn % len(theta))
        elif number % 4 == 2:
            strength = OVERSHOOT[turn % len(OVERSHOOT)]
            engine.descend(moved, labels, ROUGH, strength=strength)
        elif number % 4 == 3:
            engine.descend(moved, labels, ROUGH, strength=RELAX[turn % len(RELAX)])
        else:
            moved, labels = pack(tree), tree.leaf_classes
        return moved, better_leaves(engine, moved, labels)

    def _descend(
        self, engine: Engine, theta: FloatArray, leaves: FloatArray, lowest: float
    ) -> tuple[float, FloatArray]:
        limits = ROUGH._replace(max_iter=self.max_iter, decrease=1e-4)
        if engine.descend(theta, leaves, limits) > lowest + HOPELESS * abs(lowest):
            return np.inf, leaves
        leaves = self.polish.apply(engine, theta, leaves)
        return engine.problem.objective(unpack(theta, leaves)), leaves

    def _feasible(self, engine: Engine, theta: FloatArray, leaves: FloatArray) -> bool:
        rates = engine.problem.rates(unpack(theta, leaves))
        return bool(np.all(rates >= engine.problem.minimum_rates - RATE_SLACK))


def regrow(theta: FloatArray, other: FloatArray, branch: int) -> None:
    """Replace the subtree under ``branch`` by that of ``other``, in place."""
    if branch < len(theta):
        theta[branch] = other[branch]
        regrow(theta, other, 2 * branch + 1)
        regrow(theta, other, 2 * branch + 2)
