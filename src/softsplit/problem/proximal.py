"""The proximal term of a decomposition step: it keeps a step near the tree it started from.

    value     psi / 2 ( |a - a_s|^2 + |mu - mu_s|^2 + |c - c_s|^2 )
    gradient  psi (a - a_s),  psi (mu - mu_s),  psi (c - c_s)

with (a_s, mu_s, c_s) the tree before the step. Section 6.1 of the paper writes the term on the
parts A+ and A- of a = A+ - A-, with mu among them as the weight of a constant feature. As long as
one part of a coefficient is zero and its sign stays, both are the same number; where a sign
changes, ours is larger by psi |a| |a_s|. Fixed variables do not differ from the centre and add
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softsplit.tree.parameters import TreeParameters


@dataclass(frozen=True)
class Proximal:
    """psi and the tree that the term is centred at."""

    strength: float
    centre: TreeParameters

    def __post_init__(self) -> None:
        if not (np.isfinite(self.strength) and self.strength >= 0):
            raise ValueError(f"proximal must be a finite number >= 0, got {self.strength}.")

    def value(self, parameters: TreeParameters) -> float:
        centre = self.centre
        squares = (
            np.sum((parameters.weights - centre.weights) ** 2)
            + np.sum((parameters.thresholds - centre.thresholds) ** 2)
            + np.sum((parameters.leaf_classes - centre.leaf_classes) ** 2)
        )
        return 0.5 * self.strength * float(squares)
