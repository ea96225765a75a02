"""The derivatives of second_order.py where the fixed part of the tree has been worked out.

With the factors, bases and shares of engines/block.py for the free branches t of a block:

    reach_t            = factor_t * (what its free parent sends to its side, or 1)
    L_t, R_t           = base of the side + sum of factor_s V_s over the free children s there
    V_t                = p_t L_t + q_t R_t
    g_t                = weight * reach_t gamma p_t q_t (L_t - R_t)
    P_l                = share_l * (what arrives at the side that leaf l belongs to)

Only free branches are routed, so that nothing here grows with the number of fixed ones; leaves
below the block cost one multiplication per row each. Shapes: gates (n_free, n_rows).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from softsplit.engines.block import CollapsedRows
from softsplit.ipopt.second_order import pair_factor
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import Step, TreeParameters
from softsplit.tree.routing import gate_probabilities


@dataclass(frozen=True)
class FreeRows:
    """The rows of a collapsed problem, routed through its free branches; as ``RoutedRows``."""

    collapsed: CollapsedRows
    left: FloatArray
    right: FloatArray

    @classmethod
    def of(cls, parameters: TreeParameters, collapsed: CollapsedRows) -> FreeRows:
        left, right = gate_probabilities(collapsed.scores(parameters.splits), collapsed.steepness)
        return cls(collapsed, left, right)

    @cached_property
    def place(self) -> dict[int, int]:
        return {int(t): position for position, t in enumerate(self.collapsed.branches)}

    @cached_property
    def reach(self) -> FloatArray:
        """Probability of reaching each free branch, times the weight of the row."""
        collapsed, reach = self.collapsed, np.empty_like(self.left)
        for position, above in enumerate(collapsed.parents):
            reach[position] = collapsed.factors[position]
            if above >= 0:
                gate = self.left if collapsed.on_left[position] else self.right
                reach[position] *= reach[above] * gate[above]
        return reach

    @cached_property
    def leaf_mass(self) -> dict[int, FloatArray]:
        """P_l times the weight of the row, for every leaf below the block."""
        mass: dict[int, FloatArray] = {}
        for position, sides in enumerate(self.collapsed.sides):
            for side, gate in zip(sides, (self.left, self.right), strict=True):
                arriving = side.shares * (self.reach[position] * gate[position])
                mass.update(zip(side.leaves.tolist(), arriving, strict=True))
        return mass

    def table_slopes(self, table: FloatArray) -> FloatArray:
        """g_t of every row for the leaf values table[class, leaf], (n_free, n_rows)."""
        collapsed, slopes = self.collapsed, np.empty_like(self.left)
        below_left, below_right = collapsed.bases(table)
        for position in range(len(slopes) - 1, -1, -1):
            left, right = self.left[position], self.right[position]
            one, other = below_left[position], below_right[position]
            slopes[position] = collapsed.steepness * self.reach[position] * left * right
            slopes[position] *= one - other
            above = collapsed.parents[position]
            if above >= 0:
                side = below_left if collapsed.on_left[position] else below_right
                side[above] += collapsed.factors[position] * (left * one + right * other)
        return slopes

    def score_curvature(self, slopes: FloatArray, above: Step, branch: int) -> FloatArray:
        """d2E / dz_s dz_t of every row, (n_rows,); see ``RoutedRows``."""
        s, t = self.place[above.branch], self.place[branch]
        factor = pair_factor(self.left[s], self.right[s], above, branch)
        return self.collapsed.steepness * factor * slopes[t]

    def mass_slope(self, leaf: int, step: Step) -> FloatArray:
        """dP_l / dz_t of every row, times its weight, (n_rows,)."""
        t = self.place[step.branch]
        gate = self.right[t] if step.goes_left else -self.left[t]
        return self.collapsed.steepness * gate * self.leaf_mass[leaf]
