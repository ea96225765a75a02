"""The paper's formulation: expected cost of the classes of leaves, coefficients in [-1, 1].

scale           "minmax"
steepness       512
penalty         "l0"
min_class_rate  0.1
depth           the least with a leaf for every class
strengths       0: they must be given
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from softsplit.formulations import settings as parse
from softsplit.formulations.base import (
    SLOPE_FRACTIONS,
    ChoiceRules,
    Formulation,
    ProblemUnits,
    default_local_strength,
    fraction_grid,
)
from softsplit.formulations.model_settings import ModelSettings
from softsplit.problem.bounds import Bounds
from softsplit.problem.loss import ExpectedCost, Loss
from softsplit.problem.targets import Targets
from softsplit.settings.checks import is_auto
from softsplit.solvers.base import Solver
from softsplit.solvers.basin_hopping.solver import BasinHoppingSolver
from softsplit.support.messages import ParameterError, nearest, shown, unfit

PAPER = {
    "scale": "minmax", "steepness": 512.0, "penalty": "l0", "min_class_rate": 0.1,
    "decision": "mixture",
}  # fmt: skip

# Costs below this part of the largest are zero: no solver resolves them beside it, and chasing
# them would only fit noise.
NEGLIGIBLE_COST = 1e-6

# What a loss of the user's own must have.
LOSS_PARTS = (
    "outer", "leaf_rule", "unit", "table", "leaf_gradient", "prediction_costs", "featureless",
)  # fmt: skip


class ExpectedCostFormulation(Formulation):
    """``loss="cost"``."""

    defaults: ClassVar = PAPER
    decisions: ClassVar = ("mixture",)
    weights_rows: ClassVar = False
    keeps_single: ClassVar = False
    trains_sparse: ClassVar = False
    prunes: ClassVar = False
    strength_growth: ClassVar = 1.0
    choice: ClassVar = ChoiceRules(
        axes={
            "scales": ("minmax", "quantile"),
            "penalties": ("l0",),
            "scopes": ("global",),
            "steepnesses": (512.0, 128.0),
            "ridges": (0.0,),
        },
        n_strengths=8,
        rows_per_leaf=50,
        most_coefficients=inf,
        leaf_per_class=True,
        varied=("steepness",),
        finalists=2,
        scores_rows=False,
        path_iterations=200,
        start_factor=10,
        compared_cells=60_000,
        bent_scales=(),
        readable_terms=None,
    )

    def solver(self) -> Solver:
        return BasinHoppingSolver()

    def loss(self, settings: ModelSettings, targets: Targets, row_unit: float) -> Loss:
        return expected_cost(settings.cost_matrix, settings.class_weight, targets)

    def units(
        self, settings: ModelSettings, scale: str, n_features: int, row_unit: float
    ) -> ProblemUnits:
        return ProblemUnits(parse.make_steepness(settings.steepness), 0.0)

    def bounds(self, n_features: int, n_branches: int) -> Bounds:
        return Bounds.box(n_features, n_branches, 1.0)

    def with_strengths(
        self, settings: ModelSettings, loss: float, n_rows: float, n_features: int, unit: float
    ) -> ModelSettings:
        global_ = 0.0 if is_auto(settings.global_strength) else settings.global_strength
        local = default_local_strength(settings, global_)
        return replace(settings, local_strength=local, global_strength=global_)

    def fractions(self, count: int | None, loss: float) -> tuple[float, ...]:
        return fraction_grid(count or self.choice.n_strengths, SLOPE_FRACTIONS)

    def check_steepness(self, name: str, value: Any) -> Any:
        return value if is_auto(value) else parse.make_steepness(value)


class OwnLossFormulation(ExpectedCostFormulation):
    """A loss object of the user's own, trained as the expected cost is."""

    def loss(self, settings: ModelSettings, targets: Targets, row_unit: float) -> Loss:
        loss = settings.loss
        if isinstance(loss, str):
            close = nearest(loss, ("log", "cost"))
            raise ParameterError(
                "loss",
                loss,
                "must be 'log' or 'cost', got "
                f"{shown(loss)}{f'; did you mean {close}?' if close else '.'}",
            )
        missing = [name for name in LOSS_PARTS if not hasattr(loss, name)]
        if missing or isinstance(loss, type):
            listed = ", ".join(missing or LOSS_PARTS)
            raise unfit("loss", loss, f"must be 'log', 'cost' or an object with {listed}")
        for name in ("cost_matrix", "class_weight"):
            if getattr(settings, name) is not None:
                raise ParameterError(
                    name,
                    getattr(settings, name),
                    f"is part of loss='cost' and has no meaning for {type(loss).__name__}; "
                    "leave it out, or give sample_weight.",
                )
        return loss


def expected_cost(
    cost_matrix: ArrayLike | None,
    class_weight: Any,
    targets: Targets,
) -> ExpectedCost:
    """Return the expected cost from a cost matrix and class weights.

    The class weight "balanced" gives every class the same total. Costs that are negligible beside
    the largest count as zero.
    """
    n_classes = targets.n_groups
    if cost_matrix is None:
        loss = ExpectedCost.uniform(n_classes)
    else:
        loss = ExpectedCost(parse.make_costs(cost_matrix, n_classes))
    with np.errstate(over="ignore"):
        factors = parse.class_weights(class_weight, targets.values, targets.totals)
        costs = loss.weighted(factors).costs
        largest = float(np.max(costs) * np.max(targets.totals))
    if largest > 0 and not parse.SMALLEST_WEIGHT <= largest <= parse.LARGEST_WEIGHT:
        size = "small" if largest < 1 else "large"
        raise ValueError(
            f"costs times weights go up to {largest:.3g}, which is too {size} to "
            "compute with; multiply cost_matrix, class_weight or sample_weight by a "
            "constant."
        )
    return ExpectedCost(np.where(costs < NEGLIGIBLE_COST * costs.max(), 0.0, costs))
