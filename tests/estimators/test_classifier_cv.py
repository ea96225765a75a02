"""SoftTreeClassifierCV: what it chooses, how, and what it passes on."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from softsplit import SoftTreeClassifier, SoftTreeClassifierCV, export_text
from softsplit.selection.cross_validation import FoldTrainer

SMALL = {"n_strengths": 3, "cv": 3, "random_state": 0}
PAPER = SMALL | {"loss": "cost", "steepnesses": (512.0,)}
both_losses = pytest.mark.parametrize("small", [SMALL, PAPER], ids=["log", "cost"])


ONE = {"depths": [1], "scales": ["standard"], "ridges": [1.0], "n_strengths": 1}


# Those of a tree by cost are in test_classifier.py.
@parametrize_with_checks([SoftTreeClassifierCV(n_strengths=2, cv=2, depths=[2], ridges=[1.0])])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True)


@pytest.fixture(scope="module", params=["log", "cost"])
def fitted(wine, request):
    return SoftTreeClassifierCV(loss=request.param, random_state=0).fit(*wine)


def test_the_choice_is_told(fitted, wine):
    frame = pd.DataFrame(fitted.cv_results_)
    row = frame.iloc[fitted.best_index_]
    assert fitted.best_score_ == row["mean_test_score"]
    assert row["mean_test_score"] == pytest.approx(
        np.mean([row[f"split{f}_test_score"] for f in range(fitted.n_splits_)])
    )
    assert row["params"] == {
        name.removeprefix("param_"): row[name] for name in frame if name.startswith("param_")
    }
    assert fitted.best_params_["scale"] == row["param_scale"]
    assert fitted.best_params_["depth"] == row["param_depth"]
    assert fitted.best_estimator_.get_params()["depth"] == row["param_depth"]
    assert len(fitted.selected_features_) < 13
    assert fitted.score(*wine) > 0.93
    assert "class" in export_text(fitted)


def test_the_kept_tree_is_what_the_settings_say(fitted, wine):
    X, y = wine
    tree = fitted.best_estimator_
    assert isinstance(tree, SoftTreeClassifier)
    assert_array_equal(fitted.predict_proba(X), tree.predict_proba(X))
    assert_array_equal(fitted.coef_, tree.coef_)
    assert {"global_strength", "local_strength", "scale", "penalty"} < set(fitted.best_params_)
    for name, value in fitted.best_params_.items():
        assert tree.get_params()[name] == value
    cold = SoftTreeClassifier(**fitted.best_params_, n_starts=10, random_state=0).fit(X, y)
    assert tree.objective_ <= 1.3 * cold.objective_


@pytest.mark.parametrize("loss", ["log", "cost"])
def test_fewer_features_than_the_best(wine, loss):
    chosen = SoftTreeClassifierCV(loss=loss, selection="one_se", random_state=0).fit(*wine)
    best = SoftTreeClassifierCV(loss=loss, selection="best", random_state=0).fit(*wine)
    frame = pd.DataFrame(chosen.cv_results_)
    others = pd.DataFrame(best.cv_results_)
    # Trees of short questions are compared as well, unless the best is asked for.
    apart = ["mean_fit_time", "rank_test_score"]
    apart += ["priced_log_loss"] if loss == "log" else []
    pd.testing.assert_frame_equal(
        frame[: len(others)].drop(columns=apart), others.drop(columns=apart)
    )
    features = frame["mean_n_features"]
    assert features[chosen.best_index_] <= features[best.best_index_]
    if loss == "cost":  # by likelihood trees are compared by log-loss as well
        assert best.best_score_ == frame["mean_test_score"].max()


def test_folds_of_the_callers_own(wine):
    X, y = wine
    splits = list(StratifiedKFold(4, shuffle=True, random_state=1).split(X, y))
    settings = SMALL | {"cv": splits}
    chosen = SoftTreeClassifierCV(**settings).fit(X, y)
    assert chosen.n_splits_ == 4
    settings = SMALL | {"cv": KFold(3, shuffle=True, random_state=0)}
    assert SoftTreeClassifierCV(**settings).fit(X, y).n_splits_ == 3


def test_a_class_that_a_fold_lacks(wine):
    """Costs, rates and weights are those of the classes that are there."""
    X, y = wine
    labels = np.array(["a", "b", "c", "rare"])[y]
    labels[:2] = "rare"
    costs = np.ones((4, 4)) - np.eye(4)
    chosen = SoftTreeClassifierCV(
        **SMALL
        | {"cv": [(np.arange(2, len(y)), np.arange(60)), (np.arange(len(y)), np.arange(50))]},
        cost_matrix=costs,
        class_weight={"rare": 2.0},
        min_class_rate={"rare": 0.2, "a": 0.1},
    ).fit(X, labels)
    assert set(chosen.classes_) == {"a", "b", "c", "rare"}
    assert chosen.cv_results_["split0_test_score"].max() < 1


@both_losses
def test_costs_and_rates_are_passed_on(small):
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[::3], y[::3]
    settings = small | {"depths": [1], "scales": ["quantile"], "n_strengths": 2, "cv": 2}
    strict = SoftTreeClassifierCV(**settings, min_class_rate=[0.97, 0.1]).fit(X, y)
    called = strict.leaf_proba(X) @ strict.leaf_classes_.T
    assert np.mean(called[y == 0, 0]) > 0.969
    lopsided = SoftTreeClassifierCV(**settings, cost_matrix=[[0, 50], [1, 0]]).fit(X, y)
    plain = SoftTreeClassifierCV(**settings).fit(X, y)
    assert np.mean(lopsided.predict(X) == 0) > np.mean(plain.predict(X) == 0)
    weighted = SoftTreeClassifierCV(**settings, class_weight={0: 50.0}).fit(X, y)
    assert np.mean(weighted.predict(X) == 0) > np.mean(plain.predict(X) == 0)


def test_a_time_limit_leaves_the_best_so_far(wine):
    said = "the time limit was reached; (the choice is among|nothing was compared)"
    with pytest.warns(ConvergenceWarning, match=said):
        chosen = SoftTreeClassifierCV(time_limit=0.2, random_state=0).fit(*wine)
    assert chosen.predict(wine[0]).shape == (178,)


def test_no_time_at_all_gives_the_first_candidate(wine):
    with pytest.warns(ConvergenceWarning, match="nothing was compared, and the first settings"):
        chosen = SoftTreeClassifierCV(time_limit=1e-9, random_state=0).fit(*wine)
    assert np.isnan(chosen.best_score_)
    assert chosen.best_params_["scale"] == "standard"


def test_an_interruption_keeps_what_is_done(wine, monkeypatch):
    real, calls = FoldTrainer.scores, []

    def interrupted(self, *task, **how):
        calls.append(task)
        if len(calls) == 12:
            raise KeyboardInterrupt
        return real(self, *task, **how)

    monkeypatch.setattr(FoldTrainer, "scores", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted; the choice is among"):
        chosen = SoftTreeClassifierCV(random_state=0).fit(*wine)
    assert len(calls) == 12
    assert chosen.score(*wine) > 0.8


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"selection": "worst"}, "selection must be 'default', 'sparse', 'one_se'"),
        ({"scales": "minmax"}, "scales must be a sequence"),
        ({"scales": []}, "scales is empty"),
        ({"scales": ["log"]}, "scale must be 'auto', one of"),
        ({"penalties": [None]}, "which has no strength to choose"),
        ({"scoring": "balanced"}, "got 'balanced'; did you mean 'balanced_accuracy'"),
        ({"scoring": 3}, "scoring must be None, a callable or the name of a scorer"),
        ({"depths": [[2]]}, r"depths must be a flat sequence, got \[\[2\]\]"),
        ({"scales": [["minmax"]]}, "scales must be a flat sequence"),
        ({"strengths": np.ones((2, 2))}, "strengths must be a flat sequence"),
        ({"cv": []}, "cv gives no folds"),
        ({"cv": [([0, 1], [500])]}, "cv gives row 500, but the rows are 0 to"),
        ({"cv": [([0, 1], [-1])]}, "cv gives row -1, but the rows are 0 to"),
        ({"cv": [([0.5], [1])]}, "cv must give integer positions of rows"),
        ({"cv": [([0, 1], [])]}, "cv must give integer positions of rows, some to train and to"),
        ({"cv": [3, 4]}, "cv must give pairs of positions to train and to test on, got 3"),
        ({"scoring": lambda *_: float("nan")}, "gave no number on any fold; choose another"),
        ({"scopes": ["all"]}, "scopes must be of 'global', 'local', 'both', 'size'"),
        (PAPER | {"steepnesses": [-1.0]}, "steepness must be a finite number > 0"),
        ({"steepnesses": [64.0]}, "steepnesses are part of loss='cost'"),
        ({"ridges": [-1.0]}, "ridges must be a finite number >= 0"),
        (PAPER | {"depths": [1]}, "3 classes need depth 2"),
        ({"depths": "deep"}, "depths must be 'auto' or a sequence of integers"),
        ({"strengths": [-1.0]}, "strengths must be a finite number >= 0"),
        ({"n_strengths": 0}, "n_strengths must be a positive integer"),
        ({"cv": 1}, "cv must be at least 2 folds"),
        ({"time_limit": -1}, "time_limit must be a finite number > 0"),
    ],
)
def test_wrong_settings_get_one_sentence(wrong, sentence):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=sentence):
        SoftTreeClassifierCV(**SMALL | wrong).fit(X, y)


@pytest.mark.slow
def test_rates_that_cannot_be_met():
    X, y = load_breast_cancer(return_X_y=True)
    with pytest.raises(ValueError, match="no candidate met min_class_rate on any fold"):
        SoftTreeClassifierCV(**SMALL | ONE, min_class_rate=1.0).fit(X[::20, :1], y[::20])
