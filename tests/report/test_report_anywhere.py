"""The report from Python: estimators, pipelines, files, notebooks."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import softsplit
from softsplit import SoftTreeClassifier, save_model, strength_path
from softsplit.report import comparison
from softsplit.report.comparison import ComparisonOptions
from tables import people


@pytest.fixture(scope="module")
def light():
    """Few trees and folds."""
    with pytest.MonkeyPatch.context() as patch:
        options = ComparisonOptions(points=2, folds=2)
        patch.setattr(comparison, "OPTIONS", options)
        yield


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True, as_frame=True)


@pytest.fixture(scope="module")
def tree(iris):
    return SoftTreeClassifier(n_starts=2, random_state=0).fit(*iris)


def test_a_tree_and_its_file_give_their_report(light, iris, tree, tmp_path):
    X, y = iris
    made = tree.report(X, y, tmp_path / "tree.html")
    assert (tmp_path / "tree.html").read_text(encoding="utf-8") == made.html
    assert made.data.tree.tree_ is tree.tree_ and "<h1>target: " in made.html
    save_model(tree, tmp_path / "tree.json")
    again = softsplit.report(str(tmp_path / "tree.json"), X, y)
    assert again.data.accuracy(again.data.chosen) == made.data.accuracy(made.data.chosen)


def test_a_pipeline_gives_its_report(light, iris):
    X, y = iris
    steps = make_pipeline(StandardScaler(), SoftTreeClassifier(n_starts=1, random_state=0))
    piped = softsplit.report(steps.fit(X, y), X, y, name="flowers")
    assert piped.data.tree.tree_.column_names == tuple(X.columns)
    assert "flowers, 150 rows" in piped.html


def test_rows_that_do_not_fit_the_model_are_refused(iris, tree):
    X, y = iris
    with pytest.raises(ValueError, match="y is missing: a report needs the classes"):
        softsplit.report(tree, X)
    with pytest.raises(ValueError, match="class 7 in y is not a class of the model"):
        tree.report(X, y.where(y > 0, 7))
    with pytest.raises(ValueError, match="no row is of class 2; the report needs rows"):
        tree.report(X[:100], y[:100])
    with pytest.raises(ValueError, match="one class for each of the 150 rows"):
        tree.report(X, y[:20])
    with pytest.raises(ValueError, match=r"X is not the table .* has 146 rows, 46 of class '2'"):
        tree.report(X[:146] + 0.013, y[:146])


def texts(html: str) -> str:
    """What a reader sees of a piece of HTML, which must be well formed."""
    seen, depth = [], []

    class Parser(HTMLParser):
        def handle_starttag(self, tag, attributes):
            depth.append(tag)
            assert tag not in ("script", "img", "link"), tag
            assert not any(name.startswith("on") or "://" in (v or "") for name, v in attributes)

        def handle_endtag(self, tag):
            assert depth.pop() == tag

        def handle_data(self, data):
            if "style" not in depth:
                seen.append(data)

    parser = Parser()
    parser.feed(html)
    parser.close()
    assert depth == []
    return "\n".join(seen)


def test_notebooks_show_trees_explanations_and_paths(iris, tree):
    X, y = iris
    shown = texts(tree._repr_html_())
    assert "question 1" in shown and "petal width (cm)" in shown
    assert tree._repr_mimebundle_()["text/html"] == tree._repr_html_()
    assert "SoftTreeClassifier" in texts_or_parameters(SoftTreeClassifier())
    shown = texts(tree.explain(X.iloc[[70]])._repr_html_())
    assert "Answer:" in shown and "What would change the answer" in shown
    path = strength_path(X, y, estimator=SoftTreeClassifier(n_starts=1, random_state=0), n_points=2)
    assert "2 trees, from a weak penalty" in texts(path._repr_html_())


def texts_or_parameters(estimator) -> str:
    """Of an estimator without a tree, what scikit-learn shows."""
    return estimator._repr_html_()


def test_names_stay_text_in_notebooks(iris):
    X, y = iris
    odd = ["<script>x</script>", "a&b", '"><img src=x>', "d"]
    X = pd.DataFrame(X.to_numpy(), columns=odd)
    tree = SoftTreeClassifier(n_starts=1, random_state=0).fit(X, [f"<b>{k}</b>" for k in y])
    assert "<b>0</b>" in texts(tree._repr_html_())
    texts(tree.explain(X.iloc[[3]])._repr_html_())
    assert "<script>x" not in tree._repr_html_()


def test_a_table_with_its_target_needs_no_y(light):
    from softsplit.data import Table, learn
    from softsplit.report import FitOptions, fit_tree

    table = people()
    tree = fit_tree(learn(Table("people", table.astype(str)), "risk"), FitOptions(1, 0.05)).tree
    with_target = softsplit.report(tree, table.astype(str))
    parted = softsplit.report(tree, table.drop(columns="risk").astype(str), table["risk"])
    assert with_target.html == parted.html
    assert re.search(r"data, 60 rows", parted.html)
