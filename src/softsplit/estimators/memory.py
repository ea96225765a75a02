"""Memory that a fit takes beyond its input: an estimate, and a refusal before training begins.

With n rows of p columns, h knots at which a number bends, c = p (1 + h) coded columns, m compared
rows and s rows on which the support is selected, a choice by cross-validation holds at its peak
about

    coded + max(f m c, n c + k s c)

times 8 bytes: coded = n c where numbers bend or a table is coded, f the copies of the compared rows
that the folds hold, n c all rows in training order, and k the copies of a sample that the paths
hold. Of more than ``RowBudgets.row_sums`` rows hinges are not held (support/hinged_table.py): n c
is there n (c - h p), and of a matrix of numbers nothing is coded beside it. f and k were fitted to
measured peaks (docs/results/waiting.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from softsplit.fitted.model import TreeHolder
from softsplit.formulations import formulation_of, is_auto
from softsplit.formulations import settings as parse
from softsplit.support.messages import shown
from softsplit.support.row_budgets import ROWS


@dataclass(frozen=True)
class MemoryOptions:
    """Copies of rows that the phases of a fit hold."""

    small_folds: float = 9.0
    """Copies of the compared rows where all folds are kept, with two scalings: up to
    ``RowBudgets.halved_cells`` cells."""

    folds: float = 3.2
    """The same where there are more cells: two folds in training order, the rows of the second
    while it is prepared, and blocks of columns."""

    parallel_folds: float = 6.0
    """The same where folds run side by side (``RowBudgets.parallel``)."""

    support: int = 20_000
    """Rows of the sample on which the support of the last tree is selected."""

    path: float = 1.5
    """Copies of that sample, where it is all rows and up to ``RowBudgets.compared``: standardised,
    of all columns and of those of a tree."""

    refit_path: float = 3.2
    """The same of more rows: the trees of the folds are compared on a sample of their own."""

    sampled_path: float = 4.5
    """The same where it is not all rows: the sample itself too, and a smaller one."""

    category_columns: int = 8
    """Columns that a column which holds no numbers is taken for."""

    scratch: int = 2**24
    """Bytes for all that does not grow with the table; compiled code is not counted."""

    def fold_copies(self, compared: int, coded: int) -> float:
        """Return f of the formula above, for ``compared`` rows of ``coded`` columns."""
        if compared * coded <= ROWS.halved_cells:
            return self.small_folds
        return self.parallel_folds if compared > ROWS.parallel else self.folds

    def path_copies(self, n_rows: int) -> float:
        """Return k of the formula above."""
        if n_rows > self.support:
            return self.sampled_path
        return self.refit_path if n_rows > ROWS.compared else self.path


OPTIONS = MemoryOptions()


def estimate_memory(X: Any, estimator: Any = None) -> int:
    """Return the bytes that a fit takes at its peak beyond ``X``, roughly.

    Parameters
    ----------
    X : array or table of shape (n_samples, n_features)
        Only its shape and the types of its columns count. Sparse matrices are taken as dense.
    estimator : SoftTreeClassifier or SoftTreeClassifierCV, optional
        What is fitted; by default a choice by cross-validation with all settings at their defaults.

    Returns
    -------
    int

    Examples
    --------
    >>> import numpy as np
    >>> from softsplit import estimate_memory
    >>> X = np.zeros((1000, 20))
    >>> estimate_memory(X) < 100_000_000
    True
    """
    if estimator is not None and not (
        isinstance(estimator, TreeHolder) and hasattr(estimator, "fit")
    ):
        raise TypeError(
            "estimator must be a SoftTreeClassifier or SoftTreeClassifierCV, got "
            f"{shown(estimator)}."
        )
    if len(getattr(X, "shape", ())) != 2:
        X = np.asarray(X)
    if len(X.shape) != 2:
        raise ValueError(f"X has {len(X.shape)} dimensions; a table has rows and columns.")
    n_rows, n_columns = X.shape
    numbers = n_columns
    if hasattr(X, "dtypes"):
        numbers = sum(getattr(kind, "kind", "O") in "fiub" for kind in X.dtypes)
    loss = getattr(estimator, "loss", "log")
    given = parse.make_curves(getattr(estimator, "curves", "auto"))
    knots = formulation_of(loss).n_knots(n_rows, n_columns) if given is None else given
    single = getattr(X, "dtype", None) == np.float32 and n_rows > ROWS.double_precision
    chooses = estimator is None or hasattr(estimator, "cv")
    coded = numbers * (1 + knots) + (n_columns - numbers) * OPTIONS.category_columns
    held = coded - numbers * knots if n_rows > ROWS.row_sums else coded
    copied = held != n_columns
    if held != coded and not _computes_hinges(estimator):
        held, copied = coded, True
    return needed_bytes(n_rows, coded, held, 4 if single else 8, copied=copied, chooses=chooses)


def _computes_hinges(estimator: Any) -> bool:
    """Whether hinges of many rows are computed where they are read, and not held."""
    holding = ("device", "fairness", "constraints")
    single = formulation_of(getattr(estimator, "loss", "log")).keeps_single
    here = getattr(estimator, "engine", "memory") == "memory"
    return single and here and all(getattr(estimator, name, None) is None for name in holding)


def needed_bytes(
    n_rows: int, coded: int, held: int, size: int, *, copied: bool, chooses: bool
) -> int:
    """Return the bytes for ``coded`` columns, of which ``held`` ones, of ``size`` bytes a number,
    are there of all rows; see the formula above.

    ``copied``: the rows of these are not the caller's own.
    """
    compared, sampled = min(n_rows, ROWS.compared), min(n_rows, OPTIONS.support)
    trained = size * n_rows * held + 8 * OPTIONS.path_copies(n_rows) * sampled * coded
    if n_rows > ROWS.profile:  # rows for importances and for the summary of the table
        trained += size * held * (ROWS.importances + ROWS.profile)
    folds = 0.0
    if chooses:
        copies = OPTIONS.fold_copies(compared, coded) + (compared < n_rows)
        folds = 8 * compared * copies * coded
    return int(size * n_rows * held * copied + max(trained, folds)) + OPTIONS.scratch


def available_memory() -> int | None:
    """Return the bytes that this process may still take; None where the system does not say."""
    found = []
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            found.append(1024 * int(line.split()[1]))
    limits = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current")
    most, now = (next(iter(_lines(name)), "") for name in limits)
    if most.isdigit() and now.isdigit():
        found.append(int(most) - int(now))
    return min(found, default=None)


def _lines(name: str) -> list[str]:
    try:
        return Path(name).read_text().splitlines()
    except OSError:
        return []


def refuse_too_large(estimator: Any, X: Any, free: int | None = None) -> None:
    """Raise ``ValueError`` if a fit of ``X`` cannot fit in the memory that is ``free``.

    By default that is what the system has available.
    """
    free = available_memory() if free is None else free
    if free is None or len(getattr(X, "shape", ())) != 2:
        return
    needed = estimate_memory(X, estimator)
    if needed > free:
        bent = is_auto(getattr(estimator, "curves", False)) or bool(estimator.curves)
        raise ValueError(
            f"X has {X.shape[0]:,} rows and {X.shape[1]:,} columns, whose fit takes about "
            f"{needed / 2**30:.1f} GiB of memory where {free / 2**30:.1f} are free; give fewer "
            f"rows or columns{', or curves=False' if bent else ''}."
        )
