"""Targets: what a tree is trained to predict, as groups of rows.

Of classes a target is the number of a group of rows, 0 .. n_groups - 1: a loss is a table of groups
and leaves (loss.py), an engine sums by group, and a formulation makes the loss of a problem. Of
numbers each row is its own group, and a leaf family (tree/leaf_families.py) says what a score of a
row costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
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


@dataclass(frozen=True, eq=False)
class Numbers:
    """Every row is its own group, whose target is a number.

    Attributes
    ----------
    values : array (n_rows,)
    totals : array (n_rows,)
        The weights of the rows.
    offset : array (n_rows,)
        Added to every score of a row, such as the log of an exposure.
    """

    values: FloatArray
    totals: FloatArray
    offset: FloatArray

    @classmethod
    def of(
        cls, values: FloatArray, weight: FloatArray | None = None, offset: FloatArray | None = None
    ) -> Numbers:
        """Return targets of weight 1 and offset 0 where these are not given."""
        values = np.asarray(values, dtype=float)
        return cls(
            values,
            np.ones(len(values)) if weight is None else np.asarray(weight, dtype=float),
            np.zeros(len(values)) if offset is None else np.asarray(offset, dtype=float),
        )

    @property
    def n_groups(self) -> int:
        return len(self.values)

    def part(self, rows: NDArray[Any]) -> Numbers:
        """Return the targets of some rows."""
        return Numbers(self.values[rows], self.totals[rows], self.offset[rows])
