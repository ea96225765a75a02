"""Look-ups: their values, how they are counted, and round numbers."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsplit.points.cells import cells_of
from softsplit.points.readable import readable_counts, readable_cuts, readable_widths, roundest
from softsplit.variables import Coding, Variable
from softsplit.variables.lookup import Counts, Lookup, counted_edges
from softsplit.variables.variable import Cells

NUMBERS = np.array([-5.0, 0.0, 19.9, 20.0, 25.0, 40.0, 99.0])
NONE = np.zeros(len(NUMBERS), dtype=bool)


@pytest.mark.parametrize(
    ("lookup", "points"),
    [
        (Lookup(points=(0, 2, 1), edges=(20.0, 40.0)), [0, 0, 0, 2, 2, 1, 1]),
        (Lookup(points=(3,)), [3] * 7),
        (Lookup(points=(0, 1, 2, 3), edges=counted_edges(0.0, 20.0, 3)), [0, 0, 0, 1, 1, 2, 3]),
        (Lookup(slopes=(1, 3), knots=(20.0,), unit=10.0), [-0.5, 0, 1.99, 2, 3.5, 8, 25.7]),
    ],
)
def test_points_of_numbers(lookup, points):
    np.testing.assert_allclose(lookup.values(NUMBERS, NONE), points, atol=1e-12)


def test_levels_and_missing_values_have_points_of_their_own():
    lookup = Lookup(points=(2, 0, 5), unknown=7)
    missing = np.array([False, False, True])
    np.testing.assert_array_equal(lookup.values(np.array([2.0, 0.0, 1.0]), missing), [5, 2, 7])
    without = Lookup(points=(2, 0, 5))
    np.testing.assert_array_equal(without.values(np.array([1.0]), np.ones(1, dtype=bool)), [0])


def test_even_steps_are_counts_and_others_are_not():
    even = Lookup(points=(0, 2, 4, 6), edges=counted_edges(0.1, 0.2, 3))
    assert even.edges == (0.3, 0.5, 0.7)
    assert even.counts == Counts(start=0.1, width=0.2, each=2, steps=3)
    assert Lookup(points=(0, 2, 4, 5), edges=even.edges).counts is None
    assert Lookup(points=(0, 1, 2), edges=(1.0, 2.0)).counts is None


@pytest.mark.parametrize(
    ("lookup", "direction"),
    [
        (Lookup(points=(0, 0, 2), edges=(1.0, 2.0)), 1),
        (Lookup(points=(2, 1, 0), edges=(1.0, 2.0)), -1),
        (Lookup(points=(0, 2, 1), edges=(1.0, 2.0)), 0),
        (Lookup(slopes=(2, 0), knots=(1.0,)), 1),
    ],
)
def test_direction_of_points(lookup, direction):
    assert lookup.direction == direction


@given(st.floats(-1e6, 1e6, allow_nan=False), st.floats(1e-6, 1e6, allow_nan=False))
def test_the_roundest_number_lies_between(low, width):
    high = low + width
    number = roundest(low, high)
    assert low <= number <= high


def test_cuts_and_counts_of_values():
    values = np.sort(np.random.default_rng(0).normal(100.0, 30.0, 500))
    cuts = readable_cuts(values)
    assert 5 <= len(cuts) <= 9
    assert all(len(f"{cut:g}") <= 5 for cut in cuts)
    assert set(readable_widths(values)) <= {1.0, 2.0, 5.0, 10.0, 20.0, 50.0}
    assert all(start % width == 0 and steps >= 3 for start, width, steps in readable_counts(values))
    assert readable_cuts(np.array([1.0, 2.0, 4.0, 4.0])) == [2.0, 4.0]
    assert readable_cuts(np.ones(5)) == []
    assert readable_widths(np.repeat([1.0, 2.0], 5)) == []


def test_values_have_no_errors_of_their_scaling():
    values = 0.1 + (np.tile([0.0, 1.0, 2.0, 3.0], 5) - 0.1) + 2e-16
    column = cells_of(Variable("rooms", "number", 1.0), Cells.of(values))
    assert column.edges.tolist() == [1.0, 2.0, 3.0]
    assert column.sizes.tolist() == [5, 5, 5, 5, 0]
    constant = cells_of(Variable("rooms", "number", 1.0), Cells.of(np.ones(5)))
    assert constant.n_cells == 1


def test_a_table_in_points_has_a_column_for_each_look_up():
    variables = (
        Variable("age", "number", 40.0, True),
        Variable("colour", "category", 0.0, False, ("red", "blue"), other=True),
        Variable("unused", "number", 0.0),
    )
    coding = Coding(("age", "colour", "unused"), variables, (0, 1, 2))
    age = Lookup(points=(0, 3), edges=(30.0,), unknown=1)
    pointed = coding.with_lookups({1: [Lookup(points=(4, 0, 2))], 0: [age, Lookup(slopes=(2,))]})
    table = pd.DataFrame({"age": [20.0, None, 31.0], "colour": ["red", "blue", "green"]})
    rows = pointed.code(table.assign(unused=0.0))
    np.testing.assert_array_equal(rows.X, [[0, 40, 4, 0], [1, 80, 0, 0], [3, 62, 2, 0]])
    assert pointed.column_names == (
        "points of age", "points of age (2)", "points of colour", "unused",
    )  # fmt: skip
    assert not pointed.plain
    assert not np.any(pointed.hinges | pointed.indicators)


@pytest.mark.parametrize(
    ("variable", "cells"),
    [
        (Variable("age", "number", 40.0, True), ["3.5", None, "0"]),
        (Variable("age", "number", 40.0, knots=(5.0,)), ["3.5", "7", "0"]),
        (Variable("size", "ordered", 1.0, True, ("s", "m", "l")), ["l", None, "s"]),
        (Variable("on", "category", 0.0, False, ("no", "yes"), whole=False), ["yes", "no", "no"]),
        (Variable("hue", "category", 0.0, True, ("r", "g"), other=True), ["g", None, "x"]),
    ],
)
def test_decoded_cells_have_the_same_columns(variable, cells):
    column = pd.Series(cells, dtype=object)
    coded = variable.coded(variable.cells(column))
    np.testing.assert_array_equal(variable.coded(variable.decoded(coded)), coded)
    lookup = Lookup(points=(1, 2, 5)) if variable.kind == "category" else Lookup(slopes=(1,))
    pointed = replace(variable, lookups=(replace(lookup, unknown=7 * variable.has_missing),))
    decoded = pointed.coded(variable.decoded(coded))
    np.testing.assert_array_equal(decoded, pointed.coded(variable.cells(column)))


def test_even_steps_end_at_decimal_numbers():
    """Floats would put an edge at 1.1e-16, and a value of 0 below it."""
    edges = counted_edges(-0.6, 0.1, 12)
    assert edges[5] == 0.0 and edges[-1] == 0.6 and edges[0] == -0.5
    counts = Lookup(tuple(range(6, -1, -1)), counted_edges(-0.1, 0.1, 6)).counts
    assert counts == (-0.1, 0.1, -1, 6)
