"""Cells of requirements on rates, partition by partition: those of all rows together."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from softsplit import EqualizedOdds, Parity, RateConstraint
from softsplit.estimators.sensitive import find_column
from softsplit.formulations.rates import RatedTable, asked_columns, rated_rows
from softsplit.on_dask.cells import PartitionCells, cell_rows, seen_part

CLASSES = np.array(["n", "o", "y"])

REQUIRED = [
    Parity("a", 0.1, cut=0.5),
    EqualizedOdds("s", 0.1),
    RateConstraint(("a", "<=", -0.2), "y", at_least=0.1),
    RateConstraint(("s", "q"), "n", at_most=0.9, given="n"),
]


def table(n_rows: int = 600):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=n_rows), "s": rng.choice(["p", "q", None], n_rows)})
    weight = 1.0 + np.arange(n_rows) % 3
    weight[::50] = 0.0
    return X, rng.choice(CLASSES, n_rows), weight


def known_cells(X, y, weight) -> PartitionCells:
    asked = asked_columns(REQUIRED)
    assert asked == {"a": (0.5, -0.2), "s": None}
    thirds = np.array_split(np.arange(len(y)), 3)
    seen = [seen_part(asked, X.iloc[own], None, y[own], weight[own]) for own in thirds]
    return cell_rows(asked, seen, REQUIRED, CLASSES, np.zeros(len(CLASSES)))


def test_cells_of_partitions_are_those_of_all_rows():
    X, y, weight = table()
    found = known_cells(X, y, weight)
    labels = np.searchsorted(CLASSES, y).astype(np.int64)
    columns = find_column(X, None, len(y))
    whole = rated_rows(REQUIRED, RatedTable(labels, CLASSES, weight, columns), np.zeros(3))
    counted = weight > 0
    cells = found.of(X, None, y)
    assert_array_equal(found.rated.labels[cells[counted]], labels[counted])
    assert np.all(np.diff(found.rated.labels) >= 0)  # a class is a run of cells
    pairs = set(zip(cells[counted], whole.cells[counted], strict=True))
    assert len(pairs) == len(np.unique(whole.cells[counted])) == len(found.rated.labels)
    for mine, theirs in zip(found.rated.requirements, whole.requirements, strict=True):
        assert (mine.name, mine.of, mine.low, mine.high) == (
            theirs.name, theirs.of, theirs.low, theirs.high,
        )  # fmt: skip
        for own, other in zip(mine.groups, theirs.groups, strict=True):
            assert own.name == other.name
            assert_array_equal(
                np.isin(cells, own.cells)[counted], np.isin(whole.cells, other.cells)[counted]
            )


def test_a_column_of_many_values_is_told_by_its_partition():
    X = pd.DataFrame({"a": np.arange(2000.0)})
    with pytest.raises(ValueError, match="has 2000 values in one partition"):
        seen_part({"a": None}, X, None, np.arange(2000) % 2, np.ones(2000))
    seen = seen_part({"a": (10.0,)}, X, None, np.arange(2000) % 2, np.ones(2000))
    assert len(seen) == 4
