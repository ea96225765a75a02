"""Survival trees: hazards are found, texts and files say what is predicted, odd targets refused."""

import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest

from printed_numbers import PrintedNumbers
from rate_tables import patients
from softsplit import (
    SoftTreeSurvival,
    SoftTreeSurvivalCV,
    dumps_model,
    export_python,
    export_text,
    loads_model,
)
from softsplit.estimators.survival import concordance
from softsplit.fitted.baseline import Baseline
from softsplit.persistence.files import loads_tree
from softsplit.plots import TreeDisplay
from softsplit.reading.leaf_boxes import leaf_curve


@cache
def survived() -> SoftTreeSurvival:
    X, y, _ = patients()
    return SoftTreeSurvival(random_state=0).fit(X, y)


def test_hazards_curves_and_concordance_are_those_of_the_simulation():
    X, y, hazard = patients(600, seed=1)
    tree = survived()
    assert np.corrcoef(np.log(tree.predict(X)), hazard)[0, 1] > 0.95
    assert np.polyfit(hazard, np.log(tree.predict(X)), 1)[0] == pytest.approx(1.0, abs=0.15)
    best = concordance(*y.to_numpy(float).T, np.exp(hazard), np.ones(len(X)))
    assert tree.score(X, y) > best - 0.01
    times = np.array([3.0, 12.0, 30.0])
    truth = np.exp(-np.multiply.outer(np.exp(hazard), times**1.5))
    curves = tree.predict_survival_function(X, times)
    assert np.mean(np.abs(curves - truth)) < 0.04
    medians = tree.predict_median_time(X)
    true_medians = (np.log(2) / np.exp(hazard)) ** (1 / 1.5)
    known = np.isfinite(medians) & (true_medians < 30)
    assert np.mean(np.abs(np.log(medians[known] / true_medians[known]))) < 0.25


def test_concordance_counts_pairs_as_by_hand():
    rng = np.random.default_rng(0)
    times, events = rng.integers(1, 9, 40).astype(float), rng.random(40) < 0.6
    risk, weight = rng.integers(0, 4, 40).astype(float), rng.integers(1, 3, 40).astype(float)
    pairs = agreed = 0.0
    for i in np.flatnonzero(events):
        for j in range(40):
            if times[j] > times[i] or (times[j] == times[i] and not events[j]):
                share = weight[i] * weight[j]
                pairs += share
                agreed += share * (0.5 if risk[i] == risk[j] else float(risk[i] > risk[j]))
    assert concordance(times, events.astype(float), risk, weight) == pytest.approx(agreed / pairs)


def test_the_baseline_is_that_of_nelson_and_aalen_where_all_hazards_are_one():
    times, events = np.array([1.0, 2.0, 2.0, 3.0, 0.0]), np.array([1.0, 1.0, 0.0, 1.0, 1.0])
    known = Baseline.of(times, events, np.ones(5), np.ones(5))
    np.testing.assert_allclose(known.times, [0, 1, 2, 3])
    np.testing.assert_allclose(known.hazards, np.cumsum([1 / 5, 1 / 4, 1 / 3, 1.0]))
    np.testing.assert_allclose(
        known.at(np.array([-1.0, 0.0, 2.5, 9.0])), [0, 0.2, 0.2 + 7 / 12, 107 / 60]
    )
    assert known.medians(np.array([1e-9, 1.0])).tolist() == [np.inf, 2.0]
    long = Baseline(np.arange(5000.0), np.linspace(0.001, 3, 5000)).short()
    assert len(long.times) <= 500 and long.hazards[[0, -1]] == pytest.approx([0.001, 3])


def test_the_text_walked_by_hand_files_and_programs_give_the_hazard():
    tree, X = survived(), patients(100, seed=2)[0]
    X.loc[3::20, "marker"] = np.nan
    text = export_text(tree)
    assert "hazard of died = " in text and " events, median " in text
    assert " % event-free at " in text and "months" in text
    printed = PrintedNumbers(text)
    program: dict = {}
    exec(export_python(tree), program)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predicted = tree.predict(X)
        for say in (printed.predicted, program["predict"]):
            by_hand = [say(row) for row in X.to_dict("records")]
            np.testing.assert_allclose(predicted, by_hand, rtol=1e-9)
        other = loads_model(dumps_model(tree))
        assert type(other) is SoftTreeSurvival and export_text(other) == text
        for method in ("predict", "predict_median_time", "predict_survival_function"):
            assert np.array_equal(getattr(other, method)(X), getattr(tree, method)(X))
        assert np.array_equal(loads_tree(dumps_model(tree)).predict(X), predicted)


def test_forms_of_the_target_are_the_same():
    X, y, _ = patients(200)
    structured = np.array(
        list(zip(y["died"], y["months"], strict=True)), dtype=[("died", bool), ("months", float)]
    )
    trees = [SoftTreeSurvival(random_state=0, depth=0).fit(X, form) for form in (y, structured)]
    assert export_text(trees[0]) == export_text(trees[1])
    plain = SoftTreeSurvival(random_state=0, depth=0).fit(X, y.to_numpy(float))
    assert np.array_equal(plain.predict(X), trees[0].predict(X))
    assert "hazard of event" in export_text(plain)


def test_a_choice_keeps_the_baseline_and_monotone_effects_are_proved():
    X, y, _ = patients(400)
    tree = SoftTreeSurvivalCV(cv=2, depth=1, monotone={"age": "+"}, random_state=0).fit(X, y)
    assert "died never falls when age rises (proved" in export_text(tree)
    assert tree.best_score_ > 0.1
    assert np.array_equal(tree.best_estimator_.predict_median_time(X), tree.predict_median_time(X))


def test_each_leaf_of_a_picture_has_its_curve():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    tree = survived()
    lines = [
        line for line in TreeDisplay.from_estimator(tree).ax_.lines if len(line.get_xdata()) > 2
    ]
    pyplot.close("all")
    leaves = np.flatnonzero(tree.tree_.walk.counts[0])
    assert len(lines) == len(leaves)
    numbers = tree.tree_.numbers
    ends = []
    for leaf in leaves:
        x, y = leaf_curve(tree.tree_, leaf)
        assert x[0] == 0.0 and x[-1] == 1.0 and y[0] == 1.0 and np.all(np.diff(y) <= 0)
        ends.append(y[-1])
        assert y[-1] == pytest.approx(np.exp(-numbers.means[leaf] * numbers.baseline.hazards[-1]))
    assert len(set(ends)) == len(leaves)


def test_ties_and_zero_times_give_an_answer():
    X, y, _ = patients(200)
    y["months"] = (y["months"] / 10).astype(int)
    assert (y["months"] == 0).any()
    tree = SoftTreeSurvival(random_state=0).fit(X, y)
    assert tree.score(X, y) > 0.65
    assert np.all(np.diff(tree.predict_survival_function(X), axis=1) <= 0)
    alike = SoftTreeSurvival(random_state=0, depth=0).fit(X, y.assign(months=0))
    assert np.all(np.isfinite(alike.predict(X))) and list(alike.baseline_times_) == [0.0]


@pytest.mark.parametrize(
    ("times", "events", "sentence"),
    [
        (np.arange(1.0, 41), np.zeros(40), "no row has an event; a survival tree needs two"),
        (np.arange(1.0, 41), np.eye(40)[3], "one row has an event; a survival tree needs two"),
        (np.r_[-1.0, np.arange(39.0)], np.ones(40), "the time of row 0 is -1; times must be"),
        (np.r_[np.inf, np.arange(39.0)], np.ones(40), "the time of row 0 is inf"),
        (np.r_[np.nan, np.arange(39.0)], np.ones(40), "the time of row 0 is nan"),
        (np.ones(40), np.arange(40.0), "events must be 0 or 1; give the time first"),
        (np.arange(1.0, 41), np.arange(40) % 3, "of competing risks one event: they are not"),
        (np.array(["a"] * 40), np.ones(40), "y holds text"),
        (np.arange(39.0), np.ones(39), "X has 40 rows and y has 39"),
    ],
)  # fmt: skip
def test_hostile_times_are_refused_in_one_sentence(times, events, sentence):
    X = np.random.default_rng(0).normal(size=(40, 2))
    tree = SoftTreeSurvival()
    with pytest.raises(ValueError, match=sentence) as caught:
        tree.fit(X, pd.DataFrame({"months": times, "died": events}))
    assert "\n" not in str(caught.value) and not hasattr(tree, "tree_")
    with pytest.raises(ValueError, match="y has 1 columns; give two"):
        tree.fit(X, np.ones(40))
    with pytest.raises(ValueError, match=r"y has 3 columns; .* entry times, .* are not modelled"):
        tree.fit(X, np.column_stack([np.zeros(40), np.arange(1.0, 41), np.ones(40)]))
