"""Memory that a fit takes beyond its input: an estimate, and a refusal before training begins.

With n rows of c coded columns (a number that bends at h knots is 1 + h of them), m compared rows
and s rows on which the support is selected, a choice by cross-validation holds at its peak about

    coded + max(f m c, n c + k s c)

times 8 bytes: coded = n c where numbers bend or a table is coded, n c all rows in training order, f
the copies of the compared rows that the folds hold, and k the copies of the sample that the paths
hold, both measured (docs/results/waiting.md). Of more than ``RowBudgets.row_sums`` rows hinges are
computed where they are read, and are in neither n c.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from softsplit.fitted.model import TreeHolder
from softsplit.formulations import formulation_of
from softsplit.settings.checks import is_auto, knot_count
from softsplit.support.messages import shown
from softsplit.support.row_budgets import ROWS

# Rows of the sample on which the support of the last tree is selected.
SAMPLE = 20_000

# Columns that a column which holds no numbers is taken for.
CATEGORY_COLUMNS = 8

# Bytes for all that does not grow with the table; compiled code is not counted.
SCRATCH = 2**24


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
    formulation = formulation_of(getattr(estimator, "loss", "log"))
    # 1. Columns that the table becomes, and those of them that all rows hold.
    numbers = n_columns
    if hasattr(X, "dtypes"):
        numbers = sum(getattr(kind, "kind", "O") in "fiub" for kind in X.dtypes)
    knots = knot_count("curves", getattr(estimator, "curves", "auto"))
    hinges = numbers * (formulation.n_knots(n_rows, n_columns) if knots is None else knots)
    coded = numbers + hinges + CATEGORY_COLUMNS * (n_columns - numbers)
    here = getattr(estimator, "engine", "memory") == "memory" and formulation.keeps_single
    needed = ("device", "fairness", "constraints")  # these take hinges that are there
    computed = here and all(getattr(estimator, name, None) is None for name in needed)
    held = coded - hinges if computed and n_rows > ROWS.row_sums else coded
    # 2. The tree on all rows: these in training order, and copies of a sample.
    single = getattr(X, "dtype", None) == np.float32 and n_rows > ROWS.double_precision
    rows = (4 if single else 8) * n_rows * held
    training = rows + 8 * (4.5 if n_rows > SAMPLE else 3.2) * min(n_rows, SAMPLE) * coded
    # 3. The choice: copies of the rows that are compared.
    compared, folds = min(n_rows, ROWS.compared), 0.0
    if estimator is None or hasattr(estimator, "cv"):
        copies = 9.0  # all folds, with two scalings
        if compared * coded > ROWS.halved_cells:  # a few folds and blocks of columns
            copies = 6.0 if compared > ROWS.parallel else 3.2
        folds = 8 * compared * coded * (copies + (compared < n_rows))
    return int((rows if held != n_columns else 0) + max(training, folds)) + SCRATCH


def available_memory() -> int | None:
    """Return the bytes that this process may still take; None where the system does not say."""
    free: list[int] = []
    with suppress(OSError, ValueError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        free += [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    with suppress(OSError, ValueError):  # no limit is a word
        group = Path("/sys/fs/cgroup")
        most, now = ((group / f"memory.{name}").read_text() for name in ("max", "current"))
        free.append(int(most) - int(now))
    return min(free, default=None)


def refuse_too_large(estimator: Any, X: Any) -> None:
    """Raise ``ValueError`` if a fit of ``X`` cannot fit in the memory that is available."""
    free = available_memory()
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
