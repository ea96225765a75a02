"""How the formula of a leaf makes a number of one row: its terms, their sum, where it is cut.

    leaf: charges = 550 + 140 age   [leaf 1]
        constant                550
        140 age    age = 40   5,600
        sum                   6,150

Under a log link all amounts are factors, and their product is the prediction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softsplit.fitted.leaf_numbers import NoResidualsError
from softsplit.fitted.model import TreeModel
from softsplit.reading.leaf_formulas import (
    INTERVAL,
    formula,
    grouped,
    leaf_terms,
    target_name,
    term_text,
)
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import cut, visible
from softsplit.support.numbers import finite, number

DIGITS = 6
"""Significant digits of amounts and sums."""


@dataclass(frozen=True)
class LeafTerm:
    """One term of a formula for a row.

    Attributes
    ----------
    term : str
        As it is printed, with its coefficient.
    name : str
        Column of the table, or part of a date.
    value : float or str
        Of this row, as people write it.
    amount : float
        What it adds to the sum, or its factor.
    treated : str
        Of a missing value and of a level that has no place in the coding, what it counts as.
    """

    term: str
    name: str
    value: float | str
    amount: float
    treated: str = ""


@dataclass(frozen=True)
class LeafReading:
    """The formula of a leaf for one row.

    Attributes
    ----------
    formula : str
        As it is printed: "charges = 550 + 140 age".
    number : int
        Of the leaf in the printed tree; 0 in a tree without a question.
    probability : float
        The part that its prediction has in that of the tree; 1 at the end of a walk.
    constant : float
    terms : tuple of LeafTerm
        With ``constant`` they add up to ``total``, or their product is ``total``.
    total, prediction : float
        The sum, and the sum within the bounds of the leaf.
    product : bool
        Whether amounts are factors.
    """

    formula: str
    number: int
    probability: float
    constant: float
    terms: tuple[LeafTerm, ...]
    total: float
    prediction: float
    product: bool

    def lines(self) -> list[str]:
        """The sum, term by term."""
        rows = [("constant", "", self.constant)]
        for term in self.terms:
            value = number(term.value, 6) if isinstance(term.value, float) else term.value
            treated = f" ({visible(term.treated)})" if term.treated else ""
            told = f"{visible(term.name)} = {cut(visible(value))}{treated}"
            rows.append((term.term, told, term.amount))
        rows.append(("product" if self.product else "sum", "", self.total))
        if self.prediction != self.total:
            rows.append(("cut where its training rows end", "", self.prediction))
        texts = [(name, told, grouped(amount, DIGITS)) for name, told, amount in rows]
        first, second, third = (max(map(len, column)) for column in zip(*texts, strict=True))
        return [f"    {a:<{first}}   {b:<{second}}   {c:>{third}}" for a, b, c in texts]


def leaf_readings(
    model: TreeModel,
    x: FloatArray,
    shares: Sequence[tuple[int, int, float]],
    written: Sequence[float | str],
    treated: Sequence[str],
) -> tuple[LeafReading, ...]:
    """Leaves for a row x (n_features,): their positions, numbers in the text, and parts.

    ``written`` are the values of the row by variable as people write them, ``treated`` what those
    count as that have no place in the coding.
    """
    numbers, coding = model.numbers, model.table_coding
    assert numbers is not None
    functions, readings = numbers.functions, []
    product = numbers.family.log_link
    linked = np.exp if product else float
    for leaf, place, share in shares:
        # 1. The terms of the leaf: coefficient times value, or its factor with a log link.
        terms = []
        for j in leaf_terms(model, leaf):
            slope, home = float(functions.slopes[j, leaf]), int(coding.homes[j])
            sign = "-" if slope < 0 and not product else ""
            terms.append(
                LeafTerm(
                    term=sign + term_text(model, j, leaf),
                    name=coding.variables[home].name,
                    value=written[home],
                    amount=finite(float(linked(slope * float(x[j])))),
                    treated=treated[home],
                )
            )
        # 2. Their sum or product, within the bounds of the leaf.
        constant = float(linked(functions.constants[leaf]))
        amounts = [constant, *(term.amount for term in terms)]
        total = math.prod(amounts) if product else sum(amounts)
        ends = numbers.family.prediction(np.array([functions.low[leaf], functions.high[leaf]]))
        readings.append(
            LeafReading(
                formula=f"{target_name(model)} = {formula(model, leaf)}",
                number=place,
                probability=share,
                constant=constant,
                terms=tuple(terms),
                total=total,
                prediction=float(np.clip(total, *ends)),
                product=product,
            )
        )
    return tuple(readings)


def usual_interval(model: TreeModel, leaf: int, predicted: float) -> tuple[float, float] | None:
    """Bounds of 90 % of new rows like this one; None where no held-out rows are known."""
    assert model.numbers is not None
    try:
        low, high = model.numbers.bounds(np.array([predicted]), np.array([leaf]), INTERVAL)
    except NoResidualsError:
        return None
    return float(low[0]), float(high[0])


def number_lines(target: str, predicted: float, interval: tuple[float, float] | None) -> list[str]:
    """The prediction with its interval, such as "charges 6,150   (90 % within 4,000 to 8,300)"."""
    within = ""
    if interval is not None:
        low, high = (grouped(bound, 4) for bound in interval)
        within = f"   ({100 * INTERVAL:g} % within {low} to {high})"
    return [f"{visible(target)} {grouped(predicted, DIGITS)}{within}"]


def leaf_lines(leaves: Sequence[LeafReading]) -> list[str]:
    """The leaves with the terms of their formulas; several are mixed by their probabilities."""
    lines = []
    for leaf in leaves:
        place = f"   [leaf {leaf.number}]" if leaf.number else ""
        lines += [f"leaf: {leaf.formula}{place}", *leaf.lines()]
        if len(leaves) > 1:
            lines.append(
                f"    probability {100 * leaf.probability:.3g} %, which adds "
                f"{grouped(leaf.probability * leaf.prediction, DIGITS)}"
            )
    return lines
