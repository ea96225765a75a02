"""Pictures: what is drawn is what the tree says, and nothing runs out of its box."""

from __future__ import annotations

import sys

import matplotlib
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from readings import random_classifier
from slow_cases import slow
from softsplit import SoftTreeClassifier, strength_path
from softsplit.plots import (
    CoefficientsDisplay,
    DecisionRegionsDisplay,
    ReliabilityDisplay,
    StrengthPathDisplay,
    TreeDisplay,
)
from softsplit.plots.tree import STYLE
from softsplit.tree.scaling import KINDS

ODD = [
    "$x_1$ and $y", "_hidden", "a_b^c", "two\nlines", "x" * 80, r"back\slash", "100 %", "{brace}",
    "é", "#", "~", "&", "f", "g",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True, as_frame=True)
    y = np.array(["$a$", "_b", "c"])[y]
    tree = SoftTreeClassifier(global_strength=0.5, n_starts=4, random_state=0).fit(X, y)
    return tree, X, y


@pytest.fixture(scope="module")
def path(wine):
    _, X, y = wine
    model = SoftTreeClassifier(n_starts=2, random_state=0)
    return strength_path(X, y, estimator=model, n_points=5)


def texts(ax):
    return [text.get_text() for text in ax.texts]


def extents(display):
    """Bounding boxes of all texts and of all boxes around nodes, in pixels."""
    display.figure_.canvas.draw()
    renderer = display.figure_.canvas.get_renderer()
    words = [(t.get_text(), t.get_window_extent(renderer)) for t in display.ax_.texts]
    boxes = [
        p.get_window_extent(renderer)
        for p in display.ax_.patches
        if type(p).__name__ == "FancyBboxPatch"
    ]
    return words, boxes


@pytest.mark.parametrize("depth", [2, *slow(1, 3)])
@pytest.mark.parametrize("kind", KINDS)
def test_no_text_leaves_its_box_and_no_boxes_overlap(depth, kind):
    tree, X = random_classifier(
        depth, depth=depth, n_classes=5, kind=kind, n_features=14, steepness=200.0
    )
    X = pd.DataFrame(X, columns=tree.feature_names_in_)
    display = TreeDisplay.from_estimator(tree, X, tree.predict(X), feature_names=ODD)
    words, boxes = extents(display)
    assert boxes
    for i, box in enumerate(boxes):
        for other in boxes[i + 1 :]:
            apart = (
                box.x1 <= other.x0 or other.x1 <= box.x0 or box.y1 <= other.y0 or other.y1 <= box.y0
            )
            assert apart
    for text, extent in words:
        middle = (extent.x0 + extent.x1) / 2, (extent.y0 + extent.y1) / 2
        around = [b for b in boxes if b.contains(*middle)]
        if around:
            assert around[0].x0 <= extent.x0 and extent.x1 <= around[0].x1, text
    sheet = display.figure_.bbox
    for _, extent in words:
        assert sheet.x0 <= extent.x0 and extent.x1 <= sheet.x1
        assert sheet.y0 <= extent.y0 and extent.y1 <= sheet.y1


def test_odd_names_stay_text(wine):
    tree, X, y = wine
    display = TreeDisplay.from_estimator(tree, X, y, feature_names=[f"${n}$" for n in X.columns])
    display.figure_.canvas.draw()  # mathematics between dollars would be set in italics, or fail
    shown = " ".join(texts(display.ax_))
    assert r"\$" in shown and not [
        t for t in display.ax_.texts if "$" in t.get_text().replace(r"\$", "")
    ]


def test_the_bands_are_as_wide_as_the_rows_they_carry(wine):
    tree, X, y = wine
    display = TreeDisplay.from_estimator(tree, X, y)
    n_branches = len(tree.thresholds_)
    leaves = tree.decision_path(X).toarray()[:, n_branches:]
    for k, label in enumerate(tree.classes_):
        arriving = leaves[y == label].sum(axis=0)
        np.testing.assert_allclose(display.flow[k, n_branches:], arriving, atol=1e-12)
        np.testing.assert_allclose(display.flow[k, 0], np.sum(y == label))
    np.testing.assert_allclose(
        display.flow[:, 0], display.flow[:, 1] + display.flow[:, 2], rtol=1e-12
    )
    bands = [p for p in display.ax_.patches if type(p).__name__ == "PathPatch"]
    corners = np.array([band.get_path().vertices for band in bands])
    top = corners[:, 0, 1] == corners[:, 0, 1].max()
    widths = corners[top, 7, 0] - corners[top, 0, 0]
    assert widths.sum() == pytest.approx(STYLE.widest, rel=0.02)  # thin bands are not drawn


def test_coefficients_are_those_of_the_tree(wine):
    tree, _, _ = wine
    display = CoefficientsDisplay.from_estimator(tree)
    names = list(tree.coding_.column_names)
    places = [names.index(name) for name in display.feature_names]
    order = [tree.feature_importances_[tree.coding_.homes[place]] for place in places]
    assert order == sorted(order, reverse=True)
    assert set(tree.coding_.homes[places]) == set(tree.selected_features_)
    first = places[0]
    deciding = tree.weights_[first][tree.weights_.any(axis=0)]
    assert sorted(display.weights[0]) == sorted(deciding)
    written = [text for text in texts(display.ax_) if text]
    assert len(written) == np.count_nonzero(display.weights)


def test_a_path_shows_what_the_frame_holds(path, wine):
    _, X, y = wine
    display = StrengthPathDisplay.from_path(path, X, y)
    frame = path.to_frame()
    np.testing.assert_array_equal(display.strengths, frame.global_strength)
    np.testing.assert_array_equal(display.columns["cost"], frame.cost)
    expected = [point.classifier.score(X, y) for point in path.points]
    np.testing.assert_allclose(display.columns["accuracy"], expected)
    np.testing.assert_array_equal((display.sizes > 0).sum(axis=0), frame.n_features)
    assert len(display.ax_) == 3
    _, axes = plt.subplots(3, 1)
    assert StrengthPathDisplay.from_path(path, ax=axes).ax_ == list(axes)
    with pytest.raises(ValueError, match="ax must hold 3 axes, got 1"):
        StrengthPathDisplay.from_path(path, ax=axes[:1])
    with pytest.raises(ValueError, match="give y as well"):
        StrengthPathDisplay.from_path(path, X)


class Fixed:
    """A classifier that says what it is told."""

    def __init__(self, proba):
        self.proba = np.asarray(proba)
        self.classes_ = np.arange(self.proba.shape[1])

    def predict_proba(self, X):
        return self.proba


def test_reliability_counts_bins_by_hand():
    p = np.array([0.02, 0.05, 0.55, 0.58, 0.55, 1.0])
    y = np.array([0, 0, 1, 0, 1, 1])
    display = ReliabilityDisplay.from_estimator(Fixed(np.column_stack([1 - p, p])), p, y)
    (curve,) = display.curves
    np.testing.assert_allclose(curve.rows, [2, 3, 1])
    np.testing.assert_allclose(curve.predicted, [0.035, 0.56, 1.0])
    np.testing.assert_allclose(curve.observed, [0, 2 / 3, 1])
    assert curve.error == pytest.approx((2 * 0.035 + 3 * (2 / 3 - 0.56)) / 6)
    low, high = curve.interval()
    assert np.all(low <= curve.observed) and np.all(curve.observed <= high)
    assert np.all((low >= 0) & (high <= 1))


def test_regions_predict_over_the_plane(wine):
    tree, X, y = wine
    display = DecisionRegionsDisplay.from_estimator(
        tree, X, y, features=("flavanoids", "proline"), resolution=20
    )
    assert display.probabilities.shape == (20, 20, 3)
    row = X.median().to_frame().T
    row["flavanoids"], row["proline"] = display.grid[0][3], display.grid[1][11]
    np.testing.assert_allclose(display.probabilities[11, 3], tree.predict_proba(row)[0])
    assert np.bincount(display.classes_of_points).sum() == len(X)
    best = np.argsort(-tree.feature_importances_)[:2]
    auto = DecisionRegionsDisplay.from_estimator(tree, X, resolution=5)
    assert auto.names == tuple(tree.feature_names_in_[best])


@pytest.mark.parametrize("features", [("proline", "nonsense"), (0, 99), (1, 1), (1,)])
def test_regions_need_two_columns(wine, features):
    tree, X, _ = wine
    with pytest.raises(ValueError, match="features must name two"):
        DecisionRegionsDisplay.from_estimator(tree, X, features=features)


def test_without_matplotlib_one_sentence_says_what_to_install(wine, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    for display in (CoefficientsDisplay, TreeDisplay):
        with pytest.raises(ImportError, match=r"pictures need matplotlib; install it with pip"):
            display.from_estimator(wine[0])
