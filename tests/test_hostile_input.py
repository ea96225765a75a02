"""A few hundred hostile inputs: each gives sound trees or one sentence. Thousands more are run by

    python benchmarks/hostile_input.py run

Time limits are measured there; here no clock decides.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from hostile_cases import HostileCase, problems, tables
from hostile_check import is_one_sentence, outcome, table_outcome
from softsplit import SoftTreeClassifier, dumps_model, export_text, loads_model, strength_path


@given(case=problems())
@settings(max_examples=160)
def test_a_fit_gives_a_sound_tree_or_one_sentence(case):
    outcome(case)


@given(case=problems(calls=("path",)))
@settings(max_examples=30)
def test_a_path_gives_sound_trees_or_one_sentence(case):
    outcome(case)


@given(case=problems(calls=("choose",)))
@settings(max_examples=30)
def test_a_choice_gives_a_sound_tree_or_one_sentence(case):
    outcome(case)


@given(case=tables())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_command_gives_a_sound_tree_or_one_sentence(case, tmp_path):
    table_outcome(case, tmp_path)


@pytest.mark.parametrize(
    "text",
    ["two\nlines of text", "operands could not be broadcast together", "short", "x" * 500],
)
def test_what_is_no_sentence_is_seen(text):
    assert not is_one_sentence(text)


def test_a_broken_promise_is_seen(monkeypatch):
    rng = np.random.default_rng(0)
    case = HostileCase("fit", rng.normal(size=(20, 2)), rng.integers(0, 2, 20))
    assert outcome(case).trees == 1
    honest = SoftTreeClassifier._adopt

    def outside(self, parameters):
        honest(self, parameters)
        self.thresholds_ = self.thresholds_ + 3.0

    monkeypatch.setattr(SoftTreeClassifier, "_adopt", outside)
    with pytest.raises(AssertionError, match="outside the box"):
        outcome(case)


# What such cases have brought to light, one by one.


def quick(**parameters):
    return SoftTreeClassifier(**{"n_starts": 1, "random_state": 0, **parameters})


@pytest.mark.parametrize("scale", ["minmax", "standard", "quantile"])
def test_a_range_beyond_floats_is_refused_under_every_scaling(scale):
    X = np.array([[-1.7e308], [0.0], [1.7e308], [1.0]])
    with pytest.raises(ValueError, match="column 0 of X ranges from -"):
        quick(scale=scale).fit(X, [0, 1, 1, 0])


@pytest.mark.parametrize("scale", ["minmax", "standard", "quantile"])
def test_the_largest_range_gives_a_tree_that_can_be_saved_read_and_explained(scale):
    X = np.array([[-1e307, 0.0], [0.0, 1.0], [1e307, 2.0], [1.0, 3.0]])
    tree = quick(scale=scale).fit(X, [0, 1, 1, 0])
    assert np.all(np.isfinite(tree.coef_))
    again = loads_model(dumps_model(tree))
    np.testing.assert_array_equal(again.predict_proba(X), tree.predict_proba(X))
    assert str(again.explain(X[0]))


def test_a_threshold_beyond_floats_is_shown_as_the_largest_number():
    X = np.array([[0.0], [1.0], [1e300], [2.0]])
    tree = quick(depth=1).fit(X, [0, 0, 1, 1])
    tree.weights_ = np.array([[1e-9]])
    tree.thresholds_ = np.array([1.0])
    assert "inf" not in export_text(tree)


def test_terms_beyond_floats_are_explained_quietly():
    X = np.array([[0.0, 1e15], [1.0, 1e15 + 2], [1e300, 1e15 + 4], [2.0, 1e15]])
    tree = quick(depth=1).fit(X, [0, 0, 1, 1])
    tree.weights_ = np.array([[1.0], [0.5]])
    explained = tree.explain(X[2])
    assert all(np.isfinite(reading.total) for reading in explained.branches)
    assert "inf" not in str(explained)


def test_unscaled_features_and_more_leaves_than_classes_give_a_feasible_tree():
    """Splits without rows to separate were drawn with thresholds outside the box."""
    X = np.arange(40.0)[:, None]
    y = np.arange(40) % 7
    tree = quick(scale="none", depth=5, min_class_rate=0.0).fit(X, y)
    assert all(solution.status.usable for solution in tree.starts_)
    assert np.max(np.abs(tree.thresholds_)) <= 1


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"penalty": "log", "offset": 1e-300, "local_strength": 1e12}, "too steeply at zero"),
        ({"sharpness": 1e300, "local_strength": 1e-9}, "too steeply at zero"),
        ({"cost_matrix": [[0, 1e300], [1e300, 0]]}, "costs times weights go up to 2e.301"),
        ({"cost_matrix": [[0, 1e-300], [0, 0]]}, "which is too small to compute with"),
        ({"class_weight": {0: 1e300}, "cost_matrix": [[0, 1e300], [1, 0]]}, "go up to inf"),
        ({"time_limit": 10**400}, "time_limit must be a finite number > 0, got 1000"),
        ({"tol": 10**5000}, "tol must be a finite number > 0, got a very long integer"),
        ({"n_jobs": 10**400}, "n_jobs must be None or a nonzero integer"),
        ({"steepness": np.zeros((3, 3))}, r"got array\(\[\[0., 0., 0.\], \[0., 0., 0.\]"),
    ],
)
def test_extreme_parameters_get_one_sentence(parameters, sentence):
    X, y = np.arange(40.0)[:, None], np.arange(40) % 2
    with pytest.raises(ValueError, match=sentence) as refused:
        quick(**parameters).fit(X, y)
    assert is_one_sentence(str(refused.value))


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        ([[1.0, 2.0], [3.0]], "rows of different lengths"),
        ([1.0, 2.0], "Expected 2D array, got 1D array instead: Reshape your data"),
        (3.0, "Expected 2D array, got"),
        ([["a", 1.0], ["b", 2.0]], "column 0 of X holds text"),
        (np.ones((2, 200)) * 1j, "Complex data not supported: X must hold real numbers"),
    ],
    ids=["ragged", "one line", "a number", "text in lists", "complex"],
)
def test_rows_of_no_shape_get_one_sentence(X, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence) as refused:
        quick().fit(X, [0, 1])
    assert is_one_sentence(str(refused.value))


def test_weights_of_text_get_one_sentence():
    with pytest.raises(ValueError, match="sample_weight must hold numbers, one for each row"):
        quick().fit([[0.0], [1.0]], [0, 1], sample_weight=["a", "b"])


def test_a_path_whose_largest_strength_underflows_falls_back_on_the_papers():
    X = np.array([[0.0], [1e-160], [2e-160], [3e-160]])
    path = strength_path(X, [0, 0, 1, 1], estimator=quick(scale="none", tol=1e-12), n_points=2,
                         sample_weight=np.full(4, 1e-149))  # fmt: skip
    assert all(np.isfinite(point.solution.objective) for point in path.points)
