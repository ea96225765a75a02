"""Options of the elimination solver: how many rows each phase of a fit looks at, and which columns.

``EliminationSolver(options=EliminationOptions(support_rows=1000))`` changes one of them. All other
numbers are constants beside their use. There weights are in log-odds per standardised unit, row
counts are distinct rows, and a *decrease* is a part of the value: a descent ends when two steps in
a row lower it by less.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EliminationOptions:
    """Sizes of samples, and which columns take part in a race.

    Attributes
    ----------
    support_rows : int
        Rows on which the support is selected; the selected tree is fitted to all rows.
    middle_rows : int
        Rows of the sample that supplies the Hessian for descents on an engine.
    sample_growth : int
        Factor between the first and the second sample of progressive sampling.
    kept_cells : int
        Standardised cells that a path keeps between its trees; more are made again when a tree of
        all columns asks for them.
    screened_columns : int
        With fewer columns all of them race.
    fewest_screened : int
        Columns that pass a screening at least.
    """

    support_rows: int = 20_000
    middle_rows: int = 100_000
    sample_growth: int = 4
    kept_cells: int = 500_000
    screened_columns: int = 80
    fewest_screened: int = 10

    def rows_to_select(self, n_rows: int) -> int:
        """Rows, of ``n_rows``, on which the support is selected.

        A stratified sample has slightly more rows where classes are rare: up to 5 % more are all
        taken.
        """
        return n_rows if n_rows <= 1.05 * self.support_rows else self.support_rows

    @staticmethod
    def rows_to_compare(n_groups: int) -> int:
        """Rows that are enough to compare trees (folds, first samples)."""
        return 1500 + 100 * n_groups


DEFAULTS = EliminationOptions()
"""The options that apply where none are passed."""
