"""SoftTreeClassifierCV: what it chooses, how, and what it passes on."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss, make_scorer
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from slow_cases import slow
from softsplit import SoftTreeClassifier, SoftTreeClassifierCV, export_text
from softsplit.estimators import chosen as chosen_tree
from softsplit.selection.cross_validation import FoldTrainer
from softsplit.solvers import Status
from softsplit.training.progress import ConsoleProgress

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


def test_a_deeper_tree_is_chosen_where_one_split_is_not_enough():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 4))
    y = (np.abs(X[:, 1] - 0.5) < 0.25).astype(int)
    chosen = SoftTreeClassifierCV(random_state=0).fit(X, y)
    assert chosen.best_params_["depth"] >= 2
    assert_array_equal(chosen.selected_features_, [1])
    assert chosen.best_score_ > 0.95


def test_ranks_are_chosen_for_skewed_features():
    rng = np.random.default_rng(0)
    X = np.exp(6 * rng.normal(size=(400, 3)))
    y = (np.log(X[:, 0]) + np.log(X[:, 2]) > 0).astype(int)
    chosen = SoftTreeClassifierCV(**SMALL, depths=[1], curves=False, points=False).fit(X, y)
    assert chosen.best_params_["scale"] == "quantile"
    assert chosen.best_score_ > 0.95


@pytest.mark.parametrize("scoring", ["balanced_accuracy", "own", *slow("neg_log_loss", "accuracy")])
def test_any_scorer_decides(wine, scoring):
    made = make_scorer(log_loss, greater_is_better=False, response_method="predict_proba")
    chosen = SoftTreeClassifierCV(**SMALL, scoring=made if scoring == "own" else scoring).fit(*wine)
    assert np.isfinite(chosen.best_score_)


def test_a_scorer_without_weights_may_meet_weights(wine):
    X, y = wine

    def plain(estimator, X, y):
        return estimator.score(X, y)

    weight = np.linspace(0.5, 2.0, len(y))
    chosen = SoftTreeClassifierCV(**SMALL, scoring=plain).fit(X, y, weight)
    assert 0 <= chosen.best_score_ <= 1


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


@pytest.mark.parametrize("settings", [{}, {"loss": "cost", "steepnesses": [64.0]}], ids=str)
def test_strengths_depths_and_scopes_of_the_callers_own(wine, settings):
    chosen = SoftTreeClassifierCV(
        depths=[3, 2],
        scales=["standard"],
        scopes=["local", "both"],
        penalties=["l1"],
        strengths=[4.0, 1.0],
        cv=3,
        random_state=0,
        **settings,
    ).fit(*wine)
    frame = pd.DataFrame(chosen.cv_results_)
    assert set(frame["param_scope"]) == {"local", "both"}
    assert set(frame["param_scale"]) == {"standard"}
    assert chosen.best_params_["penalty"] == "l1"
    total = chosen.best_params_["local_strength"] + chosen.best_params_["global_strength"]
    assert total == pytest.approx(4.0) or total == pytest.approx(1.0)


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
    ("second", "told"),
    [
        ({"depths": [1, 2]}, "depth 2.* on 2 of 5 folds, not finished$"),  # it was leading
        ({"depths": [2], "ridges": [1.0, 1e6]}, "ridge 1e[+]06.* on 2 of 5 folds, dropped$"),
    ],
)
def test_only_what_was_behind_is_told_as_dropped(monkeypatch, second, told):
    real, lines = FoldTrainer.evaluate, []

    def interrupted(self, some, fractions, board, folds=None):
        real(self, some, fractions, board, folds)
        if folds == range(2):  # the second candidate, on its first folds
            self.run.budget.stop()

    monkeypatch.setattr("softsplit.training.progress.finish_line", lines.append)
    monkeypatch.setattr(FoldTrainer, "evaluate", interrupted)
    X = np.random.default_rng(0).normal(size=(300, 2))
    given = {"ridges": [1.0], "scales": ["standard"], "cv": 5} | second
    with pytest.warns(ConvergenceWarning, match="interrupted; the choice is among"):
        SoftTreeClassifierCV(**given, curves=False, random_state=0, verbose=1).fit(
            X, X[:, 0] * X[:, 1] > 0
        )
    ended = [line for line in lines if line.endswith(("not finished", "dropped"))]
    assert len(ended) == 1 and re.search(told, ended[0])


@both_losses
@pytest.mark.parametrize("place", ["configured", "refit_from"])
def test_an_interruption_of_the_last_training_keeps_the_choice(wine, monkeypatch, place, small):
    real, calls = getattr(chosen_tree, place), []

    def interrupted(*arguments, **options):
        calls.append(arguments)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr(chosen_tree, place, interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted while the chosen tree was trained"):
        chosen = SoftTreeClassifierCV(**small).fit(*wine)
    assert len(calls) == 2
    assert chosen.best_estimator_.solution_.status is Status.INTERRUPTED
    assert chosen.score(*wine) > 0.8


def test_a_second_interruption_ends_the_fit(wine, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(chosen_tree, "configured", interrupted)
    with pytest.raises(KeyboardInterrupt):
        SoftTreeClassifierCV(**SMALL).fit(*wine)


PROGRESS = {
    "log": r"depth 2, standard scaling, ridge 1: accuracy \d+.\d %, log-loss 0\.\d{4} \(0\.\d{4}",
    "cost": r"depth 2, minmax scaling, steepness 512: accuracy \d+.\d %, [\d.]+ features",
}


@both_losses
def test_progress_shows_each_candidate(wine, monkeypatch, small):
    lines, told = [], []
    monkeypatch.setattr("softsplit.training.progress.finish_line", lines.append)
    monkeypatch.setattr(ConsoleProgress, "part_ended", lambda self: told.append(self.status()))
    found = SoftTreeClassifierCV(**small, verbose=1).fit(*wine)
    text = "\n".join(lines)
    assert re.search(PROGRESS[small.get("loss", "log")], text)
    assert ("quantile scaling" in text) == ("loss" in small)
    assert lines[-1].startswith("chosen: depth ")
    assert len(told) >= found.n_splits_ and told[0].text.startswith("softsplit: comparing depth ")


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


def test_two_valued_columns_need_one_scaling_only():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(60, 4)).astype(float)
    y = X[:, 0].astype(int)
    y[:3] = 1 - y[:3]
    chosen = SoftTreeClassifierCV(**SMALL | {"depths": [1]}).fit(X, y)
    assert set(chosen.cv_results_["param_scale"]) == {"standard"}
    assert_array_equal(chosen.selected_features_, [0])


def test_fold_without_weight_or_classes_is_refused():
    X, y = load_iris(return_X_y=True)
    weight = np.ones(len(y))
    weight[:20] = 0
    splits = [(np.arange(20, 150), np.arange(20))] * 2
    with pytest.raises(ValueError, match="no sample of positive weight"):
        SoftTreeClassifierCV(**SMALL | {"cv": splits}).fit(X, y, weight)
    splits = [(np.arange(50), np.arange(50, 150))] * 2
    with pytest.raises(ValueError, match="fewer than two classes"):
        SoftTreeClassifierCV(**SMALL | {"cv": splits}).fit(X, y)


@both_losses
def test_rows_of_weight_zero_change_no_choice(wine, small):
    X, y = wine
    rng = np.random.default_rng(0)
    rows, labels = np.vstack([X, rng.normal(size=(50, 13))]), np.append(y, rng.integers(0, 3, 50))
    order = rng.permutation(len(rows))
    weight = np.append(np.ones(len(X)), np.zeros(50))[order]
    kept = order[weight > 0]
    few = small | {"depths": [2], "scales": ["minmax"]}
    alone = SoftTreeClassifierCV(**few).fit(X[kept], y[kept])
    beside = SoftTreeClassifierCV(**few).fit(rows[order], labels[order], weight)
    assert_array_equal(alone.cv_results_["mean_test_score"], beside.cv_results_["mean_test_score"])
    assert_array_equal(alone.predict_proba(X), beside.predict_proba(X))


def test_a_score_that_some_folds_do_not_have_decides_by_the_others(wine):
    calls = []

    def sometimes(tree, X, y):
        calls.append(len(y))
        return float("nan") if len(calls) % 4 == 0 else tree.score(X, y)

    chosen = SoftTreeClassifierCV(**SMALL, n_jobs=1, scoring=sometimes).fit(*wine)
    assert 0.8 < chosen.best_score_ <= 1


@pytest.mark.parametrize(("loss", "n_classes", "n_columns"), [("log", 14, 4), ("cost", 12, 5)])
def test_a_candidate_that_meets_no_rates_on_a_fold_does_not_end_the_choice(
    loss, n_classes, n_columns
):
    """More classes than a tenth of the rows each can be told apart by a few yes or no columns."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, n_classes, 600)
    usual = rng.integers(0, 2, (n_classes, n_columns))
    X = np.where(rng.random((600, n_columns)) < 0.85, usual[y], 1 - usual[y]).astype(float)
    chosen = SoftTreeClassifierCV(loss=loss, random_state=0, n_strengths=4, cv=3).fit(X, y)
    assert chosen.score(X, y) > 2 * np.bincount(y).max() / len(y)


PEAK = """
import warnings
from pathlib import Path
import numpy as np
from sklearn.datasets import make_classification
from softsplit import SoftTreeClassifierCV

warnings.simplefilter("ignore")


def resident(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name))


SoftTreeClassifierCV(random_state=0).fit(*make_classification(300, 20, random_state=0))
rng = np.random.default_rng(0)
X = rng.standard_normal((500, 4000))
y = X[:, 0] + X[:, 1] + rng.standard_normal(len(X)) > 0
Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
before = resident("VmRSS")
SoftTreeClassifierCV(random_state=0, n_jobs=1).fit(X, y)
print((resident("VmHWM") - before) / X.nbytes)
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="no peaks are known")
def test_a_choice_on_a_wide_table_takes_at_most_four_copies():
    run = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True)
    assert float(run.stdout) < 4
