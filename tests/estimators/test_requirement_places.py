"""Each requirement where rows are elsewhere: it holds for the tree that is returned."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest

from slow_cases import slow
from softsplit import (
    EqualizedOdds,
    EqualOpportunity,
    Parity,
    RateConstraint,
    SoftTreeClassifier,
    SoftTreeClassifierCV,
)
from softsplit.formulations.likelihood import LikelihoodFormulation
from softsplit.solvers import EliminationSolver
from softsplit.solvers.elimination.options import EliminationOptions
from two_halves import TwoHalves

NAMES = ["a", "b", "c", "d"]

REQUIREMENTS = {
    "monotone": {"monotone": {"a": "-"}},
    "required": {"required": ["d"]},
    "forbidden_together": {"forbidden_together": [["a", "b"]]},
    "at_most_one": {"at_most_one": [["a", "b", "c"]]},
    "feature_costs": {"feature_costs": {"a": 500.0, "b": 0.5}},
    "min_class_rate": {"min_class_rate": {0: 0.72, 1: 0.0}},
    "parity": {"fairness": Parity("a", 0.1, cut=0.5)},
    "equal_opportunity": {"fairness": EqualOpportunity("a", 0.1, cut=0.0)},
    "equalized_odds": {"fairness": EqualizedOdds("a", 0.1, cut=0.0)},
    "constraints": {"constraints": RateConstraint(("a", ">", 0.0), 1, at_most=0.5)},
}

LONG = (
    "required",
    "at_most_one",
    "equal_opportunity",
    "equalized_odds",
    "constraints",
    "feature_costs",
)
SHORT_AND_LONG = [*(name for name in REQUIREMENTS if name not in LONG), *slow(*LONG)]

SETTINGS = {"depth": 1, "n_starts": 1, "random_state": 0, "curves": False}


def rows(n_rows: int = 400) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n_rows, 4)), columns=NAMES)
    return X, (X.a + X.b + 0.5 * X.c + rng.logistic(size=n_rows) > 0).to_numpy(int)


def assert_rates_hold(tree, X, y, sensitive=None) -> None:
    """Whether expected rates hold on these rows, worked out from what the tree predicts."""
    said = tree.predict_proba(X)
    classes = tree.classes_.tolist()
    given = [*np.ravel(tree.fairness or []), *np.ravel(tree.constraints or [])]
    for one in given:
        if isinstance(one, RateConstraint):
            name, side, cut = one.rows
            chosen = (X[name] > cut) if side == ">" else (X[name] <= cut)
            rate = said[chosen.to_numpy(), classes.index(one.of)].mean()
            assert rate <= (one.at_most or 1.0) + 1e-6
            assert rate >= (one.at_least or 0.0) - 1e-6
            continue
        column = X.get(one.column, sensitive)
        groups = (column > one.cut) if one.cut is not None else column
        conditions = [None]
        if isinstance(one, EqualizedOdds):
            conditions = classes
        elif isinstance(one, EqualOpportunity):
            conditions = [classes[1]]
        favoured = range(1, 2) if len(classes) == 2 else range(len(classes))
        for k in favoured:
            for label in conditions:
                of = np.ones(len(y), dtype=bool) if label is None else np.asarray(y) == label
                rates = [
                    said[of & (groups == group).to_numpy(), k].mean() for group in groups.unique()
                ]
                assert np.ptp(rates) <= one.bound + 1e-6


def assert_kept(name: str, tree, X, y) -> None:
    """Whether the fitted tree keeps the requirement."""
    used = {NAMES[j] for j in tree.selected_features_}
    assert used
    if name == "required":
        assert "d" in used
    elif name == "forbidden_together":
        assert len(used & {"a", "b"}) == 1
    elif name == "at_most_one":
        assert len(used & {"a", "b", "c"}) == 1
    elif name == "feature_costs":
        assert "a" not in used and "b" in used  # the dear column is not worth its cost
    elif name == "monotone":
        found = tree.check_monotone("a", "-")
        assert found.holds and found.proved
    elif name == "min_class_rate":
        assert tree.predict_proba(X)[y == 0, 0].mean() >= 0.72 - 1e-6
    else:
        assert_rates_hold(tree, X, y)


@pytest.mark.parametrize("name", REQUIREMENTS)
def test_each_requirement_changes_the_tree(name):
    """So that the tests below can fail."""
    X, y = rows()
    free = SoftTreeClassifier(**SETTINGS).fit(X, y)
    free.set_params(**REQUIREMENTS[name])
    with pytest.raises(AssertionError):
        assert_kept(name, free, X, y)


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    quiet = {"dashboard_address": ":0", "silence_logs": 50}
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, **quiet
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def on_dask(X, y, n=2):
    """The rows in partitions, and their labels."""
    da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    there = dd.from_pandas(X, npartitions=n)
    return there, da.from_array(y, chunks=(tuple(there.map_partitions(len).compute()),))


@pytest.mark.parametrize("choice", [False, *slow(True)])
@pytest.mark.parametrize("name", SHORT_AND_LONG)
def test_on_dask(name, choice, client):
    there, labels = on_dask(*rows())
    from softsplit import DaskSoftTreeClassifier, DaskSoftTreeClassifierCV

    if choice:
        few = {key: v for key, v in SETTINGS.items() if key != "depth"}
        make = partial(DaskSoftTreeClassifierCV, depths=[1], cv=2, **few)
    else:
        make = partial(DaskSoftTreeClassifier, **SETTINGS)
    tree = make(client=client, **REQUIREMENTS[name]).fit(there, labels).to_local()
    assert_kept(name, tree, *rows())


def people(n_rows: int, n_classes: int = 2) -> tuple[pd.DataFrame, np.ndarray, pd.Series]:
    """A table with a category and missing values, text labels, and a column of three groups."""
    rng = np.random.default_rng(1)
    group = rng.choice(["p", "q", "r"], n_rows, p=[0.5, 0.4, 0.1])
    X = pd.DataFrame(
        {
            "income": rng.normal(size=n_rows) + 0.8 * (group == "q"),
            "arrears": rng.poisson(1.0, n_rows).astype(float),
            "town": np.where(rng.random(n_rows) < 0.4, "ulm", "bonn"),
        }
    )
    score = X.income - 0.5 * X.arrears + (X.town == "ulm") + 0.7 * rng.logistic(size=n_rows)
    cuts = np.quantile(score, np.arange(1, n_classes) / n_classes)
    X.loc[rng.random(n_rows) < 0.05, "arrears"] = np.nan
    y = np.array([f"k{k}" for k in np.digitize(score, cuts)])
    return X, y, pd.Series(group, name="group")


def test_what_cannot_be_required_on_dask_is_told_in_one_sentence(client):
    dd = pytest.importorskip("dask.dataframe")
    from softsplit import DaskSoftTreeClassifier

    X, y, group = people(300)
    there, labels = on_dask(X, y)
    apart = dd.from_pandas(group, npartitions=2)
    mask = RateConstraint([True] * 300, "k1", at_least=0.3)
    for given, sensitive, said in [
        ({"constraints": mask}, None, "by a mask or by indices"),
        ({"fairness": Parity("nobody", 0.1)}, None, "names the column 'nobody', which is not"),
        ({"fairness": Parity("nobody", 0.1)}, apart, "not a column of X or of sensitive"),
        ({"fairness": Parity("group", 0.1)}, group, "sensitive must be a dask array or series"),
        ({"fairness": Parity("income", 0.1)}, None, "too many groups to compare"),
        ({"fairness": Parity("town", 0.1, cut=1.0)}, None, "holds no numbers to cut"),
        ({"fairness": Parity("town", 0.1, of="k7")}, None, "names the class 'k7'"),
        ({"constraints": RateConstraint(("town", "rom"), "k1", at_least=0.3)}, None, "no value"),
        ({"monotone": {"town": "+"}}, None, "a category without an order"),
    ]:
        with pytest.raises(ValueError, match=said) as caught:
            DaskSoftTreeClassifier(client=client, **given).fit(there, labels, sensitive=sensitive)
        assert "\n" not in str(caught.value)


@pytest.fixture
def many_rows(monkeypatch):
    """Few rows count as many: the last descents ask the engine."""
    few = EliminationOptions(support_rows=200, middle_rows=300)
    monkeypatch.setattr(LikelihoodFormulation, "solver", lambda _: EliminationSolver(options=few))


@pytest.mark.parametrize("choice", [False, *slow(True)])
@pytest.mark.parametrize("name", SHORT_AND_LONG)
def test_behind_an_engine(name, choice, many_rows):
    X, y = rows(700)
    make = partial(SoftTreeClassifier, **SETTINGS)
    if choice:
        few = {key: v for key, v in SETTINGS.items() if key != "depth"}
        make = partial(SoftTreeClassifierCV, depths=[1], cv=2, **few)
    assert_kept(name, make(engine=TwoHalves.of, **REQUIREMENTS[name]).fit(X, y), X, y)


@pytest.mark.parametrize("name", ["monotone", "parity", "constraints"])
def test_refused_with_the_expected_cost_behind_an_engine(name):
    X, y = rows()
    tree = SoftTreeClassifier(loss="cost", engine=TwoHalves.of, **SETTINGS, **REQUIREMENTS[name])
    with pytest.raises(ValueError, match="loss='cost' need the rows in the memory") as caught:
        tree.fit(X, y)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", REQUIREMENTS)
@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_on_a_device(name, kind, many_rows):
    torch = pytest.importorskip("torch", reason="PyTorch (softsplit[gpu]) is not installed")
    X, y = rows(700)
    X = X.astype(kind)
    for device in ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]:
        tree = SoftTreeClassifier(device=device, **SETTINGS, **REQUIREMENTS[name]).fit(X, y)
        assert_kept(name, tree, X, y)
