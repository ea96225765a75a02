"""Figures on held-out rows: against scikit-learn, and their intervals against simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from slow_cases import examples
from softsplit import SoftTreeClassifier
from softsplit.data import Table, learn
from softsplit.report import comparison, render_report, walk_path
from softsplit.report.comparison import ComparisonOptions
from softsplit.report.measures import class_sentence, threshold_values
from softsplit.report.metrics import balanced_share, log_loss, precision_recall_area, roc_area
from tables import rare_table


@examples(60)
@given(st.integers(0, 10**6), st.integers(2, 5), st.booleans())
def test_figures_agree_with_scikit_learn(seed, n_classes, ties):
    rng = np.random.default_rng(seed)
    labels = np.append(np.arange(n_classes), rng.integers(0, n_classes, 60))
    proba = rng.dirichlet(np.ones(n_classes), len(labels))
    if ties:
        proba = np.round(proba, 1)
        proba /= proba.sum(axis=1, keepdims=True)
    calls = proba.argmax(axis=1)
    scores = proba[:, 1] if n_classes == 2 else proba
    expected = metrics.roc_auc_score(labels, scores, multi_class="ovr")
    found = roc_area(proba, labels)
    assert found.value == pytest.approx(expected) and found.low <= found.value <= found.high
    assert log_loss(proba, labels).value == pytest.approx(
        -np.mean(np.log(np.maximum(proba[np.arange(len(labels)), labels], 1e-15)))
    )
    balanced = balanced_share(calls == labels, labels)
    assert balanced.value == pytest.approx(metrics.balanced_accuracy_score(labels, calls))
    area = precision_recall_area(proba, labels)
    assert 0 <= area.low <= area.value <= area.high <= 1


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    rng = np.random.default_rng(0)

    def draw(n):
        labels = (rng.random(n) < 0.2).astype(int)
        score = rng.normal(size=n) + 1.2 * labels
        p = 1 / (1 + np.exp(-score))
        return np.column_stack([1 - p, p]), labels

    many, truth = draw(400_000)
    true = [roc_area(many, truth), balanced_share((many[:, 1] > 0.5) == truth, truth)]
    true += [log_loss(many, truth), precision_recall_area(many, truth, 1)]
    inside = np.zeros(4)
    for _ in range(300):
        proba, labels = draw(300)
        hits = (proba[:, 1] > 0.5) == labels
        found = [roc_area(proba, labels), balanced_share(hits, labels), log_loss(proba, labels)]
        found.append(precision_recall_area(proba, labels, 1))
        inside += [f.low <= t.value <= f.high for f, t in zip(found, true, strict=True)]
    assert np.all(inside / 300 > 0.9), inside / 300


@pytest.fixture(scope="module")
def rare():
    rows = learn(Table("rare", rare_table().astype(str)), "state")
    settings = {"depth": 1, "n_starts": 1, "random_state": 0, "global_strength": 0.5}
    tree = SoftTreeClassifier(**settings).fit(*rows.part())
    with pytest.MonkeyPatch.context() as patch:
        options = ComparisonOptions(points=2, folds=2)
        patch.setattr(comparison, "OPTIONS", options)
        yield walk_path(tree, rows, "rare")


def test_a_rare_class_leads_with_the_balanced_figure(rare):
    assert rare.classes[rare.rare] == "ill" and rare.measure == "balanced accuracy"
    page = render_report(rare)
    first = page.index("balanced accuracy on held-out rows")
    assert page.index("How good it is") < first < page.index("L1 logistic")
    told = class_sentence(rare, rare.chosen)
    found = rare.class_metrics(rare.chosen, rare.rare)
    assert f"finds {round(found.rows * found.found.value)} of {found.rows} rows of class" in told
    assert told in page.replace("&nbsp;", "\N{NO-BREAK SPACE}")


def test_thresholds_count_the_rows_left_out(rare):
    values = threshold_values(rare)
    judged, labels = rare.assessment.trees[rare.chosen], rare.assessment.labels
    ill = rare.classes.index("ill")
    for i, at in enumerate(values["at"]):
        called = judged.proba[:, ill] >= at
        assert values["found"][i] == np.sum(called & (labels == ill))
        assert values["alarms"][i] == np.sum(called & (labels != ill))
    assert values["at"][values["start"]] == 0.5
    assert values["rows"] + values["others"] == len(labels)
