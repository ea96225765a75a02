"""What targets are proportional to, such as years at risk: checked once, never counted twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from softsplit.fitted.leaf_numbers import LeafNumbers
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown


@dataclass(frozen=True, eq=False)
class Exposures:
    """``values`` (n_rows,), positive; None where none were given. ``name`` is of their column."""

    values: FloatArray | None
    name: str | None
    n_rows: int

    @staticmethod
    def apart(X: Any, exposure: Any) -> tuple[Any, Any]:
        """Return the table without the column that ``exposure`` names, and that column; values of
        their own are as they are."""
        if not isinstance(exposure, str):
            return X, exposure
        if exposure not in getattr(X, "columns", ()):
            raise ValueError(
                f"exposure names {shown(exposure)}, which is no column of X; give its values."
            )
        column = X[exposure]
        return (X.drop(columns=exposure) if hasattr(X, "iloc") else X.drop(exposure)), column

    @classmethod
    def of(cls, exposure: Any, n_rows: int) -> Self:
        if exposure is None:
            return cls(None, None, n_rows)
        name = getattr(exposure, "name", None)
        try:
            values = np.asarray(exposure, dtype=float)
        except (TypeError, ValueError):
            raise ValueError(
                "exposure holds text; give one positive number for each row."
            ) from None
        if values.shape != (n_rows,):
            raise ValueError(
                f"exposure has the shape {values.shape}; give one positive number for each of the "
                f"{n_rows} rows."
            )
        wrong = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
        if len(wrong):
            raise ValueError(
                f"exposure is {values[wrong[0]]:g} in row {wrong[0]}; it must be positive and "
                "finite, leave such rows out."
            )
        return cls(values, name if isinstance(name, str) and name else None, n_rows)

    def known_to(self, numbers: LeafNumbers) -> FloatArray:
        """The values, 1 where none were given; a ValueError unless the tree has a rate to match."""
        if (self.values is None) != (numbers.totals is None):
            without, way = "with", "give exposure= of these rows, 1 for rates"
            if numbers.totals is None:
                without, way = "without", "leave exposure out"
            raise ValueError(f"the tree was trained {without} exposure; {way}.")
        return np.ones(self.n_rows) if self.values is None else self.values

    def offset_for(self, numbers: LeafNumbers) -> FloatArray:
        """The logs of ``known_to``, which are added to scores."""
        return np.log(self.known_to(numbers))
