"""Bad input gets one clear sentence: what, where, what to do; harmless input works."""

from __future__ import annotations

import json
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_iris

from cli_runs import invoke
from hostile_cases import is_one_sentence
from requirement_cases import HOSTILE, hostile_table, table
from slow_cases import slow
from softsplit import SoftTreeClassifier, SoftTreeClassifierCV
from softsplit.persistence.files import dumps_model, loads_model, loads_tree
from softsplit.solvers import BasinHoppingSolver
from softsplit.support.messages import ParameterError
from softsplit.training.best import NoFeasibleTreeError

X, Y = load_iris(return_X_y=True)


def fit(X=X, y=Y, sample_weight=None, **parameters):
    settings = {"n_starts": 1, "random_state": 0} | parameters
    return SoftTreeClassifier(**settings).fit(X, y, sample_weight=sample_weight)


def changed(value):
    other = X.copy()
    other[3, 1] = value
    return other


def masked(values, *place):
    """The values with one of them masked, or none."""
    made = np.ma.masked_array(values, mask=np.zeros(np.shape(values), dtype=bool))
    if place:
        made[place] = np.ma.masked
    return made


WRONG = {
    "infinity": ({"X": changed(np.inf)}, "X holds infinity in column 1, row 3; replace it"),
    "one class": ({"y": np.zeros(150)}, "y has only one class; a classifier needs at least two"),
    "missing label": ({"y": pd.Series([*Y[:-1], None], name="kind")}, r"y \(column 'kind'\) has"),
    "missing labels": (
        {"y": [None, *map(str, Y[1:-6]), *[None] * 6]},
        r"y has 7 missing values \(rows 0, 144, 145, 146, 147, ...\); drop these rows or fill",
    ),
    "labels NA": ({"y": pd.array([*Y[:-1], pd.NA], dtype="Int64")}, r"missing value \(row 149\)"),
    "no weight": ({"sample_weight": np.zeros(150)}, "(class|zero)"),
    "negative weight": ({"sample_weight": np.full(150, -1.0)}, "sample_weight holds -1 in row 0"),
    "fewer leaves than classes": ({"loss": "cost", "depth": 1}, "depth 1 gives 2 leaves for 3"),
    "depth zero": ({"depth": 0}, "depth must be 'auto' or an integer between 1 and 16, got 0"),
    "depth as text": ({"depth": "deep"}, "depth must be 'auto' or an integer between 1 and 16"),
    "depth as fraction": ({"depth": 1.5}, "depth must be 'auto' or an integer between 1 and 16"),
    "cost shape": ({"cost_matrix": np.ones((2, 2))}, r"needs one row and one column per class"),
    "negative cost": ({"cost_matrix": -np.ones((3, 3))}, "finite costs >= 0"),
    "cost text": ({"cost_matrix": [["a"]]}, "array of numbers"),
    "rate above one": ({"min_class_rate": 1.5}, r"must lie in \[0, 1\]"),
    "rate count": ({"min_class_rate": [0.1, 0.1]}, "one per class"),
    "rate of unknown class": ({"min_class_rate": {"x": 0.1}}, "not a class of y; the classes are"),
    "negative strength": ({"local_strength": -1}, "local_strength must be a finite number >= 0"),
    "strength nan": ({"global_strength": np.nan}, "global_strength must be"),
    "strength without penalty": ({"penalty": None, "local_strength": 1}, "penalty=None"),
    "unknown penalty": ({"penalty": "l2"}, "penalty 'l2' is unknown; choose one of"),
    "unknown solver": ({"solver": "magic"}, "solver 'magic' is unknown; choose one of"),
    "solver object": ({"solver": 3}, "an object of a subclass of softsplit.solvers.Solver"),
    "solver class": ({"solver": BasinHoppingSolver}, r"pass BasinHoppingSolver\(\)"),
    "n_jobs": ({"n_jobs": "a"}, "n_jobs must be None or a nonzero integer"),
    "device": ({"device": "tpu"}, "device must be None, 'cuda' or 'cpu', got 'tpu'"),
    "scale": ({"scale": "no"}, "scale must be 'auto', one of 'minmax'"),
    "huge steepness": ({"loss": "cost", "steepness": 1e300}, "steepness must lie between"),
    "huge weights": ({"sample_weight": np.full(150, 1e307)}, "too large to compute with"),
    "tiny weights": ({"sample_weight": np.full(150, 5e-324)}, "too small to compute with"),
    "class_weight value": ({"class_weight": {0: "a"}}, "class_weight must map classes to numbers"),
    "penalty array": ({"penalty": np.zeros(3)}, "is unknown; choose one of"),
    "overflowing penalty": ({"penalty": "inverse_power", "exponent": 100.0}, "overflow at zero"),
    "steepness": ({"loss": "cost", "steepness": 0}, "steepness must be a finite number > 0"),
    "steepness by likelihood": ({"loss": "log", "steepness": 1.0}, "is part of loss='cost'"),
    "ridge": ({"loss": "log", "ridge": -1}, "ridge must be a finite number >= 0"),
    "unknown loss": ({"loss": "logg"}, "loss must be 'log' or 'cost', got 'logg'; did you mean"),
    "sharpness": ({"penalty": "l0", "sharpness": -1}, "sharpness must be"),
    "exponent": ({"penalty": "power", "exponent": 2.0}, r"exponent of 'power' must be in \(0, 1\]"),
    "offset": ({"penalty": "log", "offset": 0}, "offset must be"),
    "n_starts": ({"n_starts": 0}, "n_starts must be a positive integer"),
    "max_iter": ({"max_iter": 0}, "max_iter must be a positive integer"),
    "tol": ({"tol": 0}, "tol must be"),
    "time_limit": ({"time_limit": -1}, "time_limit must be"),
    "class_weight": ({"class_weight": "heavy"}, "class_weight must be"),
    "class_weight class": ({"class_weight": {9: 1.0}}, "9, which is not a class of y; the"),
    "misspelt class": (
        {"class_weight": {"setsa": 1.0}, "y": np.array(["setosa", "virginica"])[Y % 2]},
        "not a class of y; did you mean 'setosa'",
    ),
    "no features": ({"X": np.empty((150, 0))}, "0 feature"),
    "no columns": ({"X": pd.DataFrame(index=range(150))}, "0 feature"),
    "regression target": ({"y": np.linspace(0, 1, 150)}, "Unknown label type: continuous, y"),
    "a label less": ({"y": Y[:-1]}, "X has 150 rows and y has 149 labels; give one label for"),
    "a label less, in a table": (
        {"X": pd.DataFrame(X).assign(kind="a"), "y": Y[:-1]},
        "X has 150 rows and y has 149 labels; give one label for",
    ),
    "weights of fewer rows": ({"sample_weight": np.ones(3)}, "sample_weight has 3 numbers and X"),
    "a table of weights": ({"sample_weight": np.ones((150, 2))}, r"sample_weight has shape"),
    "missing weight": (
        {"sample_weight": np.where(np.arange(150) == 7, np.nan, 1.0)},
        "sample_weight holds a missing value in row 7; give finite numbers",
    ),
    "infinite weight": (
        {"sample_weight": np.where(np.arange(150) == 7, np.inf, 1.0)},
        "sample_weight holds inf in row 7; give finite numbers",
    ),
    "huge range": ({"X": np.where(X > 3, 1.7e308, -1.7e308)}, "more than a float can hold"),
    "masked X": ({"X": masked(X, 5, 2)}, "X is masked in column 2, row 5; fill it in or drop the"),
    "masked row in a list": ({"X": [*X[:-1], masked(X[-1], 2)]}, "X is masked in row 149; fill it"),
    "masked y": ({"y": masked(Y, 5)}, "y is masked in row 5; fill it in or drop the row"),
    "masked label in a list": ({"y": [*Y[:-1], np.ma.masked]}, "y is masked in row 149; fill it"),
    "masked weights": ({"sample_weight": masked(np.ones(150), 7)}, "sample_weight is masked in"),
    "complex weights": ({"sample_weight": np.full(150, 1j)}, "sample_weight must hold real"),
    "complex weight": ({"sample_weight": [1j] * 150}, "sample_weight must hold real numbers"),
    "objects that are truth values": ({"y": (Y > 0).astype(object)}, r"y holds Python objects"),
    "objects of numpy": ({"y": np.array(list(Y > 0), dtype=object)}, r"such as False; .*\(bool\)"),
    "objects that are integers": ({"y": Y.astype(object)}, r"such as 0; .* with y.astype\(int\)"),
    "labels that are sets": (
        {"y": np.array([{1}, {2}] * 75, dtype=object)},
        "make the labels all text or all numbers",
    ),
    "verbose array": ({"verbose": np.ones(2)}, r"verbose must be an integer .*, got array\(\[1"),
    "verbose text": ({"verbose": "much"}, "verbose must be an integer or a truth value"),
    "huge unscaled": ({"X": X * 1e200, "scale": False}, "too large to train on"),
    "ragged rows": ({"X": [[1.0, 2.0], [3.0]], "y": [0, 1]}, "rows of different lengths"),
    "rows in a line": ({"X": [1.0, 2.0], "y": [0, 1]}, "Expected 2D array, got 1D array instead:"),
    "a cube of rows": ({"X": np.ones((2, 2, 2)), "y": [0, 1]}, "got 3D array instead: X needs a"),
    "a dict of rows": ({"X": {"a": [1.0, 2.0]}, "y": [0, 1]}, "X is a dict; make it an array or"),
    "weights of text": ({"sample_weight": ["a"] * 150}, "sample_weight must hold real numbers,"),
    "text and numbers": ({"y": np.array(["none", 1] * 75, dtype=object)}, "y holds text beside"),
    "steep penalty": (
        {"penalty": "log", "offset": 1e-300, "local_strength": 1e12},
        "too steeply at zero",
    ),
    "costs beyond floats": (
        {"loss": "cost", "cost_matrix": 1e300 * (1 - np.eye(3))},
        r"costs times weights go up to 5e\+301",
    ),
    "weights of classes beyond floats": (
        {"loss": "log", "class_weight": {0: 1e300}},
        "class_weight times sample_weight holds numbers up to 1e",
    ),
    "class of no weight": ({"loss": "log", "class_weight": {1: 0.0}}, "gives class 1 no weight"),
    "endless": ({"time_limit": 10**400}, "time_limit must be a finite number > 0, got 1000"),
    "no tolerance": ({"tol": 10**5000}, "tol must be a finite number > 0, got a very long integer"),
    "endless starts": ({"n_starts": 10**400}, "n_starts .* of at most 100,000, got 1000"),
    "endless iterations": ({"max_iter": 10**400}, "max_iter .* at most 1,000,000,000, got"),
    "random state": ({"random_state": "0"}, r"random_state must be None, an integer .*, got"),
    "effort": ({"effort": "much"}, "effort must be one of 'fast', 'balanced', 'thorough' or a num"),
    "knots": ({"curves": 99}, "curves must be 'auto', False or a number of knots up to 20, got 99"),
    "terms": ({"max_terms": 0}, "max_terms must be a positive integer, got 0"),
    "terms by cost": ({"loss": "cost", "max_terms": 2}, "max_terms needs loss='log' and penalty"),
}


@pytest.mark.parametrize("loss", ["log", "cost"])
@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_gets_one_sentence(name, loss):
    arguments, sentence = WRONG[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises((ValueError, TypeError), match=sentence) as error:
            fit(**{"loss": loss} | arguments)
    assert is_one_sentence(str(error.value))


@pytest.mark.filterwarnings("ignore:column 'still'")
@pytest.mark.parametrize(("given", "sentence"), HOSTILE, ids=[words for _, words in HOSTILE])
@pytest.mark.parametrize("estimator", [SoftTreeClassifier, SoftTreeClassifierCV])
def test_requirements_that_cannot_hold_get_one_sentence(estimator, given, sentence):
    given = {"feature_types": {"dropped": "drop"}, **given}
    if estimator is SoftTreeClassifierCV:
        names = {"depth": "depths", "penalty": "penalties"}
        given = {names.get(n, n): [v] if n in names else v for n, v in given.items()}
    tree = estimator(**given)
    with pytest.raises(ValueError, match=re.escape(sentence)) as error:
        tree.fit(*hostile_table())
    assert is_one_sentence(str(error.value)) and not hasattr(tree, "tree_")


@pytest.mark.parametrize("parameter", ["max_terms", "effort", "curves", "n_jobs"])
def test_a_wrong_parameter_of_a_file_is_named_by_the_next_fit(parameter):
    document = json.loads(dumps_model(fit()))
    document["training"]["parameters"][parameter] = -1
    tree = loads_model(json.dumps(document))
    assert tree.get_params()[parameter] == -1
    if parameter == "n_jobs":
        return  # as in scikit-learn
    with pytest.raises(ParameterError, match=f"{parameter} must be .*, got -1") as error:
        tree.fit(X, Y)
    assert (error.value.parameter, error.value.value) == (parameter, -1)


# Calls, and the beginning of what is said of them; FIT is "fit DATA -t ill --depth 1 -q".
CALLS = [
    ("compare a b c --allow 3", "--allow must be at most 1, got '3'."),
    ("compare a b c --allow x", "--allow must be a number, got 'x'."),
    ("export a", "--to is missing; choose sql, python, javascript, c or excel."),
    ("export a --to c++", "--to must be sql, python, javascript, c or excel, got 'c++'."),
    ("fit a", "--target is missing; softsplit fit --help says what to give."),
    ("predict", "MODEL is missing; softsplit predict --help says what to give."),
    ("predict a b c", "'c' is more than was expected; softsplit predict --help shows the"),
    ("fitt", "there is no command 'fitt'; did you mean fit?"),
    ("vc --depth 3", "--features is missing; "),
    ("vc --depth 0 --features 3", "--depth must be at least 1, got '0'."),
    ("vc --depth three --features 3", "--depth must be a whole number"),
    ("vc --depth 3 --features 3 --speed 9", "there is no option --speed"),
    ("vc --depth 3 --features 3 --binary --levels 4", "binary features"),
    ("vc --depth 3 --features 3 --samples 9 --confidence 2", "confidence must be"),
    ("FIT --max-terms 0", "--max-terms must be at least 1, got '0'."),
    ("FIT -j 0", "--jobs must be at least 1, got '0'."),
    ("FIT --effort much", "--effort must be one of 'fast', 'balanced', 'thorough' or a number >"),
    ("FIT --curves -1", "--curves must be auto or a number of knots up to 20, got -1."),
    ("FIT --scale no", "--scale must be minmax, quantile or standard, got 'no'."),
    ("FIT --targt y", "there is no option --targt; did you mean --target?"),
    ("FIT --seed 99999999999", "--seed must be a whole number from 0 to 4294967295, got"),
    ("FIT --loss cost --max-terms 2", "--max-terms needs --loss log and --scope size, by which"),
    ("FIT --required nope", "--required names 'nope', which is not a column of the table"),
    ("FIT --required twon", "--required names 'twon', which is not a column of the table; did"),
    ("FIT --required a,b,c --max-features 1", "--required names 3 columns, and --max-features 1"),
    ("FIT --at-most-one a,twon", "--at-most-one names 'twon', which is not a column"),
    ("FIT --at-most-one a", "--at-most-one holds a set of one column"),
    ("FIT --forbidden-together a,twon", "--forbidden-together names 'twon'"),
    ("FIT --groups a,twon", "--groups names 'twon', which is not a column of the table"),
    ("FIT --feature-cost a", "--feature-cost 'a' must be COLUMN=NUMBER"),
    ("FIT --feature-cost a=dear", "--feature-cost needs a number of at least 0, got 'dear'"),
    ("FIT --feature-cost a=1 --feature-cost a=2", "--feature-cost names 'a' twice"),
    ("FIT --feature-cost twon=2", "--feature-cost names 'twon', which is not a column"),
    ("FIT --monotone a", "--monotone 'a' names no effect; write COLUMN=+, COLUMN=- or"),
    ("FIT --monotone town=+", "--monotone names column 'town', a category without an order; name"),
    ("FIT --monotone a=9:+", "--monotone names '9' for column 'a', which is not a class of the"),
    ("FIT --class-weight 1=much", "--class-weight needs a number of at least 0, got 'much'."),
    ("FIT --min-rate -1", "--min-rate needs a number of at least 0, got '-1'."),
    ("FIT --min-rate 1=2", "--min-rate needs a number from 0 to 1, got '2'."),
    ("FIT --cost sick=3", "--cost: there is no class 'sick'; the classes are '0', '1'."),
    ("FIT --cost 3", "--cost '3' names no class; write CLASS=NUMBER, for instance 1=10."),
    ("FIT --parity sax=0.05", "--parity 'sax=0.05' names no column of the table; write it as"),
    ("FIT --parity town", "--parity 'town' names no column of the table"),
    ("FIT --parity a>x=0.05", "--parity needs a number, got 'x'."),
    ("FIT --favourable 1", "--favourable is for --parity and the like; give one of them."),
    ("FIT --rate good", "--rate 'good' is not understood; write it as"),
    ("FIT --kind a=odd", "--kind says that column 'a' is 'odd'; choose "),
    ("FIT --kind nope", "--kind 'nope' must be COLUMN=KIND, with a column of the table."),
    ("FIT --drop a --keep a", "column 'a' cannot be drop and keep at once."),
    ("FIT --by nope", "--by names 'nope', which is not a column of the table."),
    ("FIT --metric wisdom", "--metric must be"),
]


@pytest.mark.parametrize(("words", "sentence"), CALLS, ids=[words for words, _ in CALLS])
def test_wrong_calls_get_one_sentence_with_their_names(words, sentence, csv_file):
    fit = f"fit {csv_file} -t ill --depth 1 -q" + " --strength 1" * ("--metric" not in words)
    result = invoke(*words.replace("FIT", fit).split(" "))
    said = result.stderr.strip().splitlines()[-1]
    assert result.exit_code == 2 and said.startswith(f"softsplit: {sentence}"), said
    assert result.stdout == "" and is_one_sentence(said)


@pytest.fixture(scope="module")
def csv_file(tmp_path_factory):
    frame, y = table()
    path = tmp_path_factory.mktemp("wrong") / "rows.csv"
    frame.assign(ill=y).to_csv(path, index=False)
    return str(path)


TABLE = pd.DataFrame(X, columns=["long", "wide", "high", "deep"])
BEGIN = "The feature names should match those that were passed during fit: "


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (TABLE.drop(columns="wide"), "X has no column 'wide'; give the columns of training."),
        (TABLE.rename(columns={"wide": "wid"}), "X has no column 'wide'; did you mean 'wid'?"),
        (
            TABLE.rename(columns={"wide": "x", "high": "y"}),
            "X has no columns 'wide', 'high', and columns 'x', 'y' beside; give the columns of "
            "training.",
        ),
        (
            TABLE.assign(more=1.0),
            "training had no column 'more'; X[list(tree.feature_names_in_)] selects the columns of "
            "training.",
        ),
        (
            TABLE[TABLE.columns[::-1]],
            "X has them in another order; X[list(tree.feature_names_in_)] selects the columns of "
            "training in their order.",
        ),
    ],
)
@pytest.mark.parametrize("text", [False, True], ids=["numbers", "text"])
def test_other_columns_are_named_in_one_sentence(other, said, text):
    tree = fit(X=TABLE)
    other = other.astype(str) if text else other
    for ask in (tree.predict, tree.predict_proba, tree.explain, lambda X: tree.score(X, Y)):
        with pytest.raises(ValueError) as error:
            ask(other)
        assert str(error.value) == BEGIN + said
    if set(other) >= set(TABLE):
        assert_array_equal(tree.predict(other[list(tree.feature_names_in_)]), tree.predict(TABLE))


def test_a_cell_that_is_no_number_is_named_with_its_row():
    """Counted from one, as on the command line."""
    tree = fit(X=TABLE)
    used = TABLE.columns[tree.selected_features_[0]]
    other = TABLE.astype(str)
    other.loc[4, used] = "12,5 cm"
    said = f"column '{used}' holds '12,5 cm' where numbers are needed \\(row 5\\); correct the cell"
    with pytest.raises(ValueError, match=said):
        tree.predict(other)


def test_a_single_fit_has_no_alternatives():
    tree = fit()
    assert not hasattr(tree, "alternatives")
    with pytest.raises(AttributeError, match="choose one with SoftTreeClassifierCV"):
        tree.alternatives()


def test_masked_rows_are_refused_where_a_tree_is_asked():
    tree = fit()
    for ask in (tree.predict, tree.predict_proba, tree.leaf_proba, tree.decision_path, tree.apply):
        with pytest.raises(ValueError, match="X is masked in column 2, row 5; fill it in"):
            ask(masked(X, 5, 2))
    hard = tree.to_hard_tree()
    for refused in (hard.predict, tree.simplify, lambda rows: tree.score(rows, Y)):
        with pytest.raises(ValueError, match="X is masked in column 2, row 5; fill it in"):
            refused(masked(X, 5, 2))
    with pytest.raises(ValueError, match="y is masked in row 3"):
        hard.score(X, masked(Y, 3))
    for row in (masked(X[0], 2), masked(X[:1], 0, 2), [*X[0, :2], np.ma.masked, X[0, 3]]):
        with pytest.raises(ValueError, match=r"x is masked in column 2(, row 0)?; fill it in"):
            tree.explain(row)


def test_arrays_without_a_masked_entry_are_taken_as_they_are():
    tree = fit(masked(X), masked(Y), sample_weight=masked(np.ones(150)))
    np.testing.assert_array_equal(tree.weights_, fit().weights_)
    np.testing.assert_array_equal(tree.predict_proba(masked(X)), tree.predict_proba(X))
    assert tree.explain(masked(X[0])).label == tree.explain(X[0]).label
    frame = pd.DataFrame(X, columns=["_mask", "b", "c", "d"])
    assert fit(frame, pd.array(Y, dtype="Int64")).explain(frame.iloc[[0]]).label == 0


CELLS_OF_NO_USE = {
    "lists": [[1.0], [2.0], [3.0], [4.0]],
    "dictionaries": [{"a": 1}, {"a": 2}, {"a": 1}, {}],
    "objects": [object(), object(), object(), {1}],
}


@pytest.mark.parametrize("name", CELLS_OF_NO_USE)
def test_cells_that_are_no_single_values_are_named(name):
    frame = pd.DataFrame({"age": [1.0, 2.0, 3.0, 4.0], "odd": CELLS_OF_NO_USE[name]})
    with pytest.raises(ValueError, match=r"column 'odd' holds a .* which is no single value"):
        fit(frame, [0, 1, 0, 1])


def test_a_list_of_dictionaries_is_named():
    rows = TABLE.iloc[:2].to_dict("records")
    tree = fit(TABLE)
    for ask in (tree.predict, tree.predict_proba, loads_tree(dumps_model(tree)).predict):
        with pytest.raises(
            TypeError, match=r"a list of dicts; give pd\.DataFrame\(X\), or an array"
        ):
            ask(rows)


def test_lazy_frames_are_named():
    with pytest.raises(ValueError, match=r"lazy frame; call its collect\(\)"):
        fit(pl.LazyFrame({"a": [1.0, 2.0]}), [0, 1])


def test_categories_that_are_numbers_work():
    frame = pd.DataFrame({"a": pd.Categorical([1, 2] * 6), "b": [0.0, 1.0] * 6})
    assert fit(frame, [0, 1] * 6).score(frame, [0, 1] * 6) == 1.0


def test_a_parameter_changed_after_fit_changes_no_prediction():
    tree = fit()
    before = tree.predict_proba(X)
    np.testing.assert_array_equal(tree.set_params(steepness=2.0).predict_proba(X), before)


@pytest.mark.parametrize(
    ("loss", "factor"),
    [("cost", 1e-9), ("cost", 1e-3), ("cost", 1e6), ("log", 1e-9), ("log", 1 / 150)],
)
def test_the_scale_of_weights_and_strengths_does_not_matter(loss, factor):
    """Only the ratio of costs and strengths counts; the tolerance follows the scale.

    By likelihood weights above one are counts of rows: more of them are more evidence.
    """
    plain = fit(loss=loss, global_strength=1.0, n_starts=3)
    weight = np.full(150, factor)
    scaled = fit(loss=loss, global_strength=factor, sample_weight=weight, n_starts=3)
    assert scaled.objective_ / factor == pytest.approx(plain.objective_, rel=0.02)


def test_impossible_rate_names_the_class():
    rng = np.random.default_rng(0)
    points = rng.uniform(size=(40, 2))
    X = np.vstack([points, points])
    y = np.repeat(["no", "yes"], 40)
    with pytest.raises(NoFeasibleTreeError, match=r"min_class_rate 0\.9 for class '(no|yes)'"):
        fit(X, y, min_class_rate=0.9)


HARMLESS = {
    "constant column": np.column_stack([X, np.full(150, 7.0)]),
    "all columns constant": np.ones((150, 3)),
    "duplicate columns": np.column_stack([X, X]),
    "one feature": X[:, 2:3],
    "large numbers": X * 1e300,
    "small numbers": X * 1e-200,
    "subnormal numbers": X * 5e-324,
    "integers": X.astype(int),
    "booleans": X > 3,
    "float32": X.astype(np.float32),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_harmless_input_works_without_a_warning(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tree = fit(HARMLESS[name])
        proba = tree.predict_proba(HARMLESS[name])
    assert np.all(np.isfinite(proba))
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert tree.solution_.violation <= 1e-6
    assert np.all(np.isfinite(tree.coef_))
    assert np.all(np.isfinite(tree.intercept_))


@pytest.mark.parametrize("strength", [1e-12, 1e12])
@pytest.mark.parametrize("penalty", ["l1", "l0", "inverse_power", *slow("power", "log")])
def test_extreme_strengths(penalty, strength):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tree = fit(penalty=penalty, local_strength=strength, global_strength=strength)
    assert np.isfinite(tree.objective_)
    if strength > 1:
        assert tree.global_sparsity_ == 100
