"""The tree as text."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.datasets import load_iris

from readings import random_classifier
from softsplit import SoftTreeClassifier, export_markdown, export_text
from softsplit.tree.scaling import KINDS


@pytest.fixture(scope="module")
def fitted():
    X, y = load_iris(return_X_y=True, as_frame=True)
    given = {"global_strength": 1.0, "curves": False, "n_starts": 2, "random_state": 0}
    return SoftTreeClassifier(**given, points=False).fit(X, y)


def test_split_equation_reproduces_the_routing(fitted):
    """Read the root's equation back from the text and route with it."""
    first = export_text(fitted, precision=12).splitlines()[0]
    body, sign, threshold = re.match(r"if (.*) ([<>]) (\S+)", first).groups()
    X, _ = load_iris(return_X_y=True, as_frame=True)
    total = np.zeros(len(X))
    for minus, size, name in re.findall(r"([+-]?)\s*([\d.e-]+ )?([a-z ]+\(cm\))", body):
        total += (-1 if minus == "-" else 1) * float(size or 1) * X[name.strip()].to_numpy()
    goes_left = fitted.branch_proba(X)[:, 0] > 0.5
    holds = total > float(threshold) if sign == ">" else total < float(threshold)
    np.testing.assert_array_equal(holds, goes_left)


def test_names_terms_and_errors(fitted):
    text = export_text(fitted, feature_names=list("abcd"), max_terms=1)
    assert "petal" not in text
    with pytest.raises(ValueError, match="2 names for 4 features"):
        export_text(fitted, feature_names=["a", "b"])


def test_a_tree_without_features_says_so():
    X, y = load_iris(return_X_y=True)
    strong = {"global_strength": 1e6, "n_starts": 1, "random_state": 0}
    tree = SoftTreeClassifier(loss="cost", **strong).fit(X, y)
    side, share = re.search(
        r"always: (left|right) with probability (\S+)", export_text(tree)
    ).groups()
    assert float(share) >= 0.5
    assert (tree.branch_proba(X)[0, 0] >= 0.5) == (side == "left")
    tree = SoftTreeClassifier(**strong).fit(X, y)
    assert export_text(tree) == "class 0   (150 rows: 0 33 %, 1 33 %, 2 33 %)"


def test_markdown_has_the_tree_and_a_table(fitted):
    text = export_markdown(fitted)
    names = [fitted.feature_names_in_[j] for j in fitted.selected_features_]
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert table[0].startswith("| feature | question 1 |") and table[0].endswith("| importance |")
    used = [fitted.tree_.feature_names[j] for j in fitted.tree_.selected_features]
    assert len(table) == len(used) + 3  # head, alignment, one per term, thresholds
    assert all(any(name in line for line in table) for name in names)
    shares = [float(line.split("|")[-2]) for line in table[2:-1]]
    assert shares == sorted(shares, reverse=True)
    assert all(f"class **{label}" in text for label in fitted.classes_)


@pytest.mark.parametrize("kind", KINDS)
def test_markdown_is_one_table_row_per_feature_under_every_scaling(kind):
    tree, _ = random_classifier(4, depth=3, n_classes=4, kind=kind)
    text = export_markdown(tree)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in rows if not line.startswith("| value")}) <= 2
    assert ("value at rank" in text) == (kind == "quantile")


def test_names_cannot_break_the_markdown(fitted):
    odd = ["a|b", "<script>", "*bold*", "$x_1$\nnew line"]
    text = export_markdown(fitted, feature_names=odd)
    table = [re.sub(r"\\.", "", line) for line in text.splitlines() if line.startswith("|")]
    assert len(table) > 2 and len({line.count("|") for line in table}) == 1
    bare = re.sub(r"\\.", "", text)
    assert "<script" not in bare and "*bold" not in bare and "$" not in bare


@pytest.mark.parametrize("setting", [{"max_terms": 0}, {"precision": 0}, {"precision": 40}])
def test_settings_of_the_report_are_checked(fitted, setting):
    with pytest.raises(ValueError, match=f"{next(iter(setting))} must be an integer"):
        export_text(fitted, **setting)
