"""Trees in files of skops."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import skops.io
from hypothesis import given
from sklearn.datasets import load_wine

from readings import TREES, classifier_and_frame
from slow_cases import examples
from softsplit import SoftTreeClassifier
from softsplit.persistence import SKOPS_TYPES


@examples(15)
@given(**TREES)
def test_skops_keeps_the_tree(seed, depth, kind, labels):
    tree, X = classifier_and_frame(seed, depth, kind, labels)
    data = skops.io.dumps(tree)
    assert set(skops.io.get_untrusted_types(data=data)) <= set(SKOPS_TYPES)
    other = skops.io.loads(data, trusted=list(SKOPS_TYPES))
    np.testing.assert_array_equal(other.predict_proba(X), tree.predict_proba(X))
    assert str(other.explain(X.iloc[0])) == str(tree.explain(X.iloc[0]))


@pytest.mark.parametrize("settings", [{"scale": "minmax"}, {"scale": "quantile"}, {"points": True}])
def test_skops_keeps_what_is_known_of_the_training(settings):
    X, y = load_wine(return_X_y=True, as_frame=True)
    tree = SoftTreeClassifier(n_starts=2, random_state=0, **settings).fit(X, y)
    data = skops.io.dumps(tree)
    assert set(skops.io.get_untrusted_types(data=data)) <= set(SKOPS_TYPES)
    other = skops.io.loads(data, trusted=list(SKOPS_TYPES))
    assert other.solution_.status is tree.solution_.status
    assert other.solution_.kkt.residual == tree.solution_.kkt.residual
    assert [s.objective for s in other.starts_] == [s.objective for s in tree.starts_]
    assert other.get_params() == tree.get_params()


def test_the_trusted_types_exist():
    for name in SKOPS_TYPES:
        module, _, kind = name.rpartition(".")
        assert isinstance(getattr(importlib.import_module(module), kind), type)
