"""The figures of a page about a tree that predicts a number: how far it is off, and where."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.estimators.survival import concordance
from softsplit.fitted.leaf_numbers import LeafNumbers, NoResidualsError
from softsplit.fitted.model import TreeModel
from softsplit.reading.leaf_formulas import INTERVAL, grouped
from softsplit.reading.outline import outline
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import counted, shortened
from softsplit.variables import CodedRows

FOLDS, TRAINED, OTHERS = "rows that the folds held out", "training rows", "the rows given here"
"""Which rows the figures are of."""


class LeafErrors(NamedTuple):
    """The rows of a leaf: their mean, mean size and mean of residuals, and the share within the
    interval where there is one."""

    number: int
    rows: int
    mean: float
    off: float
    bias: float
    half: float | None
    within: float | None


@dataclass(frozen=True, eq=False)
class NumberReport:
    """What a page about a tree that predicts a number is made of.

    Attributes
    ----------
    name : str
        That of the data.
    tree : SoftTreeRegressor
    rows : CodedRows
    y, predicted : arrays of shape (n_rows,)
        NaN where no fold held a row out. Of rates, counts and expected ones; of hazards, events (0
        or 1) and hazards.
    judged : str
        Which rows these are: ``FOLDS``, ``TRAINED`` or ``OTHERS``.
    exposure : array of shape (n_rows,)
        1 for plain numbers; of hazards, the cumulative baseline until ``times``.
    times : array of shape (n_rows,), optional
        Of hazards.
    """

    name: str
    tree: Any
    rows: CodedRows
    y: FloatArray
    predicted: FloatArray
    judged: str
    exposure: FloatArray
    times: FloatArray | None = None

    @property
    def model(self) -> TreeModel:
        model: TreeModel = self.tree.tree_
        return model

    @property
    def numbers(self) -> LeafNumbers:
        numbers = self.model.numbers
        assert numbers is not None
        return numbers

    @property
    def figures(self) -> dict[str, float]:
        """What the tree is worth, by names; the first stands in the lead."""
        if self.times is not None:
            return {"concordance": self.concordance}
        if self.numbers.totals is not None:
            return {"deviance_explained": self.explained}
        return {"mean_absolute_error": self.off, "r2": self.r2}

    @property
    def explained(self) -> float:
        """The part of the deviance of the best constant rate that is explained."""
        rows, family = self.known, self.numbers.family
        rate = float(self.y[rows].sum()) / float(self.exposure[rows].sum())
        left, whole = (
            float(family.deviance(self.y[rows], family.score(said)).sum())
            for said in (self.predicted[rows], rate * self.exposure[rows])
        )
        return 1.0 - left / whole if whole > 0 else 0.0

    @property
    def concordance(self) -> float:
        """Of pairs of rows whose order is known, those of which the tree orders rightly."""
        rows, times = self.known, self.times
        assert times is not None
        ones = np.ones(len(rows))
        return concordance(times[rows], self.y[rows], self.predicted[rows], ones)

    @cached_property
    def known(self) -> NDArray[np.intp]:
        """Rows with a prediction."""
        return np.flatnonzero(np.isfinite(self.predicted))

    @property
    def residuals(self) -> FloatArray:
        """Observed minus predicted, of the known rows."""
        return (self.y - self.predicted)[self.known]

    @property
    def off(self) -> float:
        """The mean absolute error."""
        return float(np.mean(np.abs(self.residuals)))

    @property
    def off_of_mean(self) -> float:
        """That of saying the mean of y always."""
        y = self.y[self.known]
        return float(np.mean(np.abs(y - y.mean())))

    @property
    def r2(self) -> float:
        """The part of the variance that is predicted; 0 of a target that does not vary."""
        variance = float(np.var(self.y[self.known]))
        return 1.0 - float(np.mean(self.residuals**2)) / variance if variance > 0 else 0.0

    @property
    def lead(self) -> str:
        """What the tree is worth, and what it needs, in one sentence."""
        used = f"{len(self.tree.selected_features_)} of "
        used += counted(self.model.table_coding.n_candidates, "column")
        where = "" if self.judged == FOLDS else f" on {self.judged}"
        worth = (
            f"Typically off by {grouped(self.off, 2)}{where}; always saying the mean: "
            f"{grouped(self.off_of_mean, 2)}"
        )
        rows = counted(len(self.y), "row")
        if self.times is not None:
            worth = (
                f"Of two {self.judged}, the one with the larger hazard has its event first in "
                f"{100 * self.concordance:.0f} of 100 pairs"
            )
            rows += f", {counted(int(self.y.sum()), 'event')}"
        elif self.numbers.totals is not None:
            worth = f"Explains {100 * self.explained:.0f} % of the deviance of {self.judged}"
        return f"{worth}; {used} ({shortened(self.name, 60)}, {rows})."

    @cached_property
    def leaves(self) -> NDArray[np.intp]:
        """The leaf at which each row arrives."""
        return self.model.arrive(np.asarray(self.rows.X, dtype=float))

    @cached_property
    def half_widths(self) -> FloatArray | None:
        """Of the intervals of the leaves, if rows were held out for them."""
        try:
            return self.numbers.half_widths(INTERVAL)
        except NoResidualsError:
            return None

    @cached_property
    def leaf_errors(self) -> list[LeafErrors]:
        """The leaves in the order of the text, those at which a known row arrives."""
        errors, leaves, half = [], self.leaves[self.known], self.half_widths
        for number, end in enumerate(outline(self.model).ends(), 1):
            inside = np.flatnonzero(np.isin(leaves, list(end.leaves)))
            if not len(inside):
                continue
            sizes, width = np.abs(self.residuals[inside]), None
            if half is not None:
                width = float(half[end.leaf])
            errors.append(
                LeafErrors(
                    number, len(inside), float(self.y[self.known][inside].mean()),
                    float(sizes.mean()), float(self.residuals[inside].mean()), width,
                    None if width is None else float(np.mean(sizes <= width)),
                )
            )  # fmt: skip
        return errors


def judged_rows(
    model: TreeModel, X: FloatArray, y: FloatArray, held_out: Any, exposure: FloatArray
) -> str:
    """Whether these are the training rows, by the rows and means of the leaves, and what is known
    of them: ``held_out`` predictions or none."""
    numbers = model.numbers
    assert numbers is not None
    arrived = np.bincount(leaves := model.arrive(X), minlength=numbers.functions.n_leaves)
    totals = np.bincount(leaves, exposure, len(arrived))
    means = np.bincount(leaves, y, len(arrived)) / np.where(totals > 0, totals, 1.0)
    close = np.isclose(means, numbers.means, rtol=1e-9, atol=1e-9 * float(np.ptp(y)))
    same = bool(np.all(close[arrived > 0]))
    if model.walk is not None:
        same &= np.array_equal(arrived, model.walk.counts[0])
    if not same:
        return OTHERS
    return FOLDS if held_out is not None and len(held_out) == len(y) else TRAINED
