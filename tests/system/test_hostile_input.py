"""A few hundred hostile inputs: each gives sound trees or one sentence. Thousands more are run by

    python benchmarks/hostile_input.py run

Time limits are measured there; here no clock decides.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from hostile_cases import (
    WRONG,
    WRONG_CHOICES,
    HostileCase,
    HostileTable,
    problems,
    tables,
)
from hostile_check import command, is_one_sentence, outcome, table_outcome
from readings import alter
from slow_cases import examples
from softsplit import (
    SoftTreeClassifier,
    SoftTreeClassifierCV,
    dumps_model,
    export_text,
    loads_model,
    strength_path,
)
from softsplit.estimators.base import model_settings, training_rows
from softsplit.problem.optimality import kkt
from softsplit.training.preparation import Prepared, prepare
from softsplit.tree.parameters import TreeParameters


@given(case=problems(calls=("fit", "fit", "refit")))
@examples(60)
def test_a_fit_gives_a_sound_tree_or_one_sentence(case):
    outcome(case)


@given(case=problems(calls=("path",)))
@examples(30)
def test_a_path_gives_sound_trees_or_one_sentence(case):
    outcome(case)


@given(case=problems(calls=("choose",)))
@examples(30)
def test_a_choice_gives_a_sound_tree_or_one_sentence(case):
    outcome(case)


@given(case=tables())
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
    rows = rng.normal(size=(20, 2)), rng.integers(0, 2, 20)
    case = HostileCase("fit", *rows, parameters={"loss": "cost"})
    assert outcome(case).trees == 1
    honest = Prepared.tree

    def outside(*arguments, **options):
        tree = honest(*arguments, **options)
        far = replace(tree.parameters, thresholds=tree.parameters.thresholds + 3.0)
        return replace(tree, parameters=far)

    monkeypatch.setattr(Prepared, "tree", outside)
    with pytest.raises(AssertionError, match="outside the box"):
        outcome(case)


# What such cases have brought to light, one by one.


COST = {"loss": "cost"}


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
    alter(tree, weights=np.array([[1e-9]]))
    alter(tree, thresholds=np.array([1.0]))
    assert "inf" not in export_text(tree)


def test_terms_beyond_floats_are_explained_quietly():
    X = np.array([[0.0, 1e15], [1.0, 1e15 + 2], [1e300, 1e15 + 4], [2.0, 1e15]])
    tree = quick(depth=1).fit(X, [0, 0, 1, 1])
    alter(tree, weights=np.array([[1.0], [0.5]]))
    explained = tree.explain(X[2])
    assert all(np.isfinite(reading.total) for reading in explained.branches)
    assert "inf" not in str(explained)


def test_unscaled_features_and_more_leaves_than_classes_give_a_feasible_tree():
    """Splits without rows to separate were drawn with thresholds outside the box."""
    X = np.arange(40.0)[:, None]
    y = np.arange(40) % 7
    tree = quick(loss="cost", scale="none", depth=5, min_class_rate=0.0).fit(X, y)
    assert all(solution.status.usable for solution in tree.starts_)
    assert np.max(np.abs(tree.thresholds_)) <= 1


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"penalty": "log", "offset": 1e-300, "local_strength": 1e12}, "too steeply at zero"),
        ({"penalty": "l0", "sharpness": 1e300, "local_strength": 1e-9}, "too steeply at zero"),
        (COST | {"cost_matrix": [[0, 1e300], [1e300, 0]]}, "costs times weights go up to 2e.301"),
        (COST | {"cost_matrix": [[0, 1e-300], [0, 0]]}, "which is too small to compute with"),
        (COST | {"class_weight": {0: 1e300}, "cost_matrix": [[0, 1e300], [1, 0]]}, "go up to inf"),
        ({"class_weight": {0: 1e300}}, "class_weight times sample_weight holds numbers up to 1e"),
        ({"class_weight": {1: 0.0}}, "class_weight gives class 1 no weight"),
        ({"time_limit": 10**400}, "time_limit must be a finite number > 0, got 1000"),
        ({"tol": 10**5000}, "tol must be a finite number > 0, got a very long integer"),
        ({"n_jobs": 10**400}, "n_jobs must be None or a nonzero integer"),
        (COST | {"steepness": np.zeros((3, 3))}, r"got array\(\[\[0., 0., 0.\], \[0., 0., 0.\]"),
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
        (np.ones((2, 2, 2)), "got 3D array instead: X needs a row per sample and a column per"),
        (({"a": 1.0} for _ in range(2)), "X is a generator; make it an array or a data frame"),
        ({"a": [1.0, 2.0]}, "X is a dict; make it an array or a data frame"),
        (np.ones((2, 200)) * 1j, "Complex data not supported: X must hold real numbers"),
    ],
    ids=["ragged", "line", "number", "cube", "generator", "dict", "complex"],
)
def test_rows_of_no_shape_get_one_sentence(X, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence) as refused:
        quick().fit(X, [0, 1])
    assert is_one_sentence(str(refused.value))


def test_weights_of_text_get_one_sentence():
    with pytest.raises(ValueError, match="sample_weight must hold real numbers, one for each row"):
        quick().fit([[0.0], [1.0]], [0, 1], sample_weight=["a", "b"])


def test_a_path_whose_largest_strength_underflows_falls_back_on_the_papers():
    X = np.array([[0.0], [1e-160], [2e-160], [3e-160]])
    path = strength_path(X, [0, 0, 1, 1], estimator=quick(scale="none", tol=1e-12), n_points=2,
                         sample_weight=np.full(4, 1e-149))  # fmt: skip
    assert all(np.isfinite(point.solution.objective) for point in path.points)


MIXED = np.array(["none", 1, "none", 1] * 3, dtype=object)


@pytest.mark.parametrize("first", [0, 1], ids=["text first", "number first"])
@pytest.mark.parametrize(
    "call",
    [
        lambda X, y: quick().fit(X, y),
        lambda X, y: quick(class_weight={1: 2.0}).fit(X, y),
        lambda X, y: SoftTreeClassifierCV(random_state=0).fit(X, y),
        lambda X, y: strength_path(X, y, estimator=quick()),
    ],
    ids=["fit", "class weights", "choice", "path"],
)
def test_labels_of_text_and_numbers_get_one_sentence(call, first):
    y = MIXED[first:]
    with pytest.raises(ValueError, match="y holds text beside other labels, such as 'none' and 1;"):
        call(np.arange(float(len(y)))[:, None], y)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda X, y: quick(n_starts=10**400).fit(X, y),
            "n_starts .* of at most 100,000, got 1000",
        ),
        (lambda X, y: quick(max_iter=10**400).fit(X, y), "max_iter .* at most 1,000,000,000, got"),
        (
            lambda X, y: strength_path(X, y, estimator=quick(), n_points=10**400),
            "n_points .* of at most 100,000",
        ),
        (
            lambda X, y: SoftTreeClassifierCV(n_strengths=10**400, random_state=0).fit(X, y),
            "n_strengths .* of at most 100,000",
        ),
    ],
    ids=["starts", "iterations", "points", "strengths"],
)
def test_counts_beyond_all_patience_get_one_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence) as refused:
        call(np.arange(12.0)[:, None], np.arange(12) % 2)
    assert is_one_sentence(str(refused.value))


def test_a_far_row_in_a_test_fold_is_scored_quietly():
    """The fold's scaling does not know the row: its score times the steepness overflowed."""
    X = np.where(np.arange(12) == 11, 1e306, np.arange(12.0) / 1000)[:, None]
    model = SoftTreeClassifierCV(
        loss="cost", depths=[1], scales=["minmax"], steepnesses=[1e12], strengths=[0.0, 0.1], cv=2,
        n_starts=1, random_state=0,
    )  # fmt: skip
    assert model.fit(X, np.arange(12) > 5).best_score_ > 0.5


def test_a_rate_that_no_variable_moves_gets_no_multiplier():
    """Its slopes are about 1e-292 where all gates are shut, and a quotient of slopes overflowed."""
    X, y = np.linspace(0, 1, 12)[:, None], np.arange(12) % 2
    model = quick(
        loss="cost", penalty="log", local_strength=1e12, steepness=1e12, depth=1,
        min_class_rate=1.0,
    )  # fmt: skip
    problem = prepare(model_settings(model), training_rows(model, X, y, None)).problem
    shut = TreeParameters(np.array([[0.5]]), np.array([-0.5]), np.eye(2))
    found = kkt(problem, shut)
    np.testing.assert_array_equal(found.multipliers, 0.0)
    assert np.isfinite(found.residual)


def test_long_names_and_many_strange_values_are_cut_on_the_command_line(tmp_path):
    path, model = tmp_path / "t.csv", tmp_path / "m.json"
    long = "a" * 300
    path.write_text(
        "\n".join([",".join([*(f"{long}{j}" for j in range(20)), "y"]), "," * 19 + ",n"])
    )
    said = command("fit", path, "-t", "y", "-m", model, "-q")[1]
    assert "target 'y' has only one class" in said
    rows = [f"{',' * 20}{'yn'[i % 2]}" for i in range(9)]
    path.write_text("\n".join([",".join([*(f"{long}{j}" for j in range(20)), "y"]), *rows]))
    said = command("fit", path, "-t", "y", "-m", model, "-q")[1]
    assert said.startswith("the table has no column that a tree can use: ") and "12 more" in said


def test_rows_without_a_class_are_left_out_and_answered(tmp_path):
    rows = [f"{'red' if i % 2 else 'blue'},{'yn'[i % 2]}" for i in range(20)]
    content = "\n".join(["c0,y", *rows, "green,"]).encode()
    given = ("--depth", "1", "--strength", "0.1", "--time-limit", "5")
    assert table_outcome(HostileTable(content, "y", given), tmp_path).trees


@pytest.mark.parametrize(
    ("make", "wrong"), [(SoftTreeClassifier, WRONG), (SoftTreeClassifierCV, WRONG_CHOICES)]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_argument_of_every_wrong_kind(make, wrong):
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    refused = 0
    for name, value in wrong:
        try:
            make(**{"time_limit": 0.05, "random_state": 0} | {name: value}).fit(X, y)
        except (ValueError, TypeError) as error:
            refused += 1
            assert is_one_sentence(str(error)), (name, value)
    assert refused > 0.7 * len(wrong)


@pytest.mark.parametrize("what", ["X", "y", "sample_weight"])
def test_integers_beyond_floats_get_one_sentence(what):
    rows = {"X": [[0], [1], [2], [3]], "y": [0, 1, 0, 1], "sample_weight": [1, 1, 1, 1]}
    rows[what] = [[10**400]] * 4 if what == "X" else [10**400, 1, 0, 1]
    with pytest.raises((ValueError, TypeError)) as refused:
        quick().fit(**rows)
    assert is_one_sentence(str(refused.value))


def test_a_path_along_a_penalty_that_is_flat_at_zero():
    tree = quick(penalty="inverse_power", exponent=50.0, offset=1e300)
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    path = strength_path(X, y, estimator=tree, n_points=2)
    assert all(np.isfinite(point.solution.objective) for point in path.points)
