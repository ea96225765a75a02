"""Small curves beside terms that bend: pages and pictures draw what the tree adds up."""

from __future__ import annotations

import matplotlib
import numpy as np
import pandas as pd
import pytest

from softsplit import SoftTreeClassifier
from softsplit.reading.outline import outline
from softsplit.reading.term_curves import term_curves

matplotlib.use("Agg")


@pytest.fixture(scope="module")
def bent():
    """A tree of three knots in which "hill" rises and falls, and a straight "slope" matters too."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"hill": rng.normal(50, 20, 900), "slope": rng.integers(-2, 3, 900)})
    X.loc[::9, "hill"] = np.nan
    y = np.abs(X["hill"].fillna(0) - 50) / 15 + X["slope"] + 0.3 * rng.normal(size=900) > 1
    return SoftTreeClassifier(points=False, depth=1, curves=3, random_state=0, n_starts=2).fit(X, y)


def curves_of(tree):
    questions = [q for q in outline(tree.tree_).questions() if q.split.features]
    return [(q, curve) for q in questions for curve in term_curves(tree.tree_, q.split)]


def test_a_curve_is_what_the_number_adds_to_the_score_of_the_tree(bent):
    model = bent.tree_
    ((question, curve),) = curves_of(bent)
    split = question.split
    assert curve.name == "hill" and 1 <= curve.bends.sum() <= 3
    assert [curve.values[0], curve.values[-1]] == [model.summary.low[0], model.summary.high[0]]
    assert all(split.names[place].find("hill") >= 0 for place in curve.terms)
    assert "unknown" not in "".join(split.names[place] for place in curve.terms)

    def scores(values):
        rows = np.zeros((len(values), len(model.feature_names)))
        rows[:, 0] = values
        model.coding.fill_hinges(rows)
        return model.scores(rows)[split.branch]

    # The curve is straight between its points: any value in the training range lies on it.
    values = np.random.default_rng(1).uniform(curve.values[0], curve.values[-1], 50)
    values[: len(curve.values)] = curve.values
    up = split.gate_width * model.steepness * (1 if split.sign == ">" else -1)
    found = np.interp(values, curve.values, curve.heights)
    np.testing.assert_allclose(
        found - found[0], up * (scores(values) - scores(values)[0]), rtol=1e-9, atol=1e-9
    )
    assert curve.sentence.endswith(curve.rises) and " up to " in curve.rises
