"""SoftTreeClassifierCV: what it chooses, how, and what it passes on."""

from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

from softsplit import SoftTreeClassifierCV


@parametrize_with_checks([SoftTreeClassifierCV()])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)
