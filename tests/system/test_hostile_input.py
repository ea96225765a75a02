"""A few hundred hostile inputs: each gives sound trees or one sentence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from hostile_cases import WRONG, WRONG_CHOICES, HostileCase, is_one_sentence, outcome, problems
from slow_cases import examples
from softsplit import SoftTreeClassifier, SoftTreeClassifierCV, dumps_model, loads_model
from softsplit.estimators import base
from softsplit.estimators.base import model_settings
from softsplit.estimators.training_rows import training_rows
from softsplit.problem.optimality import kkt
from softsplit.training.preparation import prepare
from softsplit.tree.parameters import TreeParameters


def quick(**parameters):
    return SoftTreeClassifier(**{"n_starts": 1, "random_state": 0, **parameters})


@given(case=problems(calls=("fit", "fit", "refit", "path", "choose")))
@examples(100)
def test_a_call_gives_sound_trees_or_one_sentence(case):
    outcome(case)


@pytest.mark.parametrize(
    ("make", "wrong"), [(SoftTreeClassifier, WRONG), (SoftTreeClassifierCV, WRONG_CHOICES)]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_argument_of_every_wrong_kind(make, wrong):
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    refused = 0
    for name, value in wrong:
        try:
            make(**{"time_limit": 0.05, "random_state": 0} | {name: value}).fit(X, y)
        except (ValueError, TypeError) as error:
            refused += 1
            assert is_one_sentence(str(error)), (name, value)
    assert refused > 0.7 * len(wrong)


def test_a_broken_promise_is_seen(monkeypatch):
    for text in ("two\nlines of text", "operands could not be broadcast", "short", "x" * 500):
        assert not is_one_sentence(text)
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20, 2)), rng.integers(0, 2, 20)
    case = HostileCase("fit", *rows, parameters={"loss": "cost"})
    assert outcome(case) == 1
    honest = base.fitted_tree

    def outside(*arguments, **options):
        tree = honest(*arguments, **options)
        far = replace(tree.parameters, thresholds=tree.parameters.thresholds + 3.0)
        return replace(tree, parameters=far)

    monkeypatch.setattr(base, "fitted_tree", outside)
    with pytest.raises(AssertionError, match="outside the box"):
        outcome(case)


@pytest.mark.parametrize("scale", ["minmax", "standard", "quantile"])
def test_the_largest_range_gives_a_tree_that_can_be_saved_read_and_explained(scale):
    X = np.array([[-1e307, 0.0], [0.0, 1.0], [1e307, 2.0], [1.0, 3.0]])
    tree = quick(scale=scale).fit(X, [0, 1, 1, 0])
    assert np.all(np.isfinite(tree.coef_))
    again = loads_model(dumps_model(tree))
    np.testing.assert_array_equal(again.predict_proba(X), tree.predict_proba(X))
    assert str(again.explain(X[0]))
    with pytest.raises(ValueError, match="column 0 of X ranges from -"):
        quick(scale=scale).fit(np.array([[-1.7e308], [0.0], [1.7e308], [1.0]]), [0, 1, 1, 0])


def test_a_rate_that_no_variable_moves_gets_no_multiplier():
    """Its slopes are about 1e-292 where all gates are shut, and a quotient of slopes overflowed."""
    X, y = np.linspace(0, 1, 12)[:, None], np.arange(12) % 2
    model = quick(
        loss="cost", penalty="log", local_strength=1e12, steepness=1e12, depth=1,
        min_class_rate=1.0,
    )  # fmt: skip
    problem = prepare(model_settings(model), training_rows(model, X, y, None)).problem
    shut = TreeParameters(np.array([[0.5]]), np.array([-0.5]), np.eye(2))
    residuals = kkt(problem, shut)
    np.testing.assert_array_equal(residuals.multipliers, 0.0)
    assert np.isfinite(residuals.residual)
