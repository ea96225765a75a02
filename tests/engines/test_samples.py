"""Grouping of the rows: neither their order nor their repetition may change a single bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from helpers import random_rows
from softsplit.engines.samples import DrawnRows, Samples, centred
from softsplit.support.row_budgets import ROWS

FIELDS = ["features", "starts", "weights", "group_totals"]
seeds = st.integers(0, 10**6)


def assert_same_bits(one: Samples, other: Samples):
    for field in FIELDS:
        first, second = getattr(one, field), getattr(other, field)
        assert first.shape == second.shape, field
        assert first.tobytes() == second.tobytes(), field


def rows_with_repeats(seed, n_rows=40):
    """Rows on a coarse grid, so that many are equal."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n_rows, 2)) / 2.0
    y = np.concatenate([[0, 1, 2], rng.integers(0, 3, n_rows - 3)])
    return rng, X, y


def test_rows_are_grouped_by_class_with_their_weights():
    rows = random_rows(np.random.default_rng(0), n_rows=50, n_classes=3)
    samples = rows.samples
    assert (samples.n_rows, samples.n_features, samples.n_groups) == (50, 3, 3)
    assert samples.features.flags["C_CONTIGUOUS"]
    assert_array_equal(np.diff(samples.starts), np.bincount(rows.y))
    assert_array_equal(samples.labels, np.sort(rows.y))
    expected = {(*x, y, w) for x, y, w in zip(rows.X, rows.y, rows.sample_weight, strict=True)}
    found = zip(samples.features.T, samples.labels, samples.weights, strict=True)
    assert {(*x, y, w) for x, y, w in found} == expected
    totals = np.bincount(rows.y, weights=rows.sample_weight)
    np.testing.assert_allclose(samples.group_totals, totals, rtol=1e-14)


@given(seed=seeds, whole=st.booleans())
def test_shuffling_the_rows_changes_nothing(seed, whole):
    """Sums of fractions depend on their order, so the order of equal rows is that of weights."""
    rng, X, y = rows_with_repeats(seed)
    weight = rng.choice([1.0, 2.0, 3.0, 4.0] if whole else [0.1, 0.2, 0.3, 0.7, 1e-3], len(y))
    order = rng.permutation(len(y))
    assert_same_bits(
        Samples.from_arrays(X, y, 3, weight),
        Samples.from_arrays(X[order], y[order], 3, weight[order]),
    )


@given(seed=seeds)
def test_a_weight_is_a_repetition(seed):
    rng, X, y = rows_with_repeats(seed)
    repeats = rng.integers(1, 4, len(y))
    weighted = Samples.from_arrays(X, y, 3, repeats.astype(float))
    repeated = Samples.from_arrays(np.repeat(X, repeats, axis=0), np.repeat(y, repeats), 3)
    assert_same_bits(weighted, repeated)


@given(seed=seeds)
def test_a_row_of_weight_zero_is_absent(seed):
    rng, X, y = rows_with_repeats(seed)
    weight = rng.integers(0, 3, len(y)).astype(float)
    weight[:3] = 1.0
    keep = weight > 0
    assert_same_bits(
        Samples.from_arrays(X, y, 3, weight), Samples.from_arrays(X[keep], y[keep], 3, weight[keep])
    )


def test_minus_zero_is_zero():
    """Which of two equal rows comes first must not decide the sign of a stored zero either."""
    negative = np.array([[-0.0, 0.5], [0.0, 0.5], [-0.0, 0.5], [1.0, 0.0]])
    positive = negative + 0.0
    y = np.array([0, 0, 1, 1])
    one = Samples.from_arrays(negative, y, 2)
    assert one.n_rows == 3  # equal rows are merged within a group only
    assert_same_bits(one, Samples.from_arrays(positive, y, 2))
    assert_same_bits(one, Samples.from_arrays(negative[[1, 0, 2, 3]], y, 2))


@pytest.mark.parametrize(
    ("y", "weight", "missing"),
    [
        ([0, 0, 2], [1, 1, 1], [1]),
        ([0, 1, 2], [0, 1, 0], [0, 2]),
        ([0, 1, 2], [0, 0, 0], [0, 1, 2]),
    ],
)
def test_a_class_without_rows_is_refused(y, weight, missing):
    X = np.arange(6.0).reshape(3, 2)
    with pytest.raises(ValueError) as refusal:
        Samples.from_arrays(X, np.array(y), 3, np.array(weight, dtype=float))
    message = f"groups {missing} have no sample of positive weight."
    assert str(refusal.value) == message


@given(seed=seeds)
def test_single_precision_gives_the_same_bits_as_the_same_numbers_in_double(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 3)).astype(np.float32)
    X[rng.integers(0, 30, 10)] = X[0]
    y = np.concatenate([[0, 1], rng.integers(0, 2, 28)])

    def halve(rows):
        assert rows.dtype == np.float64
        return rows / 3.0

    single = Samples.from_arrays(X, y, 2, transform=halve)
    assert_same_bits(single, Samples.from_arrays(X.astype(float), y, 2, transform=halve))
    assert single.features.dtype == np.float64


def test_few_rows_of_each_class_are_its_first():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [ROWS.group_centre + 50, 7, ROWS.group_centre])
    samples = Samples.from_arrays(rng.uniform(size=(len(y), 2)), y, 3, rng.uniform(1, 2, len(y)))
    few = samples.group_samples
    assert np.diff(few.starts).tolist() == [ROWS.group_centre, 7, ROWS.group_centre]
    kept = np.r_[: ROWS.group_centre, ROWS.group_centre + 50 : samples.n_rows]
    np.testing.assert_array_equal(few.features, samples.features[:, kept])
    np.testing.assert_array_equal(few.weights, samples.weights[kept])
    np.testing.assert_allclose(few.group_totals[1:], samples.group_totals[1:])
    assert few.group_samples is few


@pytest.mark.parametrize("single", [False, True])
def test_drawn_rows_are_the_stratified_sample_without_its_features(single):
    rows = random_rows(np.random.default_rng(3), n_rows=300, n_classes=3).samples
    if single:
        rows = Samples(rows.features.astype(np.float32), *(getattr(rows, f) for f in FIELDS[1:]))
    copied, drawn = rows.stratified(90), rows.drawn(90)
    assert isinstance(drawn, DrawnRows)
    assert drawn.source is rows
    for name in ("starts", "weights", "labels"):
        assert_array_equal(getattr(drawn, name), getattr(copied, name))
    columns = np.array([2, 0])
    assert_array_equal(drawn.lines(columns), copied.features[columns])
    assert_array_equal(centred(drawn, 3.0), centred(copied, 3.0))
    assert_array_equal(centred(drawn, 3.0, columns), 3.0 * (copied.features[columns] - 0.5))
    assert rows.drawn(300) is rows
    totals = np.array([1.0, 2.0, 3.0])
    assert_array_equal(drawn.with_totals(totals).weights, copied.with_totals(totals).weights)
    once, again = (part.with_weights(2.0 * part.weights) for part in (drawn, copied))
    assert_array_equal(once.lines(columns), again.features[columns])
    assert_array_equal(once.weights, again.weights)
