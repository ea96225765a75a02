"""Cells of requirements on rates, partition by partition: those of all rows together."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from softsplit import EqualizedOdds, Parity, RateConstraint
from softsplit.engines.compiled import CompiledRows
from softsplit.engines.outer import IDENTITY
from softsplit.engines.samples import Samples
from softsplit.estimators.sensitive import find_column
from softsplit.formulations.rates import RatedTable, asked_columns, rated_rows
from softsplit.on_dask.cells import PartitionCells, cell_rows, seen_part
from softsplit.on_dask.parts import Moments, Part, Reading, added, part_summed, part_sums
from softsplit.tree.scaling import fit_scaling

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


def test_classes_and_cells_are_two_readings_of_the_same_files(tmp_path):
    X, y, weight = table()
    numbers = np.column_stack([X["a"], np.arange(len(y)) % 7, X["a"] ** 2])
    found, scaling = known_cells(X, y, weight), fit_scaling("standard", numbers, weight)
    labels = np.searchsorted(CLASSES, y)
    parts, moments = [], []
    for number, own in enumerate(np.array_split(np.arange(len(y)), 3)):
        cells = found.of(X.iloc[own], None, y[own])
        held, at = np.unique(cells[weight[own] > 0]), np.searchsorted
        places = at(held, cells).clip(max=len(held) - 1)
        samples = Samples.from_arrays(numbers[own], places, len(held), weight[own])
        parts.append(Part.write(samples, held, "f8", number, "here", tmp_path))
        moments.append(Moments.of(samples, held))
    by_cell = Moments.added(moments)
    by_class = by_cell.joined(found.rated.labels, CLASSES)
    assert_allclose(by_class.totals, np.bincount(labels, weight))
    for k in range(3):
        own = labels == k
        assert_allclose(by_class.means[k], np.average(numbers[own], axis=0, weights=weight[own]))
    assert_allclose(by_class.minmax().low, numbers[weight > 0].min(axis=0))
    rng = np.random.default_rng(1)
    splits = rng.normal(size=(3, 4))
    everywhere = [
        (Reading(by_cell.classes, scaling), found.of(X, None, y), len(by_cell.classes)),
        (Reading(by_cell.classes, scaling, joined=found.rated.labels), labels, 3),
    ]
    for reading, groups, n_groups in everywhere:
        rows = CompiledRows.from_arrays(numbers, groups, n_groups, weight, scaling.transform)
        leaf_table = rng.normal(size=(n_groups, 4))
        whole = rows.evaluate(splits, leaf_table, IDENTITY, 3.0)
        sums = added(part_sums(part, reading, splits, leaf_table, IDENTITY, 3.0) for part in parts)
        assert_allclose(sums.value, whole.value)
        assert_allclose(sums.splits, whole.splits, atol=1e-10)
        assert_allclose(sums.mass, whole.mass)
        counted = sum(part_summed(part, reading, weights_of) for part in parts)
        assert_allclose(counted, rows.group_totals)


def weights_of(samples: Samples) -> np.ndarray:
    """The weight of each group, also of those without rows in a piece."""
    return np.bincount(samples.labels, samples.weights, samples.n_groups)


def test_a_column_of_many_values_is_told_by_its_partition():
    X = pd.DataFrame({"a": np.arange(2000.0)})
    with pytest.raises(ValueError, match="has 2000 values in one partition"):
        seen_part({"a": None}, X, None, np.arange(2000) % 2, np.ones(2000))
    seen = seen_part({"a": (10.0,)}, X, None, np.arange(2000) % 2, np.ones(2000))
    assert len(seen) == 4
