"""Named data sets: from a folder with a manifest, or those bundled with scikit-learn."""

from __future__ import annotations

import json

import numpy as np
import pytest

from softsplit.data import BUNDLED, load_dataset

PAINT = """width,colour,code,grade
1.5,red,2,poor
2.0,blue,10,good
0.5,red,1,fair
3.0,green,2,good
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A manifest of two sets: columns of text and of numbers that are categories, and neither."""
    (tmp_path / "paint.csv").write_text(PAINT)
    (tmp_path / "plain.csv").write_text("a,b,class\n1,2,0\n3,4,1\n")
    entries = [
        {"name": "paint", "file": "paint.csv", "categorical": ["colour", "code"]},
        {"name": "plain", "file": "plain.csv", "categorical": []},
    ]
    (tmp_path / "datasets.json").write_text(json.dumps({"datasets": entries}))
    monkeypatch.setenv("SOFTSPLIT_DATA", str(tmp_path))
    return tmp_path


WHOLE = [
    [1.5, 0, 0, 1, 0, 0, 1],
    [2.0, 1, 0, 0, 0, 1, 0],
    [0.5, 0, 0, 1, 1, 0, 0],
    [3.0, 0, 1, 0, 0, 0, 1],
]
"""The set "paint" with an indicator for each level: blue, green, red; 1, 10, 2."""


@pytest.mark.parametrize(
    ("coding", "names", "columns"),
    [
        ("onehot", "colour=blue colour=green colour=red code=1 code=10 code=2", [1, 2, 3, 4, 5, 6]),
        ("drop-first", "colour=green colour=red code=10 code=2", [2, 3, 5, 6]),
        ("binary-once", "colour=blue colour=green colour=red code=1 code=10 code=2", range(1, 7)),
    ],
)
def test_levels_become_columns_sorted_as_text(folder, coding, names, columns):
    data = load_dataset("paint", coding)
    assert data.name == "paint" and data.X.dtype == float
    assert data.feature_names == ("width", *names.split())
    np.testing.assert_array_equal(data.X, np.array(WHOLE)[:, [0, *columns]])


@pytest.mark.parametrize("coding", ["onehot", "drop-first", "none"])
def test_numbers_need_no_coding(folder, coding):
    data = load_dataset("plain", coding)
    assert data.feature_names == ("a", "b")
    np.testing.assert_array_equal(data.X, [[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(ValueError, match="red"):
        load_dataset("paint", "none")


def test_classes_are_text_in_sorted_order_and_rows_keep_theirs(folder):
    data = load_dataset("paint")
    assert data.y.tolist() == ["poor", "good", "fair", "good"]
    assert data.class_names == ("fair", "good", "poor")
    assert load_dataset("plain").class_names == ("0", "1")


@pytest.mark.parametrize(
    ("home", "name", "sentence"),
    [
        ("empty", "iris", r"empty.* holds no datasets\.json; point it to"),
        ("", "rust", r"'rust' is not in datasets\.json.*paint, plain"),
        ("", "iris", "'iris' is not in"),  # the folder goes before the bundle
        (None, "rust", r"'rust' is not bundled \(bundled: digits, iris.*SOFTSPLIT_DATA"),
        (None, "ozone", "'ozone' cannot be fetched from OpenML.*another"),
    ],
)
def test_a_set_that_is_not_there_says_where_it_could_come_from(
    folder, monkeypatch, home, name, sentence
):
    (folder / "empty").mkdir()
    if home is None:
        monkeypatch.delenv("SOFTSPLIT_DATA")
    else:
        monkeypatch.setenv("SOFTSPLIT_DATA", str(folder / home))
    with pytest.raises(FileNotFoundError, match=sentence):
        load_dataset(name)


@pytest.mark.parametrize(
    ("name", "shape", "classes"),
    [
        ("iris", (150, 4), ("setosa", "versicolor", "virginica")),
        ("wine", (178, 13), ("class_0", "class_1", "class_2")),
        ("wdbc", (569, 30), ("benign", "malignant")),
        ("digits", (1797, 64), tuple("0123456789")),
    ],
)
def test_bundled_sets_need_no_folder(name, shape, classes, monkeypatch):
    monkeypatch.delenv("SOFTSPLIT_DATA", raising=False)
    data = load_dataset(name)
    assert (data.name, data.X.shape, data.class_names) == (name, shape, classes)
    assert len(data.feature_names) == shape[1]
    assert set(data.y) == set(classes)
    assert name in BUNDLED
