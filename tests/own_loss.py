"""A loss of the tests' own: the squared probability of a wrong class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softsplit.engines.outer import SQUARE
from softsplit.problem.leaves import ASSIGNMENT, LeafRule


@dataclass(frozen=True)
class SquaredError:
    """E = sum_i weight_i V_i^2, where V_i is the probability that row i is called wrongly.

    Rows that are wrong for sure count as under the expected cost, doubtful ones less.
    """

    outer: int = SQUARE
    leaf_rule: LeafRule = ASSIGNMENT
    unit: float = 1.0

    def table(self, leaf_values):
        return 1.0 - leaf_values

    def leaf_gradient(self, by_table):
        return -by_table

    def prediction_costs(self, n_groups):
        return 1.0 - np.eye(n_groups)

    def featureless(self, group_totals):
        return float(group_totals.sum() - group_totals.max())
