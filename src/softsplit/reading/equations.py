"""A split as people read it: terms in original units, and how sharply it decides.

Of a tree that predicts by its walk (walk.py), coefficients and thresholds are the rounded ones that
``predict`` compares with, and all their digits are written. Of a tree that predicts by the mixture
of its leaves they are those of the gates, to ``digits`` digits.

In original units a split is sum_j coef_j f_j > threshold, where f_j is feature j itself or, under
the quantile scaling, its rank among the training values. It is divided by the coefficient of the
weightiest feature, so that this one stands first and bare; where that coefficient is negative, ">"
becomes "<".

Features that are 1 where something holds, such as "contract is monthly" or "income is unknown",
stand in brackets among others. A split on one of them alone reads as what holds on the left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from softsplit.fitted.model import TreeModel
from softsplit.reading.leaf_formulas import formula
from softsplit.reading.questions import PointedQuestion, read_question
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import visible
from softsplit.support.numbers import finite, number, percentage, whole_percentage

UNCOUNTED = "rows not counted after an edit"
"""What is said of the rows in a leaf below a question that was changed by hand."""


SURE = 0.95
"""Probability of one side from which on a split counts as sure."""

SHOWN_RANKS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Ranks whose values are listed, under the quantile scaling."""

PURE_LEAF = 0.995
"""Share of one class from which on a leaf is written as that class alone."""

LEAST_LISTED = 0.02
"""Share of a class below which a leaf does not list it."""

DIGITS = 4
"""Significant digits of numbers that are not printed as they are."""


@dataclass(frozen=True)
class Split:
    """One branch in original units: go left if ``terms`` ``sign`` ``threshold``.

    Attributes
    ----------
    branch : int
    features : tuple of int
        The weightiest first; empty if the branch looks at none.
    names : tuple of str
        What each coefficient multiplies, as it is read: the name of a feature, or "rank(name)".
    coefficients : tuple of float
        The first is 1.
    sign : {">", "<"}
    threshold : float
    width : float
        By how much the left side must differ from the centre to be 95 % sure.
    sure : tuple of float or None
        For a single ranked feature, the values below and above which it is 95 % sure.
    left_share : float
        Probability of going left if there are no features.
    ranked : bool
        Whether coefficients multiply ranks.
    lefts : tuple of float or None
        For a single feature that holds or not: the probabilities of going left where what
        ``names`` says holds, and where it does not.
    centre, gate_width : float
        Of the gate: with the sum s of the terms, p = 1 / (1 + exp(-(s - centre) / gate_width)) is
        the probability of going left (right, for the sign "<"). In units of ranks if ``ranked``.
    digits : int or None
        Digits that are written by default; None writes numbers as they are.
    taken : bool or None
        Of a walk, whether all rows go left at a branch without features.
    points : PointedQuestion or None
        The question in whole points, of a tree that is made of such.
    """

    branch: int
    features: tuple[int, ...]
    names: tuple[str, ...]
    coefficients: tuple[float, ...]
    sign: str
    threshold: float
    width: float
    sure: tuple[float, float] | None
    left_share: float
    ranked: bool
    lefts: tuple[float, float] | None = None
    centre: float = 0.0
    gate_width: float = 1.0
    digits: int | None = DIGITS
    taken: bool | None = None
    points: PointedQuestion | None = None

    @property
    def ranked_features(self) -> tuple[int, ...]:
        """Features of whose ranks the split speaks."""
        pairs = zip(self.features, self.names, strict=True)
        return tuple(j for j, name in pairs if self.ranked and not name.startswith("["))

    @property
    def listed(self) -> bool:
        """Whether a box holds a list of points, which begins at its left side."""
        return self.points is not None and not self.points.statement

    def terms(self, precision: int | None = None, most_terms: int | None = None) -> list[str]:
        """The terms with their signs; those left out are counted by the last. Of points all lines.

        ``precision`` is the number of significant digits, ``digits`` if it is not given.
        """
        if self.points is not None:
            return self.points.box_lines(most_terms)
        precision = precision or self.digits
        shown = len(self.features) if most_terms is None else max(1, most_terms)
        parts: list[str] = []
        for name, coef in list(zip(self.names, self.coefficients, strict=True))[:shown]:
            size = number(abs(coef), precision)
            body = name if size == "1" else f"{size} {name}"
            sign = "- " if coef < 0 else "+ " if parts else ""
            parts.append(f"{sign}{body}")
        left_out = len(self.features) - shown
        return [*parts, f"+ ... ({left_out} more)"] if left_out > 0 else parts

    def bound(self, precision: int | None = None) -> str:
        """Sign and threshold; nothing for a feature that holds or not, and below points."""
        if self.lefts is not None or self.points is not None:
            return ""
        return f"{self.sign} {number(self.threshold, precision or self.digits)}"

    @property
    def usual_side(self) -> tuple[bool, float]:
        """Of a branch without features: whether rows go left, and the probability of that side.

        It is the side of the walk, or the likelier one.
        """
        left = self.left_share >= 0.5 if self.taken is None else self.taken
        return left, self.left_share if left else 1.0 - self.left_share

    def always(self, precision: int = 4) -> str:
        """Of a branch without features: the side of all rows, and its probability."""
        left, share = self.usual_side
        return f"{'left' if left else 'right'} with probability {share:.{precision}g}"

    def gate(self) -> str:
        """Centre and width of the gate, or its two probabilities, with all their digits in a walk:
        what is printed gives ``predict_proba``."""
        if not self.features:
            left, share = self.usual_side
            return f"{'left' if left else 'right'} with {percentage(share)}"
        if self.lefts is not None:
            exact = self.digits is None
            held, else_ = (
                percentage(share) if exact else f"{100 * share:.3g} %" for share in self.lefts
            )
            return f"p = {held} where it holds, {else_} elsewhere"
        return (
            f"centre {number(self.centre, self.digits)}, width "
            f"{number(self.gate_width, self.digits)}"
        )

    def certainty(self, precision: int = 4) -> str:
        """From where on the split is sure: 95 rows in 100 go one way.

        For a feature that holds or not: how sure it is in either case.
        """
        if self.lefts is not None:
            held, else_ = (f"{100 * share:.3g} %" for share in self.lefts)
            return f"then left with {held}, else with {else_}"
        if self.sure is None:
            return f"sure when more than {number(self.width, 2)} away"
        low, high = (number(value, precision) for value in self.sure)
        return f"sure below {low} and above {high}"

    def condition(self, precision: int | None = None, most_terms: int | None = None) -> str:
        """The whole question on one line."""
        if self.points is not None:
            return self.points.title
        return f"{' '.join(self.terms(precision, most_terms))} {self.bound(precision)}".rstrip()


def _ratio(value: float, unit: float) -> float:
    """``value / unit``, or the largest number: units go down to 1 / (range of a column)."""
    with np.errstate(over="ignore"):
        return finite(float(np.float64(value) / unit))


def read_split(model: TreeModel, branch: int, written: Callable[[str], str] = visible) -> Split:
    """The split of one branch; ``written`` says how a name is put."""
    coef, intercept = model.splits
    row, offset = coef[branch], float(intercept[branch])
    # A coefficient may vanish in original units: that of a constant column, or by underflow.
    used = [int(j) for j in model.used(branch) if row[j] != 0]
    linear = model.scaling.linear
    if not used:
        score = np.clip(model.steepness * offset, -700, 700)
        share = float(1.0 / (1.0 + np.exp(-score)))
        taken = None if model.walk is None else bool(model.walk.thresholds[branch] < 0)
        return Split(branch, (), (), (), ">", 0.0, 0.0, None, share, not linear, taken=taken)
    walk = model.walk
    if walk is not None:  # the term whose coefficient is 1 stands first
        used.sort(key=lambda j: walk.coefficients[branch, j] != 1.0)
    unit = float(row[used[0]])
    if walk is not None and walk.coefficients[branch, used[0]]:  # 1 unless it was edited
        unit /= float(walk.coefficients[branch, used[0]])
    if model.coding is not None and model.coding.bends:
        used = _by_variable(used, model.coding.homes)
    centre = threshold = _ratio(-offset, unit)
    gate_width = _ratio(1.0 / model.steepness, abs(unit))
    width = finite(float(np.log(SURE / (1 - SURE)) * gate_width))
    coefficients = tuple(_ratio(row[j], unit) for j in used)
    upwards, sure, ranked = unit > 0, None, not linear
    if walk is not None:
        coefficients = tuple(float(walk.coefficients[branch, j]) for j in used)
        threshold, upwards = float(walk.thresholds[branch]), bool(walk.upwards[branch])
        centre, gate_width = (float(f"{value:.12g}") for value in (centre, gate_width))
    # Of the values 0 and 1 the walk may send both to one side, which no word says.
    parted = 0 <= threshold < 1 if upwards else 0 < threshold <= 1
    if len(used) == 1 and holds_or_not(model, used[0]) and (walk is None or parted):
        return _yes_or_no(model, branch, used[0], upwards, written)
    if walk is not None and not walk.ranked[branch]:
        used, threshold = _of_the_number(model, used, threshold, upwards)
    names = [written(model.feature_names[j]) for j in used]
    if ranked and len(used) == 1 and 0 < centre < 1:
        low, middle, high = (
            model.scaling.to_original(used[0], rank)
            for rank in (centre - width, centre, centre + width)
        )
        if walk is None:
            threshold, sure, ranked = middle, (low, high), False
        elif not walk.ranked[branch]:
            sure, ranked = (low, high), False
    names = [
        f"[{name}]" if holds_or_not(model, j) else f"rank({name})" if ranked else name
        for j, name in zip(used, names, strict=True)
    ]
    return Split(
        branch=branch,
        features=tuple(used),
        names=tuple(names),
        coefficients=coefficients,
        sign=">" if upwards else "<",
        threshold=threshold,
        width=width,
        sure=sure,
        left_share=0.5,
        ranked=ranked,
        centre=centre,
        gate_width=gate_width,
        digits=DIGITS if walk is None else None,
        points=read_question(model, branch, written),
    )


def _of_the_number(
    model: TreeModel, used: list[int], threshold: float, upwards: bool
) -> tuple[list[int], float]:
    """A question on one hinge alone, max(x - k, 0) > b, as one on its number, x > k + b."""
    coding = model.coding
    beyond = threshold >= 0 if upwards else threshold > 0
    if coding is None or len(used) != 1 or not coding.hinges[used[0]] or not beyond:
        return used, threshold
    home = int(coding.homes[used[0]])
    first = coding.firsts[home]
    knot = coding.variables[home].knots[used[0] - first - 1]
    return [first], float(Decimal(repr(float(knot))) + Decimal(repr(threshold)))


def _by_variable(columns: Sequence[int], homes: NDArray[np.intp]) -> list[int]:
    """Columns of a variable side by side, its value before its hinges; variables as they came."""
    order = list(dict.fromkeys(int(homes[j]) for j in columns))
    return sorted(columns, key=lambda j: (order.index(int(homes[j])), j))


def holds_or_not(model: TreeModel, feature: int) -> bool:
    """Whether a feature is 1 where something holds, and else 0."""
    return model.coding is not None and bool(model.coding.indicators[feature])


def _yes_or_no(
    model: TreeModel, branch: int, feature: int, upwards: bool, written: Callable[[str], str]
) -> Split:
    """A split on one feature that holds or not."""
    assert model.coding is not None
    rows = np.zeros((2, model.parameters.n_features))
    rows[0, feature] = 1.0
    held, else_ = (float(share) for share in model.gates(rows)[branch])
    name = model.feature_names[feature] if upwards else model.coding.opposites[feature]
    return Split(
        branch=branch,
        features=(feature,),
        names=(written(name),),
        coefficients=(1.0,),
        sign=">" if upwards else "<",
        threshold=0.5,
        width=0.5,
        sure=None,
        left_share=0.5,
        ranked=False,
        lefts=(held, else_) if upwards else (else_, held),
        digits=None if model.walk is not None else DIGITS,
    )


def rank_places(model: TreeModel, feature: int, precision: int = 4) -> list[tuple[float, str]]:
    """Which values of a feature have which rank."""
    return [
        (rank, number(model.scaling.to_original(feature, rank), precision)) for rank in SHOWN_RANKS
    ]


def leaf_label(model: TreeModel, leaf: int) -> str:
    """The class of a leaf and what is known of its rows, as text.

    Of a number: its formula. Of a walk: the class, and in brackets the training rows that arrive
    with their classes. Otherwise the class, or the classes with their shares; the predicted one is
    first.
    """
    if model.numbers is not None:
        return formula(model, leaf)
    labels = model.labels
    listed = listed_classes(model, leaf)
    shares = ", ".join(visible(labels[k]) + share for k, share in listed)
    if model.walk is None:
        return shares
    return f"{visible(labels[listed[0][0]])}   ({arriving_text(model, [leaf])})"


def arriving_text(model: TreeModel, leaves: Sequence[int]) -> str:
    """How many training rows arrive in leaves of a walk, and of which classes they are."""
    assert model.walk is not None
    counts = model.walk.counts[:, list(leaves)].sum(axis=1)
    total = float(counts.sum())
    if not total > 0:
        return right_text(counts, 0)
    listed = _listed(counts / total, int(model.walk.classes[leaves[0]]))
    return f"{_rows_text(total)}: " + ", ".join(
        visible(model.labels[k]) + share for k, share in listed
    )


def right_text(counts: FloatArray, k: int) -> str:
    """How many rows arrive, from their counts by class, and how many of them are of class k."""
    total = float(counts.sum())
    if np.isnan(total):
        return UNCOUNTED
    if total == 0:
        return "no training row"
    return f"{_rows_text(total)}, {whole_percentage(float(counts[k]) / total)} % right"


def _rows_text(total: float) -> str:
    return f"{number(total, None if total == round(total) else 4)} row{'' if total == 1 else 's'}"


def listed_classes(model: TreeModel, leaf: int) -> tuple[tuple[int, str], ...]:
    """Positions of the classes that a leaf lists, each with its share as text.

    The class that is predicted there stands first, whatever its share. Shares are those of the
    training rows that arrive by the walk, or without one those that the mixture is made of.
    """
    if model.numbers is not None:
        return ((leaf, ""),)  # no two leaves say the same
    predicted = int(model.leaf_predictions[leaf])
    if model.walk is None:
        shares = model.leaf_shares[:, leaf]
        if shares[predicted] >= PURE_LEAF:
            return ((predicted, ""),)
        return _listed(shares, predicted)
    counts = model.walk.counts[:, leaf]
    if not np.any(counts > 0):
        return ((predicted, ""),)
    return _listed(counts / counts.sum(), predicted)


def _listed(shares: FloatArray, predicted: int) -> tuple[tuple[int, str], ...]:
    """The predicted class and those of a noticeable share, the largest first."""
    others = (int(k) for k in np.argsort(-shares, kind="stable") if shares[k] >= LEAST_LISTED)
    listed = [predicted, *(k for k in others if k != predicted)]
    return tuple((k, f" {whole_percentage(float(shares[k]))} %") for k in listed)
