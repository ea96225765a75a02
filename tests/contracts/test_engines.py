"""What every engine promises: sums over its rows, their derivatives, and facts about the rows."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from instances import ENGINES
from native_cases import make_problem
from softsplit.engines.compiled import CompiledRows
from softsplit.engines.outer import OUTERS
from softsplit.engines.registry import check_engine

pytestmark = pytest.mark.parametrize("make", ENGINES)
every_outer = pytest.mark.parametrize("outer", OUTERS)
PARTS = ("value", "splits", "mass", "table")


def drawn(depth=3):
    """Samples, splits and a table for a tree over them."""
    samples, rng = make_problem(rows=101, depth=depth).samples, np.random.default_rng(0)
    return samples, rng.uniform(-1, 1, (2**depth - 1, 5)), rng.uniform(0.1, 1, (3, 2**depth))


def assert_same_sums(found, expected, tol=1e-11):
    for name in PARTS:
        scale = np.max(np.abs(getattr(expected, name)))
        assert_allclose(getattr(found, name), getattr(expected, name), rtol=0, atol=tol * scale)


@every_outer
@pytest.mark.parametrize("steepness", [3.0, 512.0])
def test_sums_are_those_of_rows_in_memory(make, outer, steepness):
    samples, splits, table = drawn()
    expected = CompiledRows(samples).evaluate(splits, table, outer, steepness)
    assert_same_sums(make(samples).evaluate(splits, table, outer, steepness), expected)


@every_outer
def test_derivatives_are_those_of_finite_differences(make, outer):
    samples, splits, table = drawn(depth=2)
    rows, step = make(samples), 1e-5
    found = rows.evaluate(splits, table, outer, 5.0)
    for point, slopes in ((splits, found.splits), (table, found.table)):
        for index in np.ndindex(point.shape):
            ends = []
            for sign in (1, -1):
                moved = point.copy()
                moved[index] += sign * step
                given = (moved, table) if point is splits else (splits, moved)
                ends.append(rows.evaluate(*given, outer, 5.0).value)
            slope = (ends[0] - ends[1]) / (2 * step)
            assert slope == pytest.approx(slopes[index], rel=1e-5, abs=1e-5)


def test_facts_are_those_of_the_rows(make):
    samples = drawn()[0]
    rows, plain = make(samples), CompiledRows(samples)
    check_engine(rows, n_branches=3)
    for name in ("n_rows", "n_features", "n_groups"):
        assert getattr(rows, name) == getattr(plain, name)
    assert_allclose(rows.group_totals, plain.group_totals)
    assert rows.mean_weight == pytest.approx(plain.mean_weight)
    for one, other in zip(rows.metric(), plain.metric(), strict=True):
        assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    some = rows.sample(50)
    assert_allclose(some.group_totals, plain.group_totals)


@every_outer
def test_the_rows_of_the_classes_add_up_to_all_of_them(make, outer):
    samples, splits, table = drawn()
    rows = make(samples)
    parts = [rows.of_group(k).evaluate(splits, table, outer, 9.0) for k in range(3)]
    whole = rows.evaluate(splits, table, outer, 9.0)
    assert sum(part.value for part in parts) == pytest.approx(whole.value, rel=1e-9)
    assert_allclose(sum(part.splits for part in parts), whole.splits, rtol=1e-7, atol=1e-9)


@every_outer
def test_the_same_question_has_the_same_bits(make, outer):
    samples, splits, table = drawn()
    one, two = (make(samples).evaluate(splits, table, outer, 20.0) for _ in range(2))
    for name in PARTS:
        assert_array_equal(getattr(one, name), getattr(two, name))
    weighed = [make(samples).reweighed(3, 0.5).evaluate(splits, table, outer, 20.0).value] * 2
    assert weighed[0] == weighed[1] != one.value
