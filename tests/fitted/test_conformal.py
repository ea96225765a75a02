"""Prediction sets: coverage where the answer is known, and what files and hostile calls do."""

from __future__ import annotations

import numpy as np
import pytest

from softsplit import SoftTreeClassifier, SoftTreeClassifierCV, dumps_model, loads_model
from softsplit.fitted.conformal import HeldOutScores


def test_thresholds_are_order_statistics() -> None:
    """With n = 9 rows, 80 % is the 8th score, 90 % the 9th, and 95 % cannot be had."""
    scores = np.arange(1, 10) / 10
    found = HeldOutScores.of(np.column_stack([1 - scores, scores]), np.zeros(9, dtype=np.int64))
    levels = [found.threshold(c) for c in (0.8, 0.9, 0.95)]
    np.testing.assert_allclose(levels, [0.8, 0.9, np.inf])
    assert found.threshold(0.5, of_class=1) == np.inf  # no row of that class


def test_coverage_is_that_of_the_theorem() -> None:
    """Means over 300 draws of 40 held-out rows lie between the level and 1 / 41 above."""
    drawn = np.random.default_rng(0)
    covered: dict[float, list[float]] = {0.8: [], 0.9: []}
    for _ in range(300):
        proba = drawn.dirichlet(np.ones(3), 340)
        labels = np.array([drawn.choice(3, p=p) for p in proba])
        found = HeldOutScores.of(proba[:40], labels[:40])
        for level, means in covered.items():
            sets = found.sets(proba[40:], level)
            means.append(float(sets[np.arange(300), labels[40:]].mean()))
    for level, means in covered.items():
        error = np.std(means) / np.sqrt(len(means))
        assert level - 3 * error <= np.mean(means) <= level + 1 / 41 + 3 * error


@pytest.fixture(scope="module")
def table() -> tuple[np.ndarray, np.ndarray]:
    drawn = np.random.default_rng(3)
    X = drawn.normal(size=(1200, 4))
    rates = 1 / (1 + np.exp(-1.5 * X[:, 0] + X[:, 1]))
    return X, (drawn.random(1200) < rates).astype(int)


@pytest.mark.parametrize("loss", ["log", "cost"])
def test_a_search_keeps_its_held_out_rows(table: tuple[np.ndarray, np.ndarray], loss: str) -> None:
    """Coverage of new rows at three levels, and the same sets from the model file."""
    X, y = table
    tree = SoftTreeClassifierCV(loss=loss, depths=[1], random_state=0).fit(X[:400], y[:400])
    assert tree.tree_.held_out is not None
    assert tree.tree_.held_out.rows.tolist() == np.bincount(y[:400]).tolist()
    back = loads_model(dumps_model(tree))
    for level in (0.8, 0.9, 0.95):
        sets = tree.predict_set(X[400:], level)
        error = np.sqrt(level * (1 - level) * (1 / 400 + 1 / 800))  # of 400 known, 800 new rows
        assert abs(sets[np.arange(800), y[400:]].mean() - level) < 2 * error
        np.testing.assert_array_equal(back.predict_set(X[400:], level), sets)
    by_class = back.predict_set(X[400:], 0.8, class_conditional=True)
    for k in (0, 1):
        assert abs(by_class[y[400:] == k, k].mean() - 0.8) < 0.07  # two errors of 200 known rows


def test_who_cannot_be_sure_says_so(table: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = table
    tree = SoftTreeClassifier(depth=1, random_state=0).fit(X[:200], y[:200])
    with pytest.raises(ValueError, match="knows no held-out rows; choose it with"):
        tree.predict_set(X)
    for wrong in (0, 1, 1.5, "high", True, float("nan")):
        with pytest.raises(ValueError, match="confidence must be a number between 0 and 1"):
            tree.predict_set(X, wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [{}, {"decision": "mixture"}, {"loss": "cost"}])
def test_calibration_keeps_classes_and_mends_probabilities(
    table: tuple[np.ndarray, np.ndarray], given: dict[str, str]
) -> None:
    """Labels are made noisier after the fit: probabilities follow, classes stay."""
    X, y = table
    tree = SoftTreeClassifier(depth=1, random_state=0, **given).fit(X[:400], y[:400])
    drawn = np.random.default_rng(0)
    noisy = np.where(drawn.random(1200) < 0.25, 1 - y, y)
    twin = tree.calibrate(X[400:800], noisy[400:800])
    np.testing.assert_array_equal(twin.predict(X), tree.predict(X))
    new = np.arange(400), noisy[800:]

    def loss(one: SoftTreeClassifier) -> float:
        return float(-np.log(one.predict_proba(X[800:])[new]).mean())

    assert loss(twin) < loss(tree) - 0.02
    covered = twin.predict_set(X[800:], 0.8)[new].mean()
    assert 0.74 < covered < 0.86
    back = loads_model(dumps_model(twin))
    np.testing.assert_array_equal(back.predict_proba(X), twin.predict_proba(X))
    assert tree.tree_.held_out is None  # a copy


def test_hostile_rows_to_calibrate_get_one_sentence(table: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = table
    tree = SoftTreeClassifier(depth=1, random_state=0).fit(X[:200], y[:200])
    with pytest.raises(ValueError, match="y holds 7, which is not a class of the tree"):
        tree.calibrate(X[:3], [0, 1, 7])
    with pytest.raises(ValueError, match="one class for each of the 3 rows"):
        tree.calibrate(X[:3], [0, 1])
    with pytest.raises(ValueError, match="a number of at least 0 for each of the 3 rows"):
        tree.calibrate(X[:3], [0, 1, 1], sample_weight=[0, 0, 0])
    with pytest.raises(ValueError, match=r"no rows|0 sample"):
        tree.calibrate(X[:0], [])


def test_leaves_have_intervals(table: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = table
    tree = SoftTreeClassifier(depth=1, random_state=0).fit(X, y)
    leaves = tree.to_frame().dropna(subset="class")
    counts = tree.tree_.walk.counts  # type: ignore[union-attr]
    share = counts[1] / counts.sum(axis=0)
    assert np.all((leaves["low_1"] < share) & (share < leaves["high_1"]))
    np.testing.assert_allclose(leaves["low_0"], 1 - leaves["high_1"])
