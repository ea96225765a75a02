"""Tables as they come: categories, truth values, dates and gaps, in every kind of frame."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from slow_cases import examples
from softsplit import SoftTreeClassifier, dumps_model, export_text, loads_model
from softsplit.variables import ColumnsLeftOut, learn
from softsplit.variables.contents import number_of, plain_numbers
from softsplit.variables.kinds import kind_of

QUICK = {"depth": 1, "n_starts": 1, "random_state": 0, "points": False}


def customers(n_rows: int = 200, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Every kind of column; who leaves follows from contract, income (or its absence) and day."""
    rng = np.random.default_rng(seed)
    contract = rng.choice(["monthly", "one year", "two years"], n_rows, p=[0.5, 0.3, 0.2])
    income = np.where(rng.random(n_rows) < 0.2, np.nan, rng.normal(50, 10, n_rows).round(1))
    size = rng.choice(["small", "medium", "large"], n_rows)
    days = np.append(0, rng.integers(0, 900, n_rows - 1))
    day = pd.Timestamp("2018-01-01") + pd.to_timedelta(days, unit="D")
    score = 2.0 * (contract == "monthly") + np.where(np.isnan(income), 1.5, 0.1 * (50 - income))
    score = score + (day - pd.Timestamp("2019-03-01")).days.to_numpy() / 300
    frame = pd.DataFrame(
        {
            "customer": [f"C{i:04d}" for i in rng.permutation(n_rows)],
            "contract": contract,
            "income": income,
            "size": pd.Categorical(size, ["small", "medium", "large"], ordered=True),
            "since": day,
            "paperless": rng.random(n_rows) < 0.4,
            "sex": rng.choice(["F", "M"], n_rows),
            "country": "CH",
            "calls": rng.poisson(1.5, n_rows),
        }
    )
    return frame, np.where(score + rng.logistic(size=n_rows) > 1, "gone", "here")


def quiet_fit(X, y, **parameters) -> SoftTreeClassifier:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ColumnsLeftOut)
        return SoftTreeClassifier(**{**QUICK, **parameters}).fit(X, y)


@pytest.fixture(scope="module")
def table():
    return customers()


@pytest.fixture(scope="module")
def tree(table):
    return quiet_fit(*table, depth=2, global_strength=2.0, local_strength=0.5)


def test_a_table_is_trained_on_as_it_is(table, tree):
    frame, _ = table
    assert tree.n_features_in_ == 9 and tree.feature_names_in_.tolist() == list(frame.columns)
    used = set(tree.feature_names_in_[tree.selected_features_])
    assert {"contract", "income"} <= used and not {"customer", "country"} & used
    assert tree.score(*customers(1000, seed=1)) > 0.7
    assert tree.feature_importances_.shape == (9,)
    assert tree.feature_importances_.sum() == pytest.approx(1)
    assert set(np.flatnonzero(tree.feature_importances_)) == set(tree.selected_features_)
    names = tree.coding_.column_names
    assert names == tree.tree_.feature_names and len(names) == len(tree.weights_)
    assert "sex is M" in names and "sex is F" not in names  # two levels, one column
    assert "income is unknown" in names and "calls is unknown" not in names
    assert "since (days since 2018-01-01)" in names
    assert "size (0 small to 2 large)" in names and "paperless is true" in names


def test_what_no_tree_can_use_is_left_out_in_one_warning(table):
    frame, y = table
    frame = frame.assign(
        note=[f"called about bill {i}, agent said wait" for i in range(len(frame))], empty=np.nan
    )
    with pytest.warns(ColumnsLeftOut) as said:
        tree = SoftTreeClassifier(**QUICK).fit(frame, y)
    assert len(said) == 1 and said[0].filename == __file__
    assert str(said[0].message) == (
        "columns 'customer' (an identifier), 'country' (one value only), 'note' (free text), "
        "'empty' (no values) are left out; to use one all the same, name its kind, such as "
        "feature_types={'customer': 'keep'}."
    )
    assert dict(tree.coding_.left_out).keys() == {"customer", "country", "note", "empty"}
    feature_types = {"customer": "keep", "country": "drop", "note": "drop", "empty": "drop"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = SoftTreeClassifier(**QUICK, feature_types=feature_types).fit(frame, y)
    assert "customer" in [variable.name for variable in kept.coding_.variables]


def test_every_kind_of_table_gives_the_same_tree(table, tree):
    frame, y = table
    expected = tree.predict_proba(frame)
    dresses = {
        "pyarrow": pa.Table.from_pandas(frame),
        "polars": pl.from_pandas(frame),
        "objects": frame.astype(object),
        "nullable": frame.convert_dtypes(),
        "text": frame.astype({"since": str, "paperless": str, "calls": str}),
        "shuffled": frame.iloc[::-1],
    }
    for name, X in dresses.items():
        labels = y[::-1] if name == "shuffled" else y
        if name != "polars" and name != "objects":  # which know no order of levels
            again = quiet_fit(X, labels, depth=2, global_strength=2.0, local_strength=0.5)
            answers = again.predict_proba(frame)
            assert_array_equal(answers, expected, err_msg=name)
        assert_array_equal(tree.predict_proba(X)[:: -1 if name == "shuffled" else 1], expected)


@pytest.mark.parametrize("kind", ["array", "pandas", "polars"])
def test_plain_numbers_take_the_plain_way(kind):
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = X[:, 0] > 0
    given = {"array": X, "pandas": pd.DataFrame(X, columns=list("abc"))}
    given["polars"] = pl.DataFrame(X, schema=["a", "b", "c"])
    tree = quiet_fit(given[kind], y, curves=False)
    assert not hasattr(tree, "coding_") and tree.tree_.coding is None
    gaps = X.copy()
    gaps[5, 0] = np.nan
    answers = tree.predict_proba(
        gaps if kind == "array" else pd.DataFrame(gaps, columns=list("abc"))
    )
    middle = X.copy()
    middle[5, 0] = X[:, 0].mean()
    np.testing.assert_allclose(tree.predict_proba(given[kind])[6:], answers[6:])
    plain = quiet_fit(X, y, curves=False)
    np.testing.assert_allclose(plain.predict_proba(gaps), plain.predict_proba(middle))
    said = str(plain.explain(gaps[5]))
    assert "x0 is unknown, as in no training row: it counts as " in said


def test_a_gap_is_a_fact_that_is_learned():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = X[:, 0] > 0
    X[y & (rng.random(300) < 0.8), 1] = np.nan  # what is unknown tells the class
    tree = quiet_fit(X, y, curves=False)
    assert tree.coding_.column_names == ("x0", "x1", "x1 is unknown")
    alone = quiet_fit(X[:, 1:], y)
    assert alone.score(X[:, 1:], y) > 0.85
    assert "x0 is unknown" in export_text(alone)
    assert alone.selected_features_.tolist() == [0]


def test_explanations_speak_of_variables_and_levels(table, tree):
    frame, _ = table
    row = frame.iloc[[int(np.argmax(frame["income"].isna()))]]
    found = tree.explain(row)
    by_name = {term.name: term.value for split in found.branches for term in split.contributions}
    assert by_name["contract"] == row["contract"].iloc[0] and by_name["income"] == "unknown"
    for split in found.branches:
        total = split.base_log_odds + sum(term.log_odds for term in split.contributions)
        assert total == pytest.approx(split.log_odds)
        assert len({term.name for term in split.contributions}) == len(split.contributions)
    assert len({change.name for change in found.changes}) == len(found.changes)
    for change in found.changes:
        value = change.new_value
        moved = row.assign(**{change.name: value})
        if change.name == "since":
            moved["since"] = pd.to_datetime(moved["since"])
        assert tree.predict(moved)[0] == change.label != found.label
    assert str(tree.explain(frame.iloc[0])) == str(tree.explain(frame.iloc[[0]]))


def test_values_that_training_did_not_have_are_said(table, tree):
    frame, _ = table
    row = frame.iloc[[0]].assign(contract="weekly", calls=np.nan)
    said = tree.explain(row).remarks
    assert "contract 'weekly' was not seen in training: it counts as none of the levels" in said
    if "calls" in tree.feature_names_in_[tree.selected_features_]:
        assert any(remark.startswith("calls is unknown, as in no training row") for remark in said)
    lines = [line.strip() for line in str(tree.explain(row)).splitlines()]
    new = "= weekly (not seen in training: counts as none of the levels) speaks for"
    assert any(line.startswith("contract") and new in line for line in lines)


@given(st.lists(st.sampled_from("abcdefghijkl"), min_size=60, max_size=120), st.booleans())
def test_a_rare_level_is_not_a_new_one(letters, many):
    levels = [f"{letter}{i % 40 if many else ''}" for i, letter in enumerate(letters)]
    levels += [*"yyyyyyyyyy", "x", "x"]
    frame = pd.DataFrame({"level": levels, "n": np.arange(len(levels)) % 7})
    classes, hint = np.array(["no", "yes"]), {"level": "category"}
    places = np.arange(len(frame)) % 2
    coded = learn(frame, places, classes, np.ones(len(frame)), hint)
    variable = coded.coding.variables[0]
    assert not variable.unseen(coded.cells[0]).any()
    other = coded.coding.code(frame.assign(level=["new", *frame["level"][1:]])).cells[0]
    assert np.flatnonzero(variable.unseen(other)).tolist() == [0]
    assert "was not seen" in variable.remark(other, 0) and "x" not in variable.levels
    assert "level 'x' is rare in training" in variable.remark(other, len(frame) - 1)


@pytest.mark.parametrize(
    ("feature_types", "message"),
    [
        (
            {"calls": "numbers"},
            "feature_types says that column 'calls' is 'numbers'; choose number, cat",
        ),
        (
            {"call": "drop"},
            "feature_types names 'call', which is not a column of X; did you mean 'calls'?",
        ),
        ({99: "drop"}, "feature_types names 99, which is not a column of X"),
        (["calls"], r"feature_types must map columns of X to what they are, got \['calls'\]"),
        ({"contract": "number"}, "column 'contract' holds '.*' where numbers are needed"),
        ({"contract": "date"}, "column 'contract' holds '.*' where dates are needed; write them"),
    ],
)
def test_kinds_that_cannot_be_are_named(table, feature_types, message):
    with pytest.raises(ValueError, match=message):
        quiet_fit(*table, feature_types=feature_types)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop(columns="income"), "feature names|columns"),
        (lambda f: f[list(f.columns[::-1])], "feature names"),
        (lambda f: f.assign(income="high"), "column 'income' holds 'high' where numbers are"),
        (lambda f: f.assign(since="soon"), "column 'since' holds 'soon' where dates are needed"),
        (lambda f: f.assign(income=np.inf), r"'income' holds infinity \(row 1\); replace it"),
    ],
)
def test_tables_that_have_changed_are_named(table, tree, change, message):
    with pytest.raises(ValueError, match=message):
        tree.predict(change(table[0]))


def test_columns_that_the_tree_does_not_use_are_not_read(table, tree):
    frame = table[0]
    used = {tree.tree_.column_names[j] for j in tree.selected_features_}
    others = {name: "maybe" for name in frame.columns if name not in used}
    assert "paperless" in others and used
    assert_array_equal(tree.predict_proba(frame.assign(**others)), tree.predict_proba(frame))


CELL = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.floats(allow_infinity=False),
    st.sampled_from(
        ["1", "01", "1.0", " ", "", "TRUE", "<b>", "naïve", "nai\u0308ve", "x" * 10_000]
    ),
    st.sampled_from(["2020-01-01", "2020-02-31", "unknown", "other", "é", "e\u0301", "nan"]),
    st.dates(),
    st.datetimes(),
    st.text(max_size=3),
)


def drawn_table(data, n, n_columns):
    """Cells of any kind, columns of one value, and ordinary ones."""
    column = st.one_of(
        st.lists(CELL, min_size=n, max_size=n),
        CELL.flatmap(lambda cell: st.just([cell] * n)),
        st.lists(st.sampled_from(["a", "b", None]), min_size=n, max_size=n),
        st.lists(st.sampled_from([1.5, 2, None]), min_size=n, max_size=n),
    )
    cells = data.draw(st.lists(column, min_size=n_columns, max_size=n_columns))
    return pd.DataFrame({f"c{j}": pd.Series(c, dtype=object) for j, c in enumerate(cells)})


def is_one_sentence(error):
    return 10 < len(str(error)) < 500 and "\n" not in str(error)


@examples(60)
@given(st.data())
def test_any_cells_give_a_right_answer_or_one_sentence(data):
    n, n_columns = data.draw(st.integers(4, 24)), data.draw(st.integers(1, 3))
    frame = drawn_table(data, n, n_columns)
    words = ["number", "category", "date", "keep", "drop"]
    feature_types = data.draw(st.dictionaries(st.sampled_from(list(frame)), st.sampled_from(words)))
    weak = {"global_strength": 0.01, "local_strength": 0.0, "time_limit": 0.2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            tree = quiet_fit(frame, np.arange(n) % 2, feature_types=feature_types or None, **weak)
        except ValueError as error:
            assert is_one_sentence(error), error
            return
    answers = tree.predict_proba(frame)
    assert np.all(np.isfinite(answers))
    again = loads_model(dumps_model(tree))
    assert_array_equal(again.predict_proba(frame), answers)
    assert str(again.explain(frame.iloc[[0]])) == str(tree.explain(frame.iloc[[0]]))
    assert_array_equal(tree.predict_proba(frame.iloc[::-1])[::-1], answers)
    twice = pd.concat([frame, frame.iloc[:, :1]], axis=1)
    strange = [frame.iloc[:, 1:], frame.iloc[:, ::-1], twice, frame.rename(columns={"c0": "C0"})]
    for table in strange:  # a column is lost, elsewhere, there twice, or has another name
        try:
            assert_array_equal(tree.predict_proba(table), answers)
        except ValueError as error:
            assert is_one_sentence(error), error
    other = drawn_table(data, data.draw(st.integers(1, 5)), n_columns)
    try:
        assert np.all(np.isfinite(tree.predict_proba(other)))
        assert str(tree.explain(other.iloc[[0]]))  # which also reads what the tree does not use
    except ValueError as error:
        assert is_one_sentence(error), error


# --- texts that are numbers ---------------------------------------------------------------------

WRITTEN = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.text("0123456789.eE+-x \n,", max_size=6),
    st.sampled_from(
        ["007", "00", "0", "0.5", "-0", ".5", "5.", "1e5", "inf", "nan", "true", "\u0661"]
    ),
    st.none(),
)


@examples(300)
@given(st.lists(WRITTEN, max_size=6))
def test_numbers_read_together_are_those_read_one_by_one(values):
    column = pd.Series(values, dtype=object)
    together = plain_numbers(column)
    if together is None:
        return
    one_by_one = [np.nan if value is None else number_of(value) for value in values]
    assert_array_equal(together, np.array(one_by_one, dtype=float))
    assert kind_of(column) == "number"


def test_rare_and_new_levels_count_as_other():
    rng = np.random.default_rng(0)
    town = rng.choice(["Bern", "Lyon", "Oslo"], 200).astype(object)
    town[:4] = ["Rome", "Riga", "Graz", "Cork"]
    frame, y = pd.DataFrame({"town": town}), town == "Oslo"
    tree = quiet_fit(frame, y)
    assert tree.coding_.column_names == tuple(
        f"town is {level}" for level in ("Bern", "Lyon", "Oslo", "other")
    )
    new = pd.DataFrame({"town": ["Rome", "Split", None]})
    coded = tree.coding_.code(new).X
    assert coded[0].tolist() == coded[1].tolist() == [0, 0, 0, 1]
    assert coded[2].sum() == 1 and coded[2, 3] == 0  # the most frequent level
    assert "it counts as other" in tree.coding_.variables[0].remark(
        tree.coding_.code(new).cells[0], 1
    )


def test_sparse_matrices_give_the_same_answers():
    X = scipy.sparse.random(80, 6, density=0.4, random_state=0, format="csr")
    y = X.toarray()[:, 0] > 0.2
    tree, dense = quiet_fit(X, y), quiet_fit(X.toarray(), y)
    assert_array_equal(tree.predict_proba(X), dense.predict_proba(X.toarray()))
    assert str(tree.explain(X[[0]])) == str(dense.explain(X.toarray()[0]))
