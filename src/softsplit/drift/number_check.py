"""New rows with a number beside the training rows of a tree that predicts it: mean and errors."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from softsplit.drift.results import ColumnCheck
from softsplit.drift.two_samples import p_value_worse
from softsplit.fitted.model import TreeModel
from softsplit.reading.leaf_formulas import grouped
from softsplit.support.arrays import FloatArray


def checked_numbers(
    model: TreeModel, X: FloatArray, y: FloatArray, leaves: FloatArray | None
) -> tuple[tuple[float, float] | None, list[ColumnCheck]]:
    """Root mean squared errors, here and in training, and the tests of rows with a number.

    ``leaves`` (n_leaves,) are the training rows that arrive, if they are known. Rates per unit of
    an exposure are not compared, for no row shows one.
    """
    numbers = model.numbers
    assert numbers is not None
    if numbers.totals is not None:
        return None, []
    away, arrived, checks = y - model.calls(X), model.arrive(X), []
    errors = None
    if leaves is not None:
        n, m = float(leaves.sum()), len(y)
        before, mean = float(leaves @ numbers.means) / n, float(y.mean())
        squares = float(np.mean(away**2)), float(leaves @ numbers.errors**2) / n
        errors = float(np.sqrt(squares[0])), float(np.sqrt(squares[1]))
        if m > 1:
            deviation = float(y.std(ddof=1)) * np.sqrt(1.0 / m + 1.0 / n)
            z = abs(mean - before) / max(deviation, 1e-300)
            said = f"mean {grouped(mean, 4)}, was {grouped(before, 4)}"
            name, p_value = model.answers[0], float(2.0 * norm.sf(z))
            checks.append(ColumnCheck(name, "target", p_value, used=True, said=said))
    if numbers.scores is not None:
        own = np.abs(away) / numbers.errors[arrived]
        weight = np.full(len(numbers.scores), numbers.rows / len(numbers.scores))
        said = (
            f"half of the rows are off by at most {np.median(own):.3g} typical errors of their "
            f"leaf; of held-out rows by {np.median(numbers.scores):.3g}"
        )
        p_value = p_value_worse(numbers.scores, weight, own)
        checks.append(ColumnCheck("answers", "worse", p_value, used=True, said=said))
    return errors, checks
