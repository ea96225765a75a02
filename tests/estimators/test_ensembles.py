"""Trees inside scikit-learn's ensembles."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from softsplit import SoftTreeClassifier


def quick(**settings):
    return SoftTreeClassifier(**({"global_strength": 0.5, "n_starts": 1} | settings))


@pytest.mark.parametrize(("max_features", "scale"), [(1.0, "minmax"), (0.5, "quantile")])
def test_bagging_votes_with_probabilities(max_features, scale):
    X, y = load_wine(return_X_y=True)
    names = np.array(["barolo", "grignolino", "barbera"])[y]
    bag = BaggingClassifier(
        quick(scale=scale), n_estimators=8, max_features=max_features, oob_score=False,
        random_state=0,
    ).fit(X[::2], names[::2])  # fmt: skip
    assert bag.score(X[1::2], names[1::2]) > 0.85
    proba = bag.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    single = [
        tree.predict_proba(X[:, columns])
        for tree, columns in zip(bag.estimators_, bag.estimators_features_, strict=True)
    ]
    np.testing.assert_allclose(proba, np.mean(single, axis=0), atol=1e-12)
    assert len({tree.objective_ for tree in bag.estimators_}) == 8


def test_boosting_and_voting():
    X, y = load_iris(return_X_y=True)
    # Boosting hands over weights that add up to one, and strengths count in the same unit.
    weak = quick(depth=2, global_strength=0.5 / len(y))
    boosted = AdaBoostClassifier(weak, n_estimators=3, random_state=0).fit(X, y)
    assert boosted.score(X, y) > 0.9
    voters = [
        ("tree", quick(random_state=0)),
        ("line", make_pipeline(StandardScaler(), LogisticRegression())),
    ]
    assert VotingClassifier(voters, voting="soft").fit(X, y).score(X, y) > 0.9
