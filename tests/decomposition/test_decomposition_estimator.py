"""Decomposition through the estimator, the choice of psi, and the picture of a trace."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import KFold

from softsplit import SoftTreeClassifier, select_proximal
from softsplit.decomposition import (
    DecompositionTrace,
    EvaluationSet,
    NodeDecomposition,
    TracedSolution,
    TraceRow,
)

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]


def tree(**parameters):
    defaults = {"loss": "cost", "solver": "decomposition", "n_starts": 2, "random_state": 0}
    return SoftTreeClassifier(**{**defaults, "global_strength": 0.5, **parameters})


def test_the_name_and_the_loss_are_enough():
    fitted = tree().fit(X, NAMES)
    assert fitted.score(X, NAMES) > 0.93
    assert isinstance(fitted.solution_, TracedSolution)
    assert fitted.solution_.solver == "decomposition(native)"
    assert len(fitted.solution_.trace) > 1


def test_clone_and_nested_parameters():
    model = clone(tree(solver=NodeDecomposition(proximal=1e-3)))
    model.set_params(solver__proximal=1e-5, solver__macro_iterations=2)
    assert model.get_params()["solver__proximal"] == 1e-5
    assert len(model.fit(X, Y).solution_.trace) <= 3


def test_watched_rows_are_in_the_units_and_labels_of_the_user():
    watch = EvaluationSet(X[::3], NAMES[::3])
    fitted = tree(solver=NodeDecomposition(watch=watch), n_starts=1).fit(X, NAMES)
    last = fitted.solution_.trace.rows[-1]
    assert last.test_accuracy == pytest.approx(fitted.score(X[::3], NAMES[::3]))
    assert last.train_accuracy == pytest.approx(fitted.score(X, NAMES))
    assert watch.X is not None and watch.y[0] == "setosa"


def test_psi_by_nested_cross_validation():
    model = tree(solver=NodeDecomposition(macro_iterations=1), depth=2)
    choice = select_proximal(
        X, NAMES, estimator=model, proximals=(1e-4, 1e3), outer=2, inner=2, n_runs=2, random_state=0
    )
    frame = choice.validation
    assert list(frame.columns) == ["proximal", "outer_fold", "accuracy"] and len(frame) == 4
    means = frame.groupby("proximal")["accuracy"].mean()
    assert choice.proximal == means.idxmax()
    assert choice.test_accuracies.shape == (2, 2) and 0.5 < choice.test_accuracy <= 1
    again = select_proximal(
        X, NAMES, estimator=model, proximals=(1e-4, 1e3), outer=2, inner=2, n_runs=2, random_state=0
    )
    pd.testing.assert_frame_equal(again.validation, frame)


@pytest.mark.parametrize(
    "parameters, sentence",
    [
        ({"estimator": SoftTreeClassifier()}, "must have a NodeDecomposition as its solver"),
        ({"estimator": KFold()}, "estimator must be a SoftTreeClassifier"),
        ({"proximals": []}, "proximals is empty"),
        ({"proximals": [-1]}, "proximals must be a finite number >= 0"),
        ({"n_runs": 0}, "n_runs must be a positive integer"),
    ],
)
def test_the_choice_refuses_nonsense(parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        select_proximal(X, Y, **parameters)


def a_trace(initialised=True, seconds=1.0):
    rows = [
        TraceRow(m, 10.0 - m, 0.0, 0.8 + 0.01 * m, 0.7 + 0.02 * m, seconds * m, m, 10 * m, 3, 3)
        for m in range(4)
    ]
    return DecompositionTrace(tuple(rows), initialised)


@pytest.fixture
def plt():
    matplotlib = pytest.importorskip("matplotlib", reason="needs softsplit[plots]")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def test_the_picture_shows_accuracy_savings_and_the_baseline(plt):
    from softsplit.plots import decomposition_trace

    _, given = plt.subplots()
    ax = decomposition_trace(
        [a_trace(), a_trace(seconds=3.0)], baseline_accuracy=0.75, baseline_seconds=10.0, ax=given
    )
    assert ax is given
    bars = next(other for other in ax.figure.axes if other is not ax)
    heights = [patch.get_height() for patch in bars.patches]
    assert heights == pytest.approx([100, 80, 60, 40])
    assert bars.patches[0].get_facecolor() != bars.patches[1].get_facecolor()
    dashed = [line for line in ax.lines if line.get_linestyle() == "--"]
    assert dashed[0].get_ydata() == pytest.approx([70, 72, 74, 76])
    flat = [line for line in ax.lines if line.get_linestyle() == "-."]
    assert flat[0].get_ydata()[0] == pytest.approx(75)
    assert [t.get_text() for t in ax.get_xticklabels()] == ["init.", "1", "2", "3"]
