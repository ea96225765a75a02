"""The section "table" of model files: written, read and checked."""

from __future__ import annotations

import json
from importlib.resources import files

import jsonschema
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsplit import SoftTreeClassifier, dumps_model, loads_model
from softsplit.data import Table, learn, read_table
from softsplit.variables.contents import text_of
from tables import people

SCHEMA = json.loads(files("softsplit.persistence").joinpath("model-1.schema.json").read_text())


@pytest.fixture(scope="module")
def document():
    frame = people()
    frame.loc[4, "age"] = np.nan
    X, y = frame.drop(columns="risk"), frame["risk"]
    feature_types = {"height": "drop"}
    tree = SoftTreeClassifier(depth=1, n_starts=1, random_state=0, feature_types=feature_types).fit(
        X, y
    )
    return json.loads(dumps_model(tree))


def test_a_model_file_keeps_the_table(document):
    tree = loads_model(json.dumps(document))
    assert json.loads(dumps_model(tree)) == document
    town = tree.coding_.variables[1]
    assert (town.name, town.levels) == ("town", ("Bern", "Lyon", "Oslo"))
    assert tree.coding_.left_out == (("height", "drop"),) and tree.tree_.target == "risk"
    jsonschema.validate(document, SCHEMA)


def test_coding_again_gives_the_same_rows():
    table = Table("people", people().astype(str))
    data = learn(table, "risk")
    assert data.matrix.shape == (60, 6)
    np.testing.assert_array_equal(data.coding.code(table.frame).X, data.matrix)
    backwards = table.frame[table.frame.columns[::-1]]
    np.testing.assert_array_equal(data.coding.code(backwards).X, data.matrix)


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
