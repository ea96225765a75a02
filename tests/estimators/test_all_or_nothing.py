"""A fit that fails or is interrupted leaves the estimator as it was."""

from __future__ import annotations

import numpy as np
import pytest

import softsplit.estimators.chosen
import softsplit.training.run
from slow_cases import slow
from softsplit import SoftTreeClassifier, SoftTreeClassifierCV, export_text

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)
OTHER_X, OTHER_Y = -100 * RNG.normal(size=(20, 2)), RNG.permutation(["a", "b"] * 10)


def tree(**parameters):
    return SoftTreeClassifier(depth=1, n_starts=2, random_state=0, **parameters)


def search(**parameters):
    few = {"depths": [1], "scales": ["standard"], "ridges": [1.0], "n_strengths": 2, "cv": 2}
    return SoftTreeClassifierCV(**few, random_state=0, **parameters)


def interrupted(*_arguments, **_options):
    raise KeyboardInterrupt


FAILURES = {
    "rates out of reach": ({"min_class_rate": 1.0}, OTHER_X, OTHER_Y, ValueError),
    "one class": ({}, OTHER_X, ["a"] * 20, ValueError),
    "a wrong parameter": ({"solver": "none"}, OTHER_X, OTHER_Y, ValueError),
    "too few weights": ({"min_class_rate": [0.1]}, OTHER_X, OTHER_Y, ValueError),
    "not a number": ({}, np.full((20, 2), np.nan), OTHER_Y, ValueError),
}


@pytest.mark.parametrize("make", [tree, *slow(search)])
@pytest.mark.parametrize("failure", FAILURES)
def test_a_refit_that_fails_leaves_the_old_tree(failure, make):
    parameters, rows, labels, error = FAILURES[failure]
    model = make().fit(X, Y)
    before, text = model.predict_proba(X), export_text(model)
    names = set(vars(model))
    model.set_params(**parameters)
    with pytest.raises(error):
        model.fit(rows, labels)
    assert set(vars(model)) == names
    np.testing.assert_array_equal(model.predict_proba(X), before)
    assert model.classes_.tolist() == [0, 1] and export_text(model) == text


@pytest.mark.parametrize(
    ("make", "module", "part"),
    [
        (tree, softsplit.training.run, "multistart"),
        (tree, softsplit.training.run, "search_around"),
        (search, softsplit.estimators.chosen, "refit_from"),
    ],
)
def test_an_interruption_leaves_the_old_tree(make, module, part, monkeypatch):
    model = make().fit(X, Y)
    before = model.predict_proba(X)
    monkeypatch.setattr(module, part, interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(OTHER_X, OTHER_Y)
    np.testing.assert_array_equal(model.predict_proba(X), before)
    assert model.n_features_in_ == 3
