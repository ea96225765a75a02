"""Training rows in a wide sparse matrix.

They are prepared as any rows are: behind an engine that has a dense block of a working set of
columns, the first ones by marginal screening, and sums over all others (engines/sparse.py). Folds
choose their columns by their own training rows, so that held-out rows have no say.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.sparse import SparseTable, dense_block, groups_among
from softsplit.formulations.model_settings import ModelSettings
from softsplit.solvers.elimination.working_set import first_columns
from softsplit.support.arrays import FloatArray
from softsplit.support.row_budgets import ROWS
from softsplit.training.rows import ColumnSubset, EngineRows, Rows
from softsplit.variables import Coding


@dataclass(frozen=True)
class WideRows(Rows):
    """``Rows`` whose X is a sparse matrix of compressed rows; names and groups are of all columns.

    Parts are ``WideRows``, folds dense ``Rows`` on a working set.
    """

    X: Any

    def placed(self, kind: str, settings: ModelSettings) -> EngineRows:
        """Return a first working set behind its engine."""
        rows = self.counted()
        table = SparseTable(
            X=rows.X,
            labels=rows.labels,
            counts=rows.weight,
            weights=rows.training_weight(settings),
            kind=kind,
            groups=rows.groups,
            place=partial(rows.placed_columns, kind, settings),
        )
        engine = table.rows(rows.screened())
        placed: Any = engine.placed
        return replace(placed, engine=engine)

    def placed_columns(
        self, kind: str, settings: ModelSettings, columns: NDArray[np.intp]
    ) -> EngineRows:
        """Return some columns behind the engine that dense rows have."""
        block = self.on(columns)
        middles = np.median(block.X[:: max(1, len(block.X) // ROWS.knots)], axis=0)
        coding = Coding.of_numbers(
            self.all_names, middles, self.names is not None, columns.tolist()
        )
        return replace(block.placed(kind, settings), coding=coding)

    @cached_property
    def all_names(self) -> list[str]:
        """Names of all columns; x0, x1, ... if they have none."""
        if self.names is None:
            return [f"x{j}" for j in range(self.X.shape[1])]
        return [*self.names.tolist()]

    def screened(self) -> NDArray[np.intp]:
        """The columns of largest score statistics."""
        return first_columns(self.X, self.labels, self.weight, self.groups)

    def on(self, columns: NDArray[np.intp]) -> Rows:
        """Return some columns as dense rows, without names."""
        known = {one.name: getattr(self, one.name) for one in fields(Rows)}
        return Rows(
            **known
            | {
                "X": dense_block(self.X, columns),
                "names": None,
                "coding": None,
                "groups": groups_among(self.groups, columns),
                "within": ColumnSubset(columns, self.X.shape[1]),
            }
        )

    def fold(self, train: NDArray[Any], test: NDArray[Any]) -> tuple[Rows, Rows]:
        own = self.part(train)
        columns = own.screened()
        return own.on(columns), self.part(test).on(columns)

    @property
    def costly_folds(self) -> bool:
        return True

    @cached_property
    def content(self) -> FloatArray:
        made: FloatArray = self.X @ np.sin(1.0 + np.arange(self.X.shape[1]))
        return made[:, None]

    @property
    def two_valued(self) -> bool:
        X = self.X.tocsc()
        low, high = (ends.toarray().ravel() for ends in (X.min(axis=0), X.max(axis=0)))
        homes = np.repeat(np.arange(X.shape[1]), np.diff(X.indptr))
        stored = (X.data == low[homes]) | (X.data == high[homes])
        zeros = (np.diff(X.indptr) == X.shape[0]) | (low == 0) | (high == 0)
        return bool(np.all(stored) and np.all(zeros))
