"""The schema of a table: learned once, kept in the model file, and checked when it is read."""

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
from softsplit.data.schema import SCHEMA_CODINGS
from softsplit.persistence import ModelFileError
from tables import people


@pytest.fixture(scope="module")
def document():
    data = learn(Table("people", people().astype(str)), "risk")
    frame = pd.DataFrame(data.X, columns=list(data.schema.feature_names))
    tree = SoftTreeClassifier(depth=1, n_starts=1, random_state=0).fit(frame, data.y)
    tree.input_schema_ = data.schema
    return json.loads(dumps_model(tree))


def test_a_model_file_keeps_the_schema(document):
    tree = loads_model(json.dumps(document))
    assert json.loads(dumps_model(tree)) == document
    town = tree.input_schema_.columns[1]
    assert (town.name, town.levels) == ("town", ("Bern", "Lyon", "Oslo"))
    path = files("softsplit.persistence").joinpath("model-1.schema.json")
    jsonschema.validate(document, json.loads(path.read_text()))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(target=3), "input.target of the model file must be a string"),
        (lambda d: d.update(coding="none"), "input.coding of the model file is unknown: 'none'"),
        (lambda d: d.update(missing="guess"), "input.missing of the model file is unknown"),
        (lambda d: d.update(more=1), "input of the model file has an unknown key 'more'"),
        (lambda d: d.update(target="age"), "input of the model file names a column twice"),
        (lambda d: d["columns"].pop(), "does not fit the features of its tree"),
        (lambda d: d["columns"][1]["levels"].append("Rome"), "does not fit the features"),
        (lambda d: d["columns"][1].update(levels=[]), "must be distinct, at least one"),
        (lambda d: d["columns"][1].update(fill="Rome"), "fill of the model file is none of"),
        (lambda d: d["columns"][0].update(fill="old"), "must be a number, not 'old'"),
    ],
)
def test_a_schema_that_does_not_hold_is_refused(document, change, message):
    broken = json.loads(json.dumps(document))
    change(broken["input"])
    with pytest.raises(ModelFileError) as error:
        loads_model(json.dumps(broken))
    assert message in str(error.value)


@pytest.mark.parametrize("coding", SCHEMA_CODINGS)
def test_coding_again_gives_the_same_rows(coding):
    table = Table("people", people().astype(str))
    data = learn(table, "risk", coding=coding)
    assert data.X.shape == (60, len(data.schema.feature_names))
    np.testing.assert_array_equal(data.schema.code(table).X, data.X)
    backwards = Table("people", table.frame[table.frame.columns[::-1]])
    np.testing.assert_array_equal(data.schema.code(backwards).X, data.X)


def test_typed_columns_and_text_are_coded_alike():
    frame = people().assign(smoker=lambda t: t["smoker"] == "TRUE")
    typed = learn(Table("t", frame), "risk")
    text = learn(Table("t", frame.astype(str)), "risk")
    np.testing.assert_array_equal(typed.X, text.X)
    assert typed.schema == text.schema


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
