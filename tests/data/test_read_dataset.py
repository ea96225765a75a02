"""Tables of the user's own."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsplit.data import Table, learn, read_dataset, read_table
from softsplit.variables.contents import text_of
from tables import people

TEXT = """age,town,smoker,risk
31,Lyon,True,low
44,Oslo,False,high
58,Lyon,True,high
29,Bern,False,low
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(TEXT)
    return path


def frame():
    return pd.DataFrame(
        {
            "age": [31, 44, 58, 29],
            "town": ["Lyon", "Oslo", "Lyon", "Bern"],
            "smoker": [True, False, True, False],
            "risk": ["low", "high", "high", "low"],
        }
    )


def check(data, name):
    assert data.name == name
    assert data.feature_names == (
        "age", "town=Bern", "town=Lyon", "town=Oslo", "smoker=False", "smoker=True",
    )  # fmt: skip
    np.testing.assert_array_equal(data.X[0], [31, 0, 1, 0, 0, 1])
    assert data.y.tolist() == ["low", "high", "high", "low"]
    assert data.class_names == ("high", "low")


def test_files_and_frames(path):
    check(read_dataset(path, "risk"), "people")
    check(read_dataset(str(path), "risk", name="mine"), "mine")
    path.with_name("t.tsv").write_text(TEXT.replace(",", "\t"))
    check(read_dataset(path.with_name("t.tsv"), "risk"), "t")
    path.with_name("z.csv.gz").write_bytes(gzip.compress(TEXT.encode()))
    check(read_dataset(path.with_name("z.csv.gz"), "risk"), "z")
    frame().to_parquet(path.with_name("p.parquet"))
    check(read_dataset(path.with_name("p.parquet"), "risk"), "p")
    for table in (frame(), pl.DataFrame(frame().to_dict("list"))):
        check(read_dataset(table, "risk"), "frame")


def test_missing_values_are_counted_by_column(path):
    path.write_text(TEXT + ",Rome,True,low\n40,?,True,low\n41,,False,low\n")
    with pytest.raises(ValueError, match=r"missing in column 'age' \(1\), 'town' \(2\); fill"):
        read_dataset(path, "risk")
    data = read_dataset(path, "risk", missing="drop")
    assert len(data.y) == 4 and data.dropped_rows == 3


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {"target": "rsk"}, "target 'rsk' is not a column of the table; did you mean 'risk'?"),
        (
            {},
            {"target": "xyz"},
            "'xyz' is not a column of the table; there are: age, town, smoker, risk",
        ),
        ({}, {"categorical": ["twn"]}, "column 'twn' is missing; did you mean"),
        ({}, {"categorical": ["risk"]}, "target 'risk' cannot be a feature as well"),
        ({}, {"missing": "guess"}, "missing must be 'refuse' or 'drop', got 'guess'"),
        ({}, {"coding": "hot"}, "coding 'hot' is unknown"),
        ({"risk": ["low"] * 4}, {}, "target 'risk' has only one class"),
        (
            {"risk": [0.5, 1.5, 0.5, 2.0]},
            {},
            "target 'risk' holds decimal numbers; a classifier needs classes",
        ),
        ({"age": [1.0, np.inf, 2.0, 3.0]}, {}, "column 'age' holds infinity (row 2); replace"),
        ({"age": pd.to_datetime(["2020-01-01"] * 4)}, {}, "column 'age' holds dates"),
    ],
)
def test_what_cannot_be_used_is_named(change, options, message):
    table = frame().assign(**change)
    with pytest.raises(ValueError) as error:
        read_dataset(table, **{"target": "risk", **options})
    assert message in str(error.value)


IDS = pd.DataFrame({"id": [f"p{i}" for i in range(80)], "y": [0, 1] * 40, "x": range(80)})
TWICE = pd.DataFrame([[1, 2, 0]], columns=["a", "a", "y"])


@pytest.mark.parametrize(
    ("source", "target", "error", "message"),
    [
        ("none.csv", "y", FileNotFoundError, "there is no file"),
        ("x.doc", "y", ValueError, r"'x\.doc' is of no known kind; give a \.csv"),
        (3, "y", ValueError, "source must be a path or a frame, got int"),
        (TWICE, "y", ValueError, "several columns named 'a'"),
        (IDS, "y", ValueError, "column 'id' holds 80 different texts in 80 rows"),
        (frame().head(0), "risk", ValueError, "the table has no rows"),
        (frame().assign(age=[None] * 4), "risk", ValueError, "no row is left: every one has a"),
        (frame()[["risk"]], "risk", ValueError, "has no feature beside its target"),
    ],
    ids=range(8),
)
def test_tables_that_cannot_be_used_are_named(tmp_path, source, target, error, message):
    (tmp_path / "x.doc").write_text("")
    source = tmp_path / source if isinstance(source, str) else source
    with pytest.raises(error, match=message):
        read_dataset(source, target, missing="drop")


@pytest.mark.parametrize(
    ("rows", "short"),
    [
        ("1,2,3\n4,5\n", 1),
        ('1,"x\ny",3\n4,5\n', 1),
        ('1,"x,y",\n4,5,6\n7\n8\n', 2),
        ("1,2,\r\n\r\n4,5\r\n6\r\n", 2),
        ("1,2,3,\n4,5\n", 1),  # as many commas as two whole rows have
        ("1,2,3,\n4,5,6,\n\n  \n7,,,\n", 0),
        ("1,2,NA\n4,,\n,,\n", 0),
    ],
)
def test_fields_that_a_row_lacks_at_its_end_are_missing_values(rows, short, tmp_path):
    file = tmp_path / "t.csv.gz"
    file.write_bytes(gzip.compress(f"a,b,c\n{rows}".encode()))
    table = read_table(file)
    assert table.frame["c"].isna().any()
    have = "1 row has" if short == 1 else f"{short} rows have"
    told = f"{have} fewer fields than the first line; the last fields count as missing values."
    assert table.notes == ((told,) if short else ())


def test_a_saved_index_is_left_out(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text(",x,y\n0,1,a\n1,2,b\n2,3,a\n")
    table = read_table(file)
    assert list(table.frame.columns) == ["x", "y"]
    assert len(table.notes) == 1 and "counts the rows" in table.notes[0]
    file.write_text(",x,y\n0,1,a\n5,2,b\n2,3,a\n")
    with pytest.raises(ValueError, match=r"column 1 of t\.csv has no name"):
        read_table(file)


def test_typed_columns_and_text_are_coded_alike():
    frame = people().assign(smoker=lambda t: t["smoker"] == "TRUE")
    typed = learn(Table("t", frame), "risk")
    text = learn(Table("t", frame.astype(str)), "risk")
    np.testing.assert_array_equal(typed.matrix, text.matrix)
    assert typed.coding == text.coding


@given(st.one_of(st.integers(-(10**6), 10**6), st.floats(-1e6, 1e6)))
def test_whole_numbers_are_one_level_however_they_are_stored(value):
    assert text_of(float(int(value))) == text_of(int(value)) == str(int(value))


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"]), min_size=1, max_size=6),
            st.integers(-1000, 1000),
        ),
        min_size=2,
        max_size=8,
    ),
    st.sampled_from([",", ";", "\t", "|"]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_any_quoted_text_is_read_as_it_was_written(tmp_path_factory, rows, separator, end):
    frame = pd.DataFrame(rows, columns=["name", "value"])
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    frame.to_csv(path, index=False, sep=separator, lineterminator=end, quoting=1)
    read = read_table(path).frame
    assert list(read.columns) == ["name", "value"] and len(read) == len(frame)
    for given_text, found in zip(frame["name"], read["name"], strict=True):
        assert pd.isna(found) or found == given_text
    assert [int(v) for v in read["value"]] == frame["value"].tolist()
