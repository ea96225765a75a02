"""Rows on a device, on the one that every machine has: sums against the compiled engine."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch (softsplit[gpu]) is not installed")

from softsplit import SoftTreeClassifier  # noqa: E402
from softsplit.engines.compiled import CompiledRows  # noqa: E402
from softsplit.engines.outer import IDENTITY, LOGARITHM, OUTERS  # noqa: E402
from softsplit.engines.samples import Samples  # noqa: E402
from softsplit.fitted.summary import FeatureSummary  # noqa: E402
from softsplit.fitted.walk import Walk  # noqa: E402
from softsplit.on_torch.arrival import arrive  # noqa: E402
from softsplit.on_torch.grouping import grouped_samples  # noqa: E402
from softsplit.on_torch.rows import DeviceRows  # noqa: E402
from softsplit.support.hinged_table import HingedTable  # noqa: E402
from softsplit.tree.scaling import fit_scaling  # noqa: E402
from softsplit.variables import bent_matrix  # noqa: E402
from softsplit.variables.lookup import Lookup, LookupColumn  # noqa: E402

CPU = torch.device("cpu")


def draw(seed, n_rows=500, n_features=5, n_classes=3, depth=2):
    """Samples, splits and a table."""
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(size=(n_rows, n_features)), rng.integers(0, n_classes, n_rows)
    samples = Samples.from_arrays(X, y, n_classes, rng.uniform(0.5, 2.0, n_rows))
    splits = rng.normal(size=(2**depth - 1, n_features + 1))
    return samples, splits, rng.dirichlet(np.ones(n_classes), 2**depth).T.copy()


def close(found, expected, tol):
    for part in ("value", "splits", "mass", "table"):
        a, b = np.asarray(getattr(found, part)), np.asarray(getattr(expected, part))
        assert np.max(np.abs(a - b)) <= tol * np.max(np.abs(b)), part


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("outer", OUTERS)
def test_sums_in_single_precision_are_close_to_those_of_the_compiled_engine(depth, outer):
    """Those in double precision are in contracts/test_engines.py."""
    samples, splits, table = draw(0, depth=depth)
    expected = CompiledRows(samples).evaluate(splits, table, outer, 20.0)
    close(
        DeviceRows.of(samples, CPU, single=True).evaluate(splits, table, outer, 20.0),
        expected,
        1e-4,
    )


def test_slabs_make_no_difference():
    samples, splits, table = draw(2, n_rows=6000)
    whole = DeviceRows.of(samples, CPU)
    parts = DeviceRows.of(samples, CPU, room=200_000)
    assert len(whole.slabs) == 1 and len(parts.slabs) > 2
    for one, other in (
        (parts, whole),
        (parts.of_group(1), whole.of_group(1)),
        (parts.reweighed(3, 0.5), CompiledRows(samples).reweighed(3, 0.5)),
    ):
        close(
            one.evaluate(splits, table, IDENTITY, 9.0),
            other.evaluate(splits, table, IDENTITY, 9.0),
            1e-12,
        )


@pytest.mark.parametrize("weighted", [False, True])
def test_samples_made_on_a_device_are_the_same_to_the_bit(weighted):
    rng = np.random.default_rng(5)
    X = rng.integers(-2, 3, size=(25_000, 4)).astype(np.float32) * 0.37
    X[::2] += rng.normal(size=(12_500, 4)).astype(np.float32)
    X[::7] = -0.0
    y = rng.integers(0, 3, len(X))
    weight = rng.choice([0.0, 0.5, 1.0, 0.3], len(X)) if weighted else np.ones(len(X))
    scaling = fit_scaling("standard", X[weight > 0], weight[weight > 0])
    expected = Samples.from_arrays(X, y, 3, weight, scaling.transform, stay_single=True)
    found = grouped_samples(X, y, 3, weight, scaling, CPU, stay_single=True)
    assert found.features.dtype == np.float32 and found.n_rows < np.sum(weight > 0)
    for part in ("features", "starts", "weights", "group_totals"):
        np.testing.assert_array_equal(getattr(found, part), getattr(expected, part))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["standard", "minmax"])
def test_rows_that_arrive_are_measured_and_scaled_to_the_bit(kind, weighted):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(60_000, 4)).astype(np.float32)
    X[:, 1], X[:, 2], X[:, 3] = rng.integers(0, 9, len(X)), X[:, 2] > 0, 7.0
    X[:100] = X[100:200]
    y, weight = rng.integers(0, 3, len(X)), np.ones(len(X))
    if weighted:
        weight = rng.choice([0.5, 1.0, 0.3], len(X))
    found = arrive(X, y, 3, weight, kind, CPU, counts=weight)
    scaling = fit_scaling(kind, X, weight)
    expected = Samples.from_arrays(X, y, 3, weight, scaling.transform, stay_single=True)
    for part in ("low", "span"):
        np.testing.assert_array_equal(getattr(found.scaling, part), getattr(scaling, part))
    few, some = found.rows.sample(1000), expected.stratified(1000)
    assert "features" not in vars(found.rows.samples)  # nothing else came back
    for one, other in ((few, some), (found.rows.samples, expected)):
        for part in ("features", "starts", "weights", "group_totals"):
            np.testing.assert_array_equal(getattr(one, part), getattr(other, part))
    summary = FeatureSummary.of(X, weight, expected.mean)
    told = FeatureSummary.known(found.low, found.high, found.scaled_mean, found.whole)
    for part in ("low", "high", "kinds"):
        np.testing.assert_array_equal(getattr(told, part), getattr(summary, part))
    np.testing.assert_allclose(told.scaled_mean, summary.scaled_mean, rtol=1e-6)


@pytest.mark.parametrize("knots", [0, 3])
def test_rows_walk_where_they_are(knots):
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(60_000, 3)), rng.integers(0, 2, 60_000)
    weight = 1.0 + np.arange(len(X)) % 3
    table = bent_matrix(X, None, knots, weight).X if knots else X
    found = arrive(table, y, 2, weight, "standard", CPU, counts=weight)
    n = table.shape[1]
    coefficients = np.round(rng.normal(size=(3, n)), 2) * (rng.random((3, n)) < 0.6)
    walk = Walk(
        coefficients, np.array([0.1, -0.3, 0.2]), np.array([True, False, True]),
        np.zeros(3, dtype=bool), np.zeros((2, 4)), np.zeros(4, dtype=np.intp),
    )  # fmt: skip
    expected = np.zeros((2, 4))
    np.add.at(expected, (y, walk.leaves(np.asarray(table), found.scaling)), weight)
    counts = found.rows.arriving(walk, found.scaling)
    assert np.array_equal(counts, expected) and np.count_nonzero(counts) > 4


@pytest.mark.parametrize("knots", [0, 3])
def test_rows_walk_in_points_where_they_are(knots):
    """Rounded values lie on the edges of steps, also where they are restored from scaled ones."""
    rng = np.random.default_rng(9)
    X, y = np.round(rng.normal(size=(60_000, 2)), 1), rng.integers(0, 2, 60_000)
    table = bent_matrix(X, None, knots, np.ones(len(X))).X if knots else X
    found = arrive(table, y, 2, np.ones(len(X)), "standard", CPU, counts=np.ones(len(X)))
    steps = Lookup(points=(0, 2, 3), edges=(-0.3, 0.7))
    slopes = Lookup(slopes=(1, 3), knots=(0.2,), unit=0.5)
    lookups = [LookupColumn(steps, 0, None), LookupColumn(slopes, (1 + knots), None)]
    walk = Walk(
        np.ones((1, 2)), np.array([2.0]), np.ones(1, dtype=bool), np.zeros(1, dtype=bool),
        np.zeros((2, 2)), np.zeros(2, dtype=np.intp),
    )  # fmt: skip
    points = np.column_stack([steps.values(X[:, 0]), slopes.values(X[:, 1])])
    expected = np.zeros((2, 2))
    np.add.at(expected, (y, walk.leaves(points, found.scaling)), 1.0)
    counts = found.rows.arriving(walk, found.scaling, lookups)
    assert np.array_equal(counts, expected) and np.all(counts > 0)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_rows_that_bend_arrive_without_their_hinges(kind):
    """Values lie far from zero, where single precision has few digits to lose."""
    rng = np.random.default_rng(7)
    X = (2000.0 + rng.normal(size=(60_000, 3))).astype(kind)
    y, weight = rng.integers(0, 3, len(X)), np.ones(len(X))
    table = bent_matrix(X, None, 3, weight).X
    assert isinstance(table, HingedTable)
    found = arrive(table, y, 3, weight, "standard", CPU, counts=weight)
    scaling = fit_scaling("standard", table, weight)
    expected = Samples.from_hinged(table, y, 3, weight, scaling)
    assert np.array_equal(found.scaling.span, scaling.span)
    assert found.rows.slabs[0].features.shape[0] == 3 and found.rows.n_features == 12
    some = found.rows.sample(1000), expected.stratified(1000)
    assert np.array_equal(*(one.features for one in some))
    np.testing.assert_allclose(found.scaled_mean, expected.mean, rtol=1e-6)
    splits, leaves = rng.normal(size=(3, 13)), rng.dirichlet(np.ones(3), 4).T.copy()
    asked = leaves, LOGARITHM, 20.0
    tol = 1e-4 if kind is np.float32 else 1e-9
    close(found.rows.evaluate(splits, *asked), CompiledRows(expected).evaluate(splits, *asked), tol)
    columns = np.array([0, 2, 7])
    few = found.rows.of_columns(columns), CompiledRows(expected).of_columns(columns)
    close(*(one.evaluate(splits[:, :4], *asked) for one in few), tol)


def table(n_rows=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    return X, np.argmax(X[:, :3] + 0.3 * rng.gumbel(size=(n_rows, 3)), axis=1)


def test_estimators_on_a_device():
    X, y = table()
    known = {"n_starts": 1, "random_state": 0, "depth": 2}
    here = SoftTreeClassifier(**known).fit(X, y)
    there = SoftTreeClassifier(**known, device="cpu").fit(torch.tensor(X), torch.tensor(y))
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-9)
    np.testing.assert_allclose(
        there.predict_proba(torch.tensor(X)), here.predict_proba(X), atol=1e-6
    )
    with pytest.raises(ValueError, match="give one of them"):
        SoftTreeClassifier(device="cpu", engine=CompiledRows).fit(X, y)


def test_tensors_of_many_rows_are_taken_where_they_lie(monkeypatch):
    X, y = table(120_000)
    X = X.astype(np.float32)
    known = {"n_starts": 1, "random_state": 0, "depth": 2, "time_limit": 60, "device": "cpu"}
    known["points"] = False
    bent = SoftTreeClassifier(**known).fit(X, y)
    apart = {**known, "device": None}
    assert bent.objective_ == pytest.approx(
        SoftTreeClassifier(**apart).fit(X, y).objective_, rel=1e-4
    )
    here = SoftTreeClassifier(**known, curves=False).fit(X, y)  # tensors do not bend
    tensor = torch.tensor(X)
    monkeypatch.setattr("softsplit.training.rows.on_host", None)  # no whole table
    there = SoftTreeClassifier(**known).fit(tensor, y)
    assert there.n_features_in_ == 4
    assert there.objective_ == here.objective_
    np.testing.assert_array_equal(there.tree_.summary.low, X.min(axis=0))
