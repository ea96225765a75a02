"""How many rows each part of the library looks at: one table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class RowBudgets:
    """Rows that a part of the library uses at most, or beyond which it works in another way.

    Samples are stratified by class and drawn as the first rows in canonical order
    (engines/samples.py), so that the same rows are used whatever their order in the table.
    """

    compared: int = 10_000
    """Most rows on whose folds settings are compared: beyond, standard errors of log-losses hardly
    fall, and the chosen tree is trained on all rows."""

    taught: ClassVar[int] = 25_000
    """The same beside a teacher, which every row is predicted by."""

    parallel: ClassVar[int] = 4_000
    """Beyond this number folds and starts run side by side, and descents on all rows in threads, on
    all cores where ``n_jobs`` is None (``n_threads``)."""

    parallel_cells: ClassVar[int] = 300_000
    """The same of a choice with more cells times classes: folds of 2,500 rows of 64 columns with
    ten classes take seconds each."""

    halved: int = 3_000
    """Beyond this number settings compete on the first folds alone, and only the best of them are
    judged on all folds: some thousand held-out rows tell log-losses apart."""

    halved_cells: int = 1_500_000
    """The same for more cells than these, of which copies are made for each fold: no more than two
    folds are then held at a time."""

    held_out: ClassVar[int] = 5_000
    """From so many rows on a report holds out a fifth of them, and has no folds."""

    importances: ClassVar[int] = 100_000
    """Most rows on which columns and branches are scored."""

    knots: ClassVar[int] = 100_000
    """Most distinct rows from which the knots and medians of numbers are learned."""

    walk: ClassVar[int] = 20_000
    """Most rows on which the questions of a walk are chosen and rounded (fitted/walk.py), and from
    which the importances of features are computed."""

    compared_walk: ClassVar[int] = 2_000
    """The same for trees that are compared on folds: hundreds of them."""

    smallest_group: ClassVar[int] = 100
    """Rows of a rare class that a sample has at least."""

    group_centre: ClassVar[int] = 200
    """Rows of a class that are enough to draw starts from."""

    double_precision: ClassVar[int] = 20_000
    """Up to this number rows are stored in double precision, whatever they were given in."""

    row_sums: ClassVar[int] = 20_000
    """Beyond this number sums over rows are made piece by piece (engines/row_sums.py); up to it as
    compiled descents make them, to the bit."""

    held_hinges: ClassVar[int] = 1_500_000
    """Most cells of rows whose hinges are held; of more, and of more than ``row_sums`` rows, they
    are computed where they are read, with the same bits."""

    sorted_on_device: ClassVar[int] = 100_000
    """Beyond this number rows are put in canonical order on the device where they lie."""

    profile: ClassVar[int] = 100_000
    """Most rows that the summary of the training table is learned from (fitted/profile.py)."""

    unsorted_means: ClassVar[int] = 50_000
    """Beyond this number means for scaling are added up without sorting the rows first."""

    def holds_hinges(self, n_rows: int, n_columns: int) -> bool:
        """Whether the hinges of so many rows, of all their columns, are held (``held_hinges``)."""
        return n_rows <= self.row_sums and n_rows * n_columns <= self.held_hinges


ROWS = RowBudgets()
