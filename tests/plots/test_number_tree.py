"""Pictures of trees that predict a number: facts, formula, and a bar for each term of a leaf."""

from __future__ import annotations

import matplotlib
import numpy as np
import pandas as pd
import pytest

matplotlib.use("Agg")

from softsplit import SoftTreeRegressor
from softsplit.plots import TreeDisplay
from softsplit.reading.leaf_boxes import DOWN, UP
from softsplit.reading.leaf_formulas import leaf_terms
from softsplit.report.drawing import tree_svg


@pytest.fixture(scope="module")
def tree():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 3)), columns=["$a$", "b", "c"])
    y = pd.Series(np.where(X.b > 0.2, 30 + 9 * X["$a$"], 5 - 3 * X.c), name="height")
    return SoftTreeRegressor(random_state=0).fit(X, y + rng.normal(size=300)), X, y


def test_a_bar_for_each_term_as_long_as_its_effect(tree):
    fitted, X, y = tree
    model = fitted.tree_
    display = TreeDisplay.from_estimator(fitted, X, y)
    bars = [p for p in display.ax_.patches if type(p).__name__ == "Rectangle"]
    leaves = np.flatnonzero(model.walk.counts[0]).tolist()
    terms = [(leaf, j) for leaf in leaves for j in leaf_terms(model, leaf)]
    assert len(bars) == len(terms) > 1
    span, slopes = model.scaling.arrays()["span"], model.numbers.functions.slopes
    sizes = np.array([slopes[j, leaf] * span[j] for leaf, j in terms])
    boxes = [p for p in display.ax_.patches if type(p).__name__ == "FancyBboxPatch"]
    for bar, size in zip(bars, sizes, strict=True):
        box = next(b for b in boxes if b.get_x() < bar.get_x() < b.get_x() + b.get_width())
        assert bar.get_width() / box.get_width() == pytest.approx(
            0.5 * size / np.abs(sizes).max(), rel=0.1
        )
        assert matplotlib.colors.to_hex(bar.get_facecolor()) == (UP if size > 0 else DOWN)
    shown = [text.get_text() for text in display.ax_.texts]
    assert sum("rows" in text for text in shown) == len(leaves)
    assert any(text.startswith("height = ") for text in shown)
    page = str(tree_svg(model, None, "tree"))
    assert page.count('class="bar"') == len(terms) and "9 $a$" in page
