"""Targets: what a tree is trained to predict, as groups of rows.

Below the formulations a target is the number of a group of rows, 0 .. n_groups - 1: a loss is a
table of groups and leaves (loss.py), an engine sums by group. What a group stands for is known
here: of classes it is a class. A formulation makes the loss of a problem from these targets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray


class Targets(Protocol):
    """The targets of the training rows of a problem."""

    @property
    def values(self) -> NDArray[Any]:
        """What the rows of each group have as their target, (n_groups,)."""

    @property
    def totals(self) -> FloatArray:
        """Sum of the weights of each group, (n_groups,)."""

    @property
    def n_groups(self) -> int:
        """Number of groups."""


@dataclass(frozen=True)
class Classes:
    """Every group is a class; ``values`` are their labels."""

    values: NDArray[Any]
    totals: FloatArray

    @property
    def n_groups(self) -> int:
        return len(self.values)
