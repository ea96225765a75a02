"""Numbers that bend, in words: what each unit of one counts in a question, from knot to knot.

    f(x) = c_0 x + sum_n c_n max(x - k_n, 0)

with the printed coefficients c and the knots k of the number: its slopes are sums of the c.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softsplit.fitted.model import TreeModel
from softsplit.reading.equations import Split
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import visible
from softsplit.support.numbers import number
from softsplit.variables.curves import knot_text, slopes


def term_curves(model: TreeModel, split: Split) -> list[tuple[str, str]]:
    """Return the numbers of several terms in a question, each with its slopes in words."""
    coding = model.coding
    if coding is None or not coding.bends or split.lefts is not None:
        return []
    known = dict(zip(split.features, split.coefficients, strict=True))
    curves = []
    for i in dict.fromkeys(int(coding.homes[j]) for j in split.features):
        variable, first = coding.variables[i], coding.firsts[i]
        own = np.array([known.get(first + n, 0.0) for n in range(1 + variable.n_hinges)])
        low, high = float(model.summary.low[first]), float(model.summary.high[first])
        bends = any(c and low < k < high for k, c in zip(variable.knots, own[1:], strict=True))
        if bends and sum(first <= j < first + len(own) for j in known) > 1:
            curves.append((visible(variable.name), _rises(slopes(own), variable.knots)))
    return curves


def _rises(rises: FloatArray, knots: Sequence[float]) -> str:
    """Slopes between knots in words; knots without a bend are left out."""
    parts: list[str] = []
    for rise, after, knot in zip(rises, rises[1:], knots, strict=False):
        if abs(after - rise) > 1e-9 * max(abs(after), abs(rise)):
            parts.append(f"{number(float(rise))}{'' if parts else ' per unit'} up to "
                         f"{knot_text(knot)}")  # fmt: skip
    return ", then ".join([*parts, number(float(rises[-1]))])
