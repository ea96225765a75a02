"""Rows on a device, on the one that every machine has: sums against the compiled engine."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch (softsplit[gpu]) is not installed")

from softsplit.engines.compiled import CompiledRows  # noqa: E402
from softsplit.engines.device.backend import find_device  # noqa: E402
from softsplit.engines.device.rows import DeviceRows  # noqa: E402
from softsplit.engines.outer import IDENTITY, LOGARITHM, OUTERS  # noqa: E402
from softsplit.engines.samples import Samples  # noqa: E402

CPU = torch.device("cpu")


def draw(seed, n_rows=500, n_features=5, n_classes=3, depth=2):
    """Samples, splits and a table."""
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(size=(n_rows, n_features)), rng.integers(0, n_classes, n_rows)
    samples = Samples.from_arrays(X, y, n_classes, rng.uniform(0.5, 2.0, n_rows))
    splits = rng.normal(size=(2**depth - 1, n_features + 1))
    return samples, splits, rng.dirichlet(np.ones(n_classes), 2**depth).T.copy()


def single(samples):
    return Samples(
        samples.features.astype(np.float32), samples.starts, samples.weights, samples.class_totals
    )


def close(found, expected, tol):
    for part in ("value", "splits", "mass", "table"):
        a, b = np.asarray(getattr(found, part)), np.asarray(getattr(expected, part))
        assert np.max(np.abs(a - b)) <= tol * np.max(np.abs(b)), part


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("outer", OUTERS)
def test_sums_are_those_of_the_compiled_engine(depth, outer):
    samples, splits, table = draw(0, depth=depth)
    expected = CompiledRows(samples).evaluate(splits, table, outer, 20.0)
    close(DeviceRows.of(samples, CPU).evaluate(splits, table, outer, 20.0), expected, 1e-12)
    close(DeviceRows.of(single(samples), CPU).evaluate(splits, table, outer, 20.0), expected, 1e-4)


def test_gradient_is_that_of_finite_differences():
    samples, splits, table = draw(1)
    rows, step = DeviceRows.of(samples, CPU), 1e-6
    found = rows.evaluate(splits, table, LOGARITHM, 5.0)
    for point, by_point in ((splits, found.splits), (table, found.table)):
        for index in np.ndindex(point.shape):
            ends = []
            for sign in (1, -1):
                moved = point.copy()
                moved[index] += sign * step
                given = (moved, table) if point is splits else (splits, moved)
                ends.append(rows.evaluate(*given, LOGARITHM, 5.0).value)
            assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(by_point[index], abs=1e-4)


def test_slabs_make_no_difference():
    samples, splits, table = draw(2, n_rows=6000)
    whole = DeviceRows.of(samples, CPU)
    parts = DeviceRows.of(samples, CPU, room=200_000)
    assert len(whole.slabs) == 1 and len(parts.slabs) > 2
    for one, other in (
        (parts, whole),
        (parts.of_class(1), whole.of_class(1)),
        (parts.reweighed(3, 0.5), CompiledRows(samples).reweighed(3, 0.5)),
    ):
        close(
            one.evaluate(splits, table, IDENTITY, 9.0),
            other.evaluate(splits, table, IDENTITY, 9.0),
            1e-12,
        )


def test_metric_is_that_of_the_compiled_engine():
    samples, _, _ = draw(3)
    found, expected = DeviceRows.of(samples, CPU).metric(), CompiledRows(samples).metric()
    np.testing.assert_allclose(found.inverse, expected.inverse, rtol=1e-8)
    np.testing.assert_allclose(found.diagonal, expected.diagonal, rtol=1e-8)


@pytest.mark.parametrize("name", ["tpu", 3, "", "cuda:99"])
def test_devices_that_are_not_there(name):
    with pytest.raises((ValueError, RuntimeError), match="device") as said:
        find_device(name)
    assert str(said.value).endswith(".") and "\n" not in str(said.value)
