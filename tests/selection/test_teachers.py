"""Class probabilities as targets, and teachers whose probabilities are mixed with the labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ShuffleSplit

from slow_cases import slow
from softsplit import SoftTreeClassifier, SoftTreeClassifierCV
from softsplit.engines.compiled import CompiledRows, PassOptions
from softsplit.engines.outer import OUTERS
from softsplit.engines.samples import Samples
from softsplit.report.choice_text import describe_choice
from softsplit.selection.folds import make_splits
from softsplit.selection.teachers import soft_targets_of
from softsplit.training.rows import Rows
from softsplit.training.run import Run

FAST = {"ridges": [1.0], "scales": ["standard"], "n_strengths": 5, "random_state": 0}


def _rows(n: int = 120, n_classes: int = 3, seed: int = 0) -> Rows:
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % n_classes
    X = rng.normal(size=(n, 4)) + labels[:, None]
    return Rows(X, labels, rng.uniform(0.5, 2.0, n), np.arange(n_classes))


def _targets(rows: Rows, seed: int = 0) -> np.ndarray:
    drawn = np.random.default_rng(seed).dirichlet(np.ones(len(rows.classes)), len(rows.labels))
    drawn[::3] = np.eye(len(rows.classes))[rows.labels[::3]]
    return drawn


def _pairs(rows: Rows, targets: np.ndarray) -> Samples:
    """The same rows as weighted pairs of row and class, which have no row twice in a class."""
    made = rows.taught(targets).paired()
    return Samples.from_arrays(made.X, made.labels, len(rows.classes), made.weight)


@pytest.mark.parametrize("outer", OUTERS)
@pytest.mark.parametrize("n_classes", [2, 5])
def test_a_pass_over_rows_with_targets_gives_the_sums_of_pairs(outer, n_classes):
    """Rows that occur twice, rows of one class, and classes that a tile does not have."""
    rows = _rows(400, n_classes)
    rows.X[50:100] = rows.X[:50]
    targets = _targets(rows)
    targets[200:] = np.eye(n_classes)[rows.labels[200:]]
    pairs = _pairs(rows, targets)
    taught = replace(pairs, per_row=pairs.n_rows / 400)
    once = taught.distinct
    assert pairs.distinct is None and once is not None and once.features.shape[1] == 350
    assert_allclose(once.targets.sum(axis=1), pairs.group_totals, rtol=1e-12)
    rng = np.random.default_rng(1)
    for n_branches in (1, 3, 7):
        splits = rng.normal(size=(n_branches, 5))
        table = rng.dirichlet(np.ones(n_classes), n_branches + 1).T
        expected = CompiledRows(pairs).evaluate(splits, table, outer, 4.0)
        found = CompiledRows(taught, PassOptions(chunk_rows=96)).evaluate(splits, table, outer, 4.0)
        assert found.value == pytest.approx(expected.value, rel=1e-12)
        for part in ("splits", "mass", "table"):
            theirs = getattr(expected, part)
            atol = 1e-12 * np.max(np.abs(theirs))
            assert_allclose(getattr(found, part), theirs, rtol=1e-12, atol=atol)


def test_one_hot_targets_are_the_labels_to_the_bit():
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[y]
    plain = SoftTreeClassifier(random_state=0, n_starts=2).fit(X, names)
    soft = SoftTreeClassifier(random_state=0, n_starts=2).fit(X, names, targets=np.eye(3)[y])
    assert soft.objective_ == plain.objective_
    np.testing.assert_array_equal(soft.predict_proba(X), plain.predict_proba(X))
    np.testing.assert_array_equal(soft.predict(X), plain.predict(X))


def test_a_tree_learns_probabilities_that_labels_do_not_show():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    truth = 1 / (1 + np.exp(-2 * X[:, 0]))
    y = (rng.uniform(size=150) < truth).astype(int)
    given = np.column_stack([1 - truth, truth])
    made = {"random_state": 0, "ridge": 0.01, "points": False}
    off = [
        np.abs(tree.predict_proba(X)[:, 1] - truth).mean()
        for tree in (
            SoftTreeClassifier(**made).fit(X, y),
            SoftTreeClassifier(**made).fit(X, y, targets=given),
        )
    ]
    assert off[1] < 0.5 * off[0]
    chosen = SoftTreeClassifierCV(teacher=given, **FAST).fit(X, y)
    assert chosen.cv_results_["param_teacher"][chosen.best_index_] > 0
    told = describe_choice(chosen)
    assert "are probabilities of a teacher, log-loss 0." in told and "; without it log-loss" in told
    again = SoftTreeClassifier(**chosen.best_params_, random_state=0)
    again.fit(X, y, targets=chosen.targets_)
    assert again.objective_ == pytest.approx(chosen.best_estimator_.objective_, rel=1e-3)


class Witness(ClassifierMixin, BaseEstimator):
    """Says class 1 if it was trained on one of the rows ``asked``; columns are numbers of rows."""

    def __init__(self, asked=()):
        self.asked = asked

    def fit(self, X, y):
        self.classes_, self.seen_ = np.unique(y), set(X[:, 0].astype(int))
        return self

    def predict_proba(self, X):
        assert not self.seen_ & set(X[:, 0].astype(int))  # no row that it was trained on
        said = float(bool(self.seen_ & set(self.asked)))
        return np.tile([1 - said, said], (len(X), 1))


@pytest.mark.parametrize("n_folds", [3, 5, 8])
def test_no_row_is_taught_by_a_model_that_saw_it_or_the_held_out_rows(n_folds):
    n = 80
    rows = Rows(np.arange(n)[:, None] * 1.0, np.arange(n) % 2, np.ones(n), np.arange(2))
    splits = make_splits(n_folds, rows.X, rows.labels, 0)
    run = Run.of(SoftTreeClassifierCV(random_state=0).get_params(deep=False))
    for fold, (train, test) in enumerate(splits):
        soft = soft_targets_of(Witness(tuple(test)), rows, splits, run, np.arange(1))
        assert soft.folds is not None and len(soft.folds[fold]) == len(train)
        assert not np.any(soft.folds[fold][:, 1])
        others = [found[:, 1].max() for f, found in enumerate(soft.folds) if f != fold]
        assert max(others) == 1.0  # elsewhere these rows may teach
        np.testing.assert_allclose(soft.whole.sum(axis=1), 1.0)


@pytest.mark.parametrize("teacher", ["auto", *slow("boosting", LogisticRegression())])
def test_a_teacher_is_one_of_the_settings_that_are_compared(teacher):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 4))
    y = np.array(["no", "yes"])[(X[:, 0] + rng.normal(size=120) > 0).astype(int)]
    weight = np.where(np.arange(120) % 10 == 0, 0.0, 1.0)
    made = SoftTreeClassifierCV(teacher=teacher, **FAST)
    one, two = (clone(made).set_params(n_jobs=n).fit(X, y, weight) for n in (1, 2))
    compared = one.cv_results_["param_teacher"]
    assert 0.0 in compared and 0.5 in compared
    assert (one.n_splits_, one.n_repeats_) == (10, 2)  # few rows: folds are made twice
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    np.testing.assert_array_equal(compared, two.cv_results_["param_teacher"])
    used = compared[one.best_index_] > 0
    assert (one.targets_ is not None) == used
    assert type(clone(made).teacher) is type(teacher)


HALF = np.full((150, 3), 1 / 3)


@pytest.mark.parametrize(
    ("targets", "sentence"),
    [
        (HALF[:, :2], r"has shape \(150, 2\); it needs a row for each sample and a column"),
        (HALF[:100], r"has shape \(100, 3\); it needs a row for each sample"),
        (np.where(np.arange(150)[:, None] == 7, np.nan, HALF), "in row 7; probabilities are"),
        (np.where(np.arange(150)[:, None] == 7, 0.5, HALF), "row 7 of .* sums to 1.5"),
        (np.tile([0.5, 0.5, 0.0], (150, 1)), "gives class 2 no probability in any row"),
        (np.tile([1.5, -0.5, 0.0], (150, 1)), "in row 0; probabilities are numbers between 0"),
    ],
)
def test_wrong_probabilities_get_one_sentence(targets, sentence):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=sentence):
        SoftTreeClassifier().fit(X, y, targets=targets)
    with pytest.raises(ValueError, match=sentence):
        SoftTreeClassifierCV(teacher=targets).fit(X, y)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"teacher": "jungle"}, "teacher must be None, 'auto', 'forest', 'boosting', a classifier"),
        ({"teacher": "forest", "cv": ShuffleSplit(3)}, "each row is tested once"),
        ({"teacher": "forest", "cv": 2}, "a teacher needs at least three folds"),
        ({"teacher": "forest", "cv": ShuffleSplit(10, test_size=0.2)}, "each row is tested once"),
    ],
)
def test_wrong_teachers_get_one_sentence(given, sentence):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=sentence):
        SoftTreeClassifierCV(**given).fit(X, y)
