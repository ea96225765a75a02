"""Rows on a device whose hinges are computed as they are looked at (support/bent_rows.py).

``BentTable`` holds rows as they are given, one after the other; column j of a row is

    x_j = max(v - shift_j, floor_j),     v the value at homes_j

``BentLines`` says how lines of values, one per column of a table, become scaled lines,

    line_j = max(v - shift_j, floor_j) factor_j + offset_j

with shifts that single precision holds, so that nothing is lost where values lie far from zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray
from softsplit.support.bent_rows import Recipe
from softsplit.support.hinged_table import HingedTable
from softsplit.tree.scaling import LinearScaling

CELLS = 2**25
"""Cells that are worked on at a time, in double precision."""


@dataclass(frozen=True)
class BentTable:
    """Rows on a device, ``values`` (n_rows, n_values), and the knots of columns that bend.

    ``knots`` is None where the values are the columns.
    """

    values: torch.Tensor
    homes: NDArray[np.intp]
    knots: FloatArray | None = None

    @classmethod
    def of(cls, X: Any, device: Any) -> BentTable:
        """Bring a table, an array or a tensor to a device."""
        bent = isinstance(X, HingedTable)
        values = X.values if bent else X
        if not isinstance(values, torch.Tensor):
            values = torch.from_numpy(np.require(values, requirements=["C", "W"]))
        homes = X.homes if bent else np.arange(values.shape[1])
        return cls(values.detach().to(device), homes, X.knots if bent else None)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def n_columns(self) -> int:
        return len(self.homes)

    @property
    def at_once(self) -> int:
        """Rows that are worked on at a time."""
        return max(1, CELLS // self.n_columns)

    @cached_property
    def _recipe(self) -> tuple[torch.Tensor, ...]:
        assert self.knots is not None
        recipe = Recipe.of(self.homes, self.knots, float)
        homes, *ends = (torch.from_numpy(one).to(self.values.device) for one in recipe)
        return (homes, *(end.to(self.values.dtype) for end in ends))

    def columns(self, values: torch.Tensor) -> torch.Tensor:
        """All columns of some rows of values."""
        if self.knots is None:
            return values
        homes, shifts, floors = self._recipe
        return torch.maximum(values[:, homes] - shifts, floors)

    def column(self, j: int) -> torch.Tensor:
        """One column of all rows."""
        values = self.values[:, int(self.homes[j])]
        if self.knots is None or self.knots[j] == -np.inf:
            return values
        return torch.clamp(values - self._recipe[1][j], min=0.0)

    def parts(self) -> Iterator[tuple[slice, torch.Tensor]]:
        """Yield all columns, some rows at a time, with the places of these."""
        for low in range(0, len(self), self.at_once):
            some = slice(low, min(low + self.at_once, len(self)))
            yield some, self.columns(self.values[some])


@dataclass(frozen=True)
class BentLines:
    """How lines of values become scaled lines of columns; tensors (n_columns,) on the device."""

    homes: torch.Tensor  # int32
    shifts: torch.Tensor
    floors: torch.Tensor
    factors: torch.Tensor
    offsets: torch.Tensor

    @classmethod
    def of(cls, table: BentTable, scaling: LinearScaling) -> BentLines:
        """The lines of a table that bends, scaled."""
        assert table.knots is not None
        kind = np.float32 if table.values.dtype == torch.float32 else np.float64
        bent = table.knots > -np.inf
        shifts = np.where(bent, table.knots, scaling.low).astype(kind).astype(float)
        offsets = np.where(bent, -scaling.low, shifts - scaling.low) / scaling.span
        floors = np.where(bent, 0.0, -np.inf)
        ends = (shifts, floors, 1.0 / scaling.span, offsets)
        device = table.values.device
        homes = torch.from_numpy(table.homes.astype(np.int32)).to(device)
        return cls(homes, *(torch.from_numpy(end.astype(kind)).to(device) for end in ends))

    def __len__(self) -> int:
        return len(self.homes)

    @property
    def parts(self) -> tuple[torch.Tensor, ...]:
        return self.homes, self.shifts, self.floors, self.factors, self.offsets

    def chosen(self, columns: torch.Tensor) -> BentLines:
        """Those of some columns."""
        return BentLines(*(part[columns.to(part.device)] for part in self.parts))

    def column(self, values: torch.Tensor, j: int, low: int, high: int) -> torch.Tensor:
        """A column of some rows in its own units, from lines of values."""
        line, floor = values[int(self.homes[j]), low:high], float(self.floors[j])
        return line if floor == -np.inf else torch.clamp(line - self.shifts[j], min=floor)

    def made(self, values: torch.Tensor) -> torch.Tensor:
        """Scaled lines (n_columns, n) from lines of values (n_values, n)."""
        ends = (part[:, None] for part in self.parts[1:])
        shifts, floors, factors, offsets = ends
        excess = torch.maximum(values[self.homes.long()] - shifts, floors)
        return excess * factors + offsets
