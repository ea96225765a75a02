"""The tree as text."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.datasets import load_iris

from softsplit import SoftTreeClassifier, export_text


@pytest.fixture(scope="module")
def fitted():
    X, y = load_iris(return_X_y=True, as_frame=True)
    return SoftTreeClassifier(global_strength=1.0, n_starts=2, random_state=0).fit(X, y)


def test_text_names_features_and_classes(fitted):
    text = export_text(fitted)
    used = [fitted.feature_names_in_[j] for j in fitted.selected_features_]
    assert all(name in text for name in used)
    assert all(f"class {label}" in text for label in fitted.classes_)
    splits = len(re.findall(r"\bif\b", text)) + text.count("always")
    assert text.count("class ") == splits + 1


def test_split_equation_reproduces_the_routing(fitted):
    """Read the root's equation back from the text and route with it."""
    first = export_text(fitted, precision=12).splitlines()[0]
    body, threshold = re.match(r"if (.*) > (\S+)", first).groups()
    X, _ = load_iris(return_X_y=True, as_frame=True)
    total = np.zeros(len(X))
    for sign, size, name in re.findall(r"([+-]?)\s*([\d.e-]+ )?([a-z ]+\(cm\))", body):
        total += (-1 if sign == "-" else 1) * float(size or 1) * X[name.strip()].to_numpy()
    goes_left = fitted.decision_path(X)[:, 0] > 0.5
    np.testing.assert_array_equal(total > float(threshold), goes_left)


def test_names_terms_and_errors(fitted):
    text = export_text(fitted, feature_names=list("abcd"), max_terms=1)
    assert "petal" not in text
    with pytest.raises(ValueError, match="2 names for 4 features"):
        export_text(fitted, feature_names=["a", "b"])


def test_a_tree_without_features_says_so():
    X, y = load_iris(return_X_y=True)
    tree = SoftTreeClassifier(global_strength=1e6, n_starts=1, random_state=0).fit(X, y)
    assert "always: left with probability" in export_text(tree)
