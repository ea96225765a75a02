"""Numbers of several terms: the text says what each unit counts, from knot to knot."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from softsplit import SoftTreeClassifier, export_text
from softsplit.reading.outline import outline
from softsplit.reading.term_curves import term_curves


def curves_of(tree):
    asked = [q.split for q in outline(tree.tree_).questions()]
    return [curve for split in asked for curve in term_curves(tree.tree_, split)]


def test_slopes_from_knot_to_knot_are_sums_of_printed_coefficients():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"hill": rng.normal(50, 20, 900), "slope": rng.integers(-2, 3, 900)})
    y = np.abs(X["hill"] - 50) / 15 + X["slope"] + 0.3 * rng.normal(size=900) > 1
    tree = SoftTreeClassifier(points=False, depth=1, curves=3, random_state=0, n_starts=2).fit(X, y)
    ((name, rises),) = curves_of(tree)
    text = export_text(tree)
    assert name == "hill" and f"hill in question 1: {rises}" in text
    condition = text.split("   [question 1]")[0].removeprefix("if ")
    number = r"(- |-)?([\d.]+ )?"
    bends = re.findall(rf"{number}max\(hill - ([\d.]+), 0\)", condition)
    straight = re.findall(rf"{number}hill(?! -)", condition)

    def size(sign, digits):
        return (-1 if sign else 1) * float(digits or 1)

    slope = sum(size(sign, digits) for sign, digits in straight)
    own = {float(knot): size(sign, digits) for sign, digits, knot in bends}
    said = [float(n) for n in re.findall(r"(?:^|then )(-?[\d.]+)", rises)]
    expected = np.cumsum([slope, *(own[k] for k in sorted(own))])
    np.testing.assert_allclose(said, expected, rtol=2e-3, atol=1e-3)


def test_straight_numbers_have_no_such_line():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 2))
    tree = SoftTreeClassifier(points=False, random_state=0, n_starts=2)
    assert not curves_of(tree.fit(X, X[:, 0] + X[:, 1] > 0)) and tree.coding_.bends
