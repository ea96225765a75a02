"""The default formulation: log-loss with a class distribution in every leaf, no bounds.

    scale            "standard"
    steepness        absorbed by the weights (UNITS)
    penalty          "count", or "l0" for solvers that do not eliminate
    min_class_rate   0
    depth            one more than a leaf for every class needs, up to six levels
    global_strength  a share of the featureless loss, or a part of the noise threshold
    local_strength   a quarter of the global one under "count", else 0

The featureless loss is that of the best tree that uses no feature, or of two even classes if that
is less.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, log
from typing import Any, ClassVar

import numpy as np

from softsplit.formulations import settings as parse
from softsplit.formulations.base import (
    COUNT_FRACTIONS,
    ChoiceRules,
    Formulation,
    ProblemUnits,
    default_local_strength,
    fraction_grid,
)
from softsplit.formulations.model_settings import ModelSettings
from softsplit.problem.bounds import Bounds
from softsplit.problem.loss import LogLoss, Loss
from softsplit.problem.targets import Targets
from softsplit.settings.checks import is_auto
from softsplit.solvers.base import Solver
from softsplit.solvers.elimination.screening import noise_threshold
from softsplit.solvers.elimination.solver import EliminationSolver
from softsplit.support.arguments import positive_integer, positive_number
from softsplit.support.messages import ParameterError, shown
from softsplit.tree.parameters import Topology
from softsplit.tree.scaling import DEVIATIONS

LIKELIHOOD = {
    "scale": "standard", "steepness": "auto", "penalty": "count", "min_class_rate": 0.0,
    "decision": "walk",
}  # fmt: skip

# Log-odds of a split per scaled unit at weight 1. A weight is then a change of the log-odds per
# standard deviation of a feature (under "quantile" and "minmax", of evenly spread values).
UNITS = {"standard": DEVIATIONS, "quantile": 12.0**0.5, "minmax": 12.0**0.5, "identity": 1.0}


# A feature must lower the featureless loss by this part.
LOSS_SHARE = 0.006

# With more rows, which tell smaller gains from noise, the part falls as n^-1/2.
SHARE_ROWS = 1000

# Part of the noise threshold that a feature must gain at least: with few rows it is more than a
# share of the loss.
NOISE_PART = 0.25

# Depth up to which a tree has one level more than a leaf for every class needs.
DEEPEST = 6

# The smallest fraction of a grid is this divided by the featureless loss: a quarter of a unit of
# log-likelihood for a coefficient.
LEAST_STRENGTH = 1.25

# From so many rows on a number bends at its quartiles by default, and not at its median alone:
# with fewer rows three knots fit noise.
MANY_ROWS = 2000

# With more columns than this all effects are straight by default where there are fewer than
# ``rows_per_bent`` rows for each: hinges multiply the columns, and noise is what most would fit.
WIDE = 200

# Rows for each column of a wide table with which numbers bend.
ROWS_PER_BENT = 20

# A grid that begins lower has one more point for each factor of this size.
GRID_RATIO = 1.75


# Loss of a row of two even classes: no more than that counts of the featureless loss. With many
# classes it is larger, but what noise gives a coefficient is not.
EVEN = log(2)


class LikelihoodFormulation(Formulation):
    """``loss="log"``."""

    defaults: ClassVar = LIKELIHOOD
    decisions: ClassVar = ("walk", "mixture")
    weights_rows: ClassVar = True
    keeps_single: ClassVar = True
    trains_sparse: ClassVar = True
    prunes: ClassVar = True
    strength_growth: ClassVar = 0.5  # as the noise threshold does
    choice: ClassVar = ChoiceRules(
        axes={
            "scales": ("standard", "quantile"),
            "penalties": ("count",),
            "scopes": ("size",),
            "steepnesses": ("auto",),
            "ridges": (1.0, 0.1, 5.0),
        },
        n_strengths=12,
        rows_per_leaf=25,
        most_coefficients=4200,
        leaf_per_class=False,
        varied=("steepness", "ridge"),
        finalists=1,
        scores_rows=True,
        path_iterations=None,
        start_factor=1,
        compared_cells=1_000_000,
        bent_scales=("standard",),
        readable_terms=4,
    )

    def solver(self) -> Solver:
        return EliminationSolver()

    def loss(self, settings: ModelSettings, targets: Targets, row_unit: float) -> Loss:
        if settings.cost_matrix is not None:
            parse.make_costs(settings.cost_matrix, targets.n_groups)  # they decide at prediction
        return LogLoss.counted(targets.totals, row_unit)

    def units(
        self, settings: ModelSettings, scale: str, n_features: int, row_unit: float
    ) -> ProblemUnits:
        ridge = positive_number("ridge", settings.ridge, zero=True)
        return ProblemUnits(UNITS[scale] * n_features, ridge * row_unit)

    def bounds(self, n_features: int, n_branches: int) -> Bounds:
        return Bounds.free(n_features, n_branches)

    def resolved(self, settings: ModelSettings, n_classes: int) -> ModelSettings:
        """A tree of so many questions needs no more levels than these."""
        resolved, most = super().resolved(settings, n_classes), settings.max_questions
        if most is None or not is_auto(settings.depth):
            return resolved
        return replace(resolved, depth=min(resolved.depth, positive_integer("max_questions", most)))

    def depth(self, depth: Any, n_classes: int) -> Any:
        if not is_auto(depth):
            return depth
        smallest = Topology.with_leaves(n_classes).depth
        return max(smallest, min(smallest + 1, DEEPEST))

    def n_knots(self, n_rows: float, n_columns: int) -> int:
        if n_columns > WIDE and n_rows < ROWS_PER_BENT * n_columns:
            return 0
        return 3 if n_rows >= MANY_ROWS else 1

    def default_penalty(self, penalty: Any, solver: Any) -> Any:
        """Only a solver that eliminates features can count them."""
        counts = solver.eliminates if isinstance(solver, Solver) else solver == "native"
        return penalty if counts or not is_auto(penalty) else "l0"

    def with_strengths(
        self, settings: ModelSettings, loss: float, n_rows: float, n_features: int, unit: float
    ) -> ModelSettings:
        global_ = settings.global_strength
        if is_auto(global_):
            least = NOISE_PART * unit * noise_threshold(n_rows, n_features)
            counted = min(loss, EVEN * n_rows * unit)
            sparse = settings.penalty is not None
            global_ = max(share(n_rows) * counted, least) if sparse else 0.0
        local = default_local_strength(settings, global_)
        return replace(settings, local_strength=local, global_strength=global_)

    def fractions(self, count: int | None, loss: float) -> tuple[float, ...]:
        if count is not None:
            return fraction_grid(count, COUNT_FRACTIONS)
        smallest = min(COUNT_FRACTIONS[0], LEAST_STRENGTH / max(loss, LEAST_STRENGTH))
        more = ceil(np.log(COUNT_FRACTIONS[0] / smallest) / np.log(GRID_RATIO))
        return fraction_grid(self.choice.n_strengths + more, COUNT_FRACTIONS, smallest)

    def check_steepness(self, name: str, value: Any) -> Any:
        if is_auto(value):
            return value
        are, them = (f"{shown(value)} is", "it") if name == "steepness" else ("are", "them")
        raise ParameterError(
            name,
            value,
            f"{are} part of loss='cost': under loss='log' the weights make a split as "
            f"steep as the rows do; leave {them} out.",
            ("loss",),
        )

    def label(self, steepness: Any, ridge: float) -> str:
        return f"ridge {ridge:g}"


def share(n_rows: float) -> float:
    """Part of the featureless loss by which a feature must lower it; falls as n^-1/2, like the
    error with which a gain is known."""
    return LOSS_SHARE * min(1.0, (SHARE_ROWS / max(n_rows, 1.0)) ** 0.5)
