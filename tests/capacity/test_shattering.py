"""The constructions behind the lower bounds, each tree run through the routing of the library."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsplit.capacity import (
    Shattering,
    construct,
    lb_vc,
    required_steepness,
    shatter,
    vc_lower_bound,
)
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.routing import leaf_probabilities, split_scores

SIZES = [(depth, p) for depth in range(1, 7) for p in (1, 2, 3, 4, 5, 6, 7, 9, 12)]


def predicted(tree: TreeParameters, points: np.ndarray, steepness: float) -> np.ndarray:
    """Classes as the estimator predicts them."""
    leaves = leaf_probabilities(split_scores(tree, points.T), steepness)
    return np.argmax(tree.leaf_values @ leaves, axis=0)


def assert_shattered(shattering: Shattering) -> None:
    """Every labelling has a tree within the box of training that predicts it."""
    points = shattering.points
    for labels, tree in shattering:
        assert np.abs(tree.weights).max() <= 1.0
        assert np.abs(tree.thresholds).max() <= 1.0
        assert np.isin(tree.leaf_values, (0.0, 1.0)).all()
        assert (tree.leaf_values.sum(axis=0) == 1.0).all()
        assert tree.leaf_values.any(axis=1).all(), "each class has a leaf"
        np.testing.assert_array_equal(predicted(tree, points, shattering.steepness), labels)


@pytest.mark.parametrize(
    "depth, p, binary, method",
    [
        (1, 1, False, "best"),
        (1, 5, True, "lb-vc"),
        (2, 1, False, "best"),
        (2, 2, False, "best"),
        (2, 4, True, "lb-vc"),
        (2, 5, False, "best"),
        (3, 1, False, "best"),
        (2, 2, True, "best"),
        (3, 3, True, "best"),
        (5, 3, True, "best"),
    ],
)
def test_all_labellings_of_small_sets(depth: int, p: int, binary: bool, method: str) -> None:
    shattering = shatter(depth, p, binary, method=method)
    n_points = int(vc_lower_bound(depth, p, binary, method=method))
    assert shattering.exhaustive
    assert len(np.unique(shattering.labellings, axis=0)) == len(shattering) == 2**n_points
    assert_shattered(shattering)


@given(
    depth=st.integers(1, 6),
    p=st.integers(1, 13),
    binary=st.booleans(),
    epsilon=st.floats(1e-6, 0.1),
    seed=st.integers(0, 1000),
)
def test_drawn_labellings_of_larger_sets(depth, p, binary, epsilon, seed) -> None:
    assert_shattered(shatter(depth, p, binary, epsilon=epsilon, max_labellings=8, seed=seed))


@given(
    depth=st.integers(1, 6), p=st.integers(1, 6), levels=st.integers(2, 30), seed=st.integers(0, 99)
)
def test_points_on_a_grid_are_vertices(depth, p, levels, seed) -> None:
    shattering = shatter(depth, p, levels=levels, max_labellings=8, seed=seed)
    assert_shattered(shattering)
    assert np.isin(shattering.points, (0.0, 1.0)).all()
    assert len(shattering.points) == int(vc_lower_bound(depth, p, levels=levels))


@pytest.mark.parametrize("depth, p", [(3, 4), (3, 7), (4, 5), (4, 9), (6, 7)])
def test_the_paper_construction_gives_the_points_of_its_recursion(depth: int, p: int) -> None:
    shattering = shatter(depth, p, method="lb-vc", max_labellings=64)
    assert len(shattering.points) == lb_vc(depth, p)
    assert_shattered(shattering)


@pytest.mark.parametrize("binary", [False, True])
def test_points_are_as_many_as_promised_and_lie_where_features_do(binary: bool) -> None:
    for depth, p in SIZES:
        construction = construct(depth, p, binary)
        points = construction.points
        assert len(points) == construction.n_points == int(vc_lower_bound(depth, p, binary))
        assert len(np.unique(points.round(9), axis=0)) == len(points)
        assert points.min() >= 0.0
        assert points.max() <= 1.0
        if binary:
            assert np.isin(points, (0.0, 1.0)).all()


@pytest.mark.parametrize("binary", [False, True])
def test_steepness_follows_from_the_margin_without_building_anything(binary: bool) -> None:
    for depth, p in SIZES:
        construction = construct(depth, p, binary)
        assert construction.margin > 0.0
        for epsilon in (None, 0.3, 1e-4):
            assert required_steepness(depth, p, binary, epsilon=epsilon) == pytest.approx(
                construction.required_steepness(epsilon), rel=1e-9
            )


def test_a_check_reports_what_routing_says() -> None:
    good = shatter(2, 3, steepness=512.0)
    report = good.check()
    assert report.realised
    assert report.exhaustive
    assert report.n_labellings == 256
    assert report.least_probability > 1 - 1e-12
    assert report.largest_parameter == 1.0
    blurred = Shattering(good.construction, 0.5, good.labellings, True).check()
    assert not blurred.realised
    assert blurred.least_probability < 0.5


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: shatter(2, 3, epsilon=0.3), r"epsilon must be a number between 0 and 0.29"),
        (lambda: shatter(2, 3, steepness=0.0), r"steepness must be a number between 0 and"),
        (lambda: shatter(2, 3, max_labellings=0), r"max_labellings must be an integer of at least"),
        (lambda: shatter(2, 2, method="lb-vc"), r"needs n_features >= depth \+ 1 at depth 2, got"),
        (lambda: construct(2, 3, binary=1), r"binary must be True or False, got 1\."),
        (lambda: construct(2, 3, method="x"), r"method must be 'best' or 'lb-vc', got 'x'\."),
        (lambda: construct(12, 5000), r"hold 5\.1e\+10 numbers, more than 1\.0e\+08; take a"),
        (lambda: construct(2, 3).tree([0, 1]), r"labels must hold 8 values, each 0 or 1, one per"),
        (lambda: construct(2, 3).tree([2] * 8), r"labels must hold 8 values, each 0 or 1"),
        (lambda: construct(2, 3).required_steepness(0.5), r"epsilon must be a number between 0 an"),
    ],
)
def test_errors_are_one_sentence(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
