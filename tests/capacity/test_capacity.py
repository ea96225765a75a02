"""Bounds on the VC dimension: values, reasons, conditions; what follows for the error."""

from __future__ import annotations

import math
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris

import softsplit
from places import ROOT
from softsplit.capacity import (
    Growth,
    TreeSize,
    compare,
    generalisation_bound,
    lb_vc,
    required_steepness,
    summarise,
    vc_lower_bound,
    vc_upper_bound,
)
from softsplit.capacity.growth import soft_tree_growth

DEPTHS, FEATURES = st.integers(1, 8), st.integers(1, 40)


@pytest.mark.parametrize("p", [1, 2, 7, 1000])
@pytest.mark.parametrize("binary", [False, True])
def test_one_branch_is_known_exactly(p: int, binary: bool) -> None:
    for bound in (
        vc_lower_bound(1, p, binary),
        vc_lower_bound(1, p, binary, method="lb-vc"),
        vc_upper_bound(1, p, binary),
    ):
        assert int(bound) == p + 1
        assert bound.kind == "exact"
        assert bound.formula == "p + 1"


@given(depth=st.integers(2, 12), extra=st.integers(1, 50))
def test_recursion_gives_the_formula_of_proposition_3(depth: int, extra: int) -> None:
    p = depth + extra
    assert lb_vc(depth, p) == 2 ** (depth - 1) * (p - depth + 3)
    assert int(vc_lower_bound(depth, p, method="lb-vc")) == lb_vc(depth, p)


@pytest.mark.parametrize(
    "depth, p, why",
    [
        (2, 2, "on the 2 features left at depth 2 its point sets overlap"),
        (4, 3, "on the 1 feature left at depth 2 its point sets overlap"),
        (4, 2, "it uses up one feature per level, and none is left"),
    ],
)
def test_where_the_paper_does_not_apply_the_reason_is_given(depth: int, p: int, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        vc_lower_bound(depth, p, method="lb-vc")
    assert why in vc_lower_bound(depth, p).reason
    assert why in vc_lower_bound(depth, p, binary=True).reason


@given(depth=DEPTHS, p=FEATURES)
def test_bounds_are_in_order(depth: int, p: int) -> None:
    real, binary = int(vc_lower_bound(depth, p)), int(vc_lower_bound(depth, p, True))
    assert real == 2 ** (depth - 1) * (p + 1)
    assert binary <= real
    if p >= depth + 1:
        assert lb_vc(depth, p) <= binary
    on_grid = int(vc_upper_bound(depth, p, levels=10))
    assert real <= int(vc_upper_bound(depth, p))
    assert binary <= int(vc_upper_bound(depth, p, True)) <= on_grid
    assert on_grid <= int(vc_upper_bound(depth, p))
    assert int(vc_upper_bound(depth, p, True)) <= 2**p


def counted_by_hand(depth: int, p: int, levels: int | None) -> int:
    """The largest m with 2^m <= B (e m / d)^d, by going down from far above."""
    branches = 2**depth - 1
    d = branches * (p + 1) + 2**depth
    if levels is None:
        q, degree = d * branches, branches + 1
        components = (
            q * (q - 1) // 2
            + d * math.log2(degree)
            + d * math.log2(degree + 1)
            + q * math.log2(d * degree + d * (degree + 1) + 1)
        )
    else:
        degree = 1 + branches * (1 + p * (levels - 1))
        components = math.log2(degree) + (d - 1) * math.log2(2 * degree - 1)
    m = 10 * int(components) + 100 * d
    while m > components + d * math.log2(math.e * m / d):
        m -= 1
    return m


@pytest.mark.parametrize(
    "depth, p, levels", [(2, 2, None), (2, 5, None), (3, 2, None), (2, 9, 2), (3, 12, 2), (2, 3, 9)]
)
def test_counted_bounds_solve_their_equation(depth: int, p: int, levels: int | None) -> None:
    assert soft_tree_growth(TreeSize(depth, p), levels).largest_shattered() == counted_by_hand(
        depth, p, levels
    )


@given(
    parameters=st.integers(1, 200),
    components=st.floats(0.0, 1e4),
    predicates=st.integers(1, 40),
    points=st.integers(1, 10**6),
)
def test_growth_is_never_above_all_labellings_and_stops_there(
    parameters, components, predicates, points
) -> None:
    growth = Growth(parameters, components, predicates)
    assert 0.0 <= growth.log2(points) <= points
    assert growth.log2(points) <= growth.log2(points + 1) + 1e-9
    beyond = growth.largest_shattered() + 1
    assert growth.log2(beyond) < beyond


@given(
    depth=st.integers(1, 7),
    p=FEATURES,
    levels=st.sampled_from([None, 2, 3, 100]),
    hidden=st.sampled_from([None, 1, 4, 1000]),
)
def test_every_row_is_in_order(depth, p, levels, hidden) -> None:
    table = compare(depth, p, levels=levels, hidden_units=hidden)
    assert (table["lower"] <= table["upper"]).all()
    if levels is not None and p < 20:
        assert table["upper"].max() <= levels**p


def test_the_bound_is_the_solved_inequality() -> None:
    size, n, error, delta = TreeSize(2, 6, n_coefficients=5), 10_000, 0.08, 0.1
    growth = math.log(2) * soft_tree_growth(size).log2(2 * n)
    price = math.log(19 * math.comb(18, 5))
    squared = 4 * (growth + price + math.log(4 / delta)) / n
    found = generalisation_bound(size, n_samples=n, training_error=error, confidence=1 - delta)
    risk = float(found)
    assert 0.08 < risk < 1.0
    # The largest R with (R - r) / sqrt(R) <= e.
    assert (risk - error) / math.sqrt(risk) == pytest.approx(math.sqrt(squared))


def test_samples_needed_is_the_turning_point() -> None:
    size = TreeSize(2, 20)
    found = generalisation_bound(size, n_samples=300, training_error=0.1)
    assert found.vacuous
    assert float(found) == 1.0
    needed = found.samples_needed
    at, below = (
        generalisation_bound(size, n_samples=n, training_error=0.1) for n in (needed, needed - 1)
    )
    assert float(at) < 0.5 <= float(below)
    assert str(found).startswith("vacuous: for 300 rows and 67 parameters at depth 2 the bound is")
    assert f"it takes {needed} rows" in found.reason
    hopeless = generalisation_bound(size, n_samples=300, training_error=0.5)
    assert hopeless.samples_needed is None
    assert "no number of rows would do" in hopeless.reason


def test_a_fitted_tree_is_measured_by_its_nonzero_coefficients() -> None:
    X, y = load_iris(return_X_y=True)
    tree = softsplit.SoftTreeClassifier(
        global_strength=1.0, n_starts=2, random_state=0, curves=False, points=False
    ).fit(X, y)
    size = TreeSize.of(tree)
    assert (size.depth, size.n_features, size.n_classes) == (2, 4, 3)
    assert size.used_coefficients == np.count_nonzero(tree.weights_) < 12
    assert size.n_parameters == size.used_coefficients + 3 + 2 * 4
    bound = generalisation_bound(
        tree, n_samples=len(X), training_error=1 - tree.score(X, y), levels=80
    )
    assert bound.size == size
    assert bound.vacuous
    assert float(bound) >= 2 / 3
    plenty = generalisation_bound(tree, n_samples=10**6, training_error=0.02, levels=80)
    assert not plenty.vacuous
    assert "an estimate from rows kept apart will be much closer" in plenty.reason


def test_summary_holds_plain_values() -> None:
    summary = summarise(3, 10, n_samples=1000, training_error=0.1)
    values = summary.to_dict()
    assert values["lower"]["value"] == 44
    assert values["paper"]["value"] == 40
    assert values["generalisation"]["vacuous"] is True
    assert summarise(3, 3).paper is None
    assert summarise(3, 3).generalisation is None
    on_grid = summarise(3, 1, levels=7)
    assert on_grid.lower == vc_lower_bound(3, 1, levels=7)
    assert on_grid.required_steepness == required_steepness(3, 1, levels=7)
    assert summarise(2, 3, levels=7).paper.kind == "lower"  # the cube is not all of that grid


@given(depth=st.integers(1, 8), p=st.integers(1, 8), levels=st.integers(2, 40))
def test_a_grid_never_holds_more_points_than_there_are(depth, p, levels) -> None:
    here = vc_lower_bound(depth, p, levels=levels)
    assert int(vc_lower_bound(depth, p, binary=True)) <= int(here) <= int(vc_lower_bound(depth, p))
    upper = vc_upper_bound(depth, p, levels=levels)
    assert int(here) <= int(upper) and (here.kind == "exact") == (upper.kind == "exact")


def test_the_package_loads_nothing_heavy() -> None:
    script = (
        "import sys, softsplit\n"
        "assert not {'numpy', 'typer', 'rich'} & set(sys.modules), 'import softsplit'\n"
        "assert 'capacity' in dir(softsplit)\n"
        "int(softsplit.capacity.vc_upper_bound(3, 10))\n"
        "assert not {'numba', 'pandas', 'sklearn', 'typer', 'rich'} & set(sys.modules), 'bounds'\n"
        "assert softsplit.capacity.compare(2, 3).shape == (5, 6)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert set(softsplit.capacity.__all__) <= set(dir(softsplit.capacity))
    with pytest.raises(AttributeError, match="has no attribute 'vc_dimension'"):
        _ = softsplit.capacity.vc_dimension


def test_the_values_in_the_document_are_the_values_of_the_library() -> None:
    text = (ROOT / "docs" / "capacity.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d) \| (\d+) \| (.+) \|$", text, re.MULTILINE)
    assert len(rows) == 9
    for depth, p, cells in ((int(d), int(p), cells.split(" | ")) for d, p, cells in rows):
        expected = [
            lb_vc(depth, p) if p >= depth + 1 else "-",
            int(vc_lower_bound(depth, p)),
            int(vc_upper_bound(depth, p)),
            int(vc_lower_bound(depth, p, True)),
            int(vc_upper_bound(depth, p, True)),
            int(vc_upper_bound(depth, p, levels=1000)),
        ]
        assert [cell.replace(",", "") for cell in cells[:-1]] == [str(value) for value in expected]
        assert float(cells[-1]) == pytest.approx(required_steepness(depth, p), rel=5e-3)
    table = compare(3, 10).set_index("model")
    for model, row in table.iterrows():
        assert f"| {model} | {row.parameters} | {row.lower} | {row.upper:,} |" in text


def bound(size=TreeSize(2, 3), **given):  # noqa: B008
    return generalisation_bound(size, **{"n_samples": 9, "training_error": 0.1} | given)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: vc_lower_bound(0, 3), r"depth must be an integer of at least 1, got 0\."),
        (lambda: vc_lower_bound(17, 3), r"depth must be an integer between 1 and 16, got 17\."),
        (lambda: vc_lower_bound(2.0, 3), r"depth must be an integer of at least 1, got 2\.0\."),
        (lambda: vc_lower_bound(True, 3), r"depth must be an integer of at least 1, got True\."),
        (lambda: vc_lower_bound(2, 0), r"n_features must be an integer of at least 1, got 0\."),
        (lambda: vc_lower_bound(2, 3, 4), r"binary must be True or False, got 4\."),
        (lambda: vc_lower_bound(2, 3, method="new"), r"method must be 'best' or 'lb-vc', got 'new"),
        (lambda: vc_upper_bound(2, 3, levels=1), r"levels must be an integer of at least 2, got 1"),
        (lambda: vc_upper_bound(2, 3, True, levels=3), r"binary features have 2 levels, got level"),
        (lambda: compare(2, 3, hidden_units=0), r"hidden_units must be an integer of at least 1"),
        (lambda: TreeSize(2, 3, n_classes=1), r"n_classes must be an integer of at least 2, got 1"),
        (lambda: TreeSize(2, 3, n_coefficients=10), r"n_coefficients must be at most 9, the numbe"),
        (lambda: bound(n_samples=0), r"n_samples must be an integer of at least 1, got 0\."),
        (lambda: bound(training_error=12.0), r"training_error must be a number from 0 to 1, got"),
        (lambda: bound(confidence=1.0), r"confidence must be a number between 0 and 1, got 1\.0\."),
        (lambda: bound("tree"), r"a fitted SoftTreeClassifier or a TreeSize is needed, got str\."),
        (
            lambda: bound(softsplit.SoftTreeClassifier()),
            r"got SoftTreeClassifier that is not fitte",
        ),
    ],
)
def test_errors_are_one_sentence(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
