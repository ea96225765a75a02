"""The strength path."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning

from softsplit import SoftTreeClassifier, strength_path
from softsplit.estimators.base import model_settings
from softsplit.estimators.training_rows import training_rows
from softsplit.formulations.base import COUNT_FRACTIONS, LOCAL_PART, SLOPE_FRACTIONS, fraction_grid
from softsplit.problem.penalties import PenaltyPair
from softsplit.problem.strength_bound import all_zero_tree
from softsplit.training import regularisation_path as walking
from softsplit.training.preparation import prepare


def quick(**parameters):
    return SoftTreeClassifier(**({"n_starts": 4, "random_state": 0} | parameters))


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True, as_frame=True)


@pytest.fixture(scope="module")
def path(wine):
    return strength_path(*wine, estimator=quick(), strengths=[0.01, 0.1, 1.0, 10.0])


def test_stronger_points_are_sparser_and_dearer(path):
    frame = path.to_frame()
    assert frame["global_strength"].tolist() == [0.01, 0.1, 1.0, 10.0]
    assert frame["n_features"].iloc[0] > frame["n_features"].iloc[-1]
    assert np.all(np.diff(frame["objective"]) > 0)
    assert np.all(frame["status"] != "INFEASIBLE")


def test_points_are_fitted_classifiers(path, wine):
    X, y = wine
    for point in path.points:
        tree = point.classifier
        assert tree.get_params()["global_strength"] == point.global_strength
        assert tree.objective_ == point.solution.objective
        assert list(tree.feature_names_in_) == list(X.columns)
        np.testing.assert_array_equal(point.selected_features, tree.selected_features_)
        assert tree.predict(X).shape == y.shape
    assert path[1].classifier.score(X, y) > 0.95


@pytest.mark.parametrize("loss", ["log", "cost"])
@pytest.mark.parametrize("scope", ["local", "global"])
def test_no_point_is_worse_than_a_neighbours_tree_or_no_tree_at_all(scope, loss):
    """A tree found at one strength is feasible at all others; so is the tree without features."""
    X, y = load_iris(return_X_y=True)
    base = quick(loss=loss, n_starts=2, curves=False)
    path = strength_path(X, y, estimator=base, strengths="paper", scope=scope)
    model = path[0].classifier
    problem = prepare(model_settings(model), training_rows(model, X, y, None)).problem
    zero = all_zero_tree(problem)
    for at, point in enumerate(path.points):
        surrogate = problem.penalties.local.surrogate
        pair = PenaltyPair.of(surrogate, point.local_strength, point.global_strength)
        here = problem.with_penalties(pair)
        assert here.objective(point.solution.parameters) == pytest.approx(point.solution.objective)
        candidates = [p.solution.parameters for p in path.points[max(at - 1, 0) : at + 2]]
        lowest = min(here.objective(tree) for tree in [zero, *candidates])
        assert point.solution.objective <= lowest * (1 + 1e-6)


def test_default_grid_ends_at_the_bound_of_proposition_1():
    X, y = load_iris(return_X_y=True)
    path = strength_path(X, y, estimator=quick(loss="cost"), n_points=5)
    strengths = path.to_frame()["global_strength"].to_numpy()
    assert len(path) == 5
    assert strengths[0] == pytest.approx(1e-3 * strengths[-1])


@pytest.mark.parametrize("penalty", ["count", "l0"])
def test_default_grid_by_likelihood_is_of_parts_of_the_loss_without_features(penalty):
    X, y = load_iris(return_X_y=True)
    frame = strength_path(X, y, estimator=quick(penalty=penalty), n_points=3).to_frame()
    counted = penalty == "count"
    parts = np.array(fraction_grid(3, COUNT_FRACTIONS if counted else SLOPE_FRACTIONS))
    np.testing.assert_allclose(frame["global_strength"], parts * 150 * np.log(3))
    local = LOCAL_PART * counted * frame["global_strength"]
    np.testing.assert_allclose(frame["local_strength"], local)
    assert frame["n_features"].iloc[0] > frame["n_features"].iloc[-1] > 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"scope": "all"}, "scope must be"),
        ({"strengths": "thesis"}, "strengths must be numbers or 'paper'"),
        ({"strengths": []}, "strengths is empty"),
        ({"strengths": [-1.0]}, "strengths must be a finite number >= 0"),
        ({"n_points": 0}, "n_points must be a positive integer"),
        ({"strengths": 3.0}, "strengths must be a sequence"),
        ({"estimator": "x"}, "estimator must be a SoftTreeClassifier"),
        ({"estimator": quick(n_starts=0)}, "n_starts must be a positive integer"),
        ({"estimator": quick(scale="x")}, "scale must be 'auto', one of"),
        ({"estimator": quick(penalty=None)}, "penalty=None has no strength"),
    ],
)
def test_bad_arguments(arguments, sentence):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=sentence):
        strength_path(X, y, **arguments)


def test_a_time_limit_covers_the_whole_path(clock, monkeypatch):
    X, y = load_wine(return_X_y=True)
    monkeypatch.setattr(walking, "numbered_start", clock.after(3, walking.numbered_start))
    with pytest.warns(ConvergenceWarning, match=r"the time limit was reached; \d+ of 196 points"):
        path = strength_path(X, y, estimator=quick(time_limit=0.3), strengths="paper", scope="both")
    assert 1 <= len(path) < 196
