"""Tables on Dask: the same tree as in memory, for any workers, also if one is lost."""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys
from functools import partial, reduce
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from typer.testing import CliRunner

from softsplit import SoftTreeClassifier, SoftTreeRegressor, load_model
from softsplit.cli import app
from softsplit.engines.compiled import CompiledRows
from softsplit.engines.outer import LOGARITHM
from softsplit.engines.samples import Samples
from softsplit.on_dask import cluster_parts
from softsplit.on_dask.parts import Moments, Part, Reading, added, part_gram, part_sums
from softsplit.tree.scaling import fit_scaling

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

from softsplit import DaskSoftTreeClassifier  # noqa: E402
from softsplit.formulations.expected_cost import ExpectedCostFormulation  # noqa: E402
from softsplit.formulations.likelihood import LikelihoodFormulation  # noqa: E402
from softsplit.on_dask import cluster_parts as dask_parts  # noqa: E402
from softsplit.solvers import BasinHoppingSolver, EliminationSolver  # noqa: E402
from softsplit.solvers.elimination.options import EliminationOptions  # noqa: E402

QUIET = {"dashboard_address": ":0", "silence_logs": 50}
SETTINGS = {"depth": 2, "n_starts": 1, "random_state": 0}

IN_MEMORY = {**SETTINGS, "curves": False}
"""The same for rows in memory: on Dask effects are straight."""


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, **QUIET
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def many_rows(monkeypatch):
    """Few rows count as many: the last descents go to the workers."""
    few = EliminationOptions(support_rows=600, middle_rows=900)
    monkeypatch.setattr(LikelihoodFormulation, "solver", lambda _: EliminationSolver(options=few))
    hopping = partial(BasinHoppingSolver, samples=(300, 600))
    monkeypatch.setattr(ExpectedCostFormulation, "solver", lambda _: hopping())


def rows(n=2500, n_features=5, n_classes=3, seed=0):
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(n, n_features)) * np.arange(1, n_features + 1) + 10.0
    scores = (X - 10) @ draw.normal(size=(n_features, n_classes))
    return X, np.argmax(scores + draw.gumbel(size=scores.shape), axis=1)


def frames(X, y, n=4):
    """A frame with its labels and weights as columns, by partitions."""
    table = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    table["y"] = np.array(["no", "may be", "yes"])[y]
    table["w"] = 1.0 + (np.arange(len(y)) % 3)
    return dd.from_pandas(table, npartitions=n)


def test_sums_of_parts_are_those_of_all_rows(tmp_path):
    X, y = rows(40_000 // 16, 4)
    weight, classes = 1.0 + np.arange(len(y)) % 2, np.arange(3)
    scaling = fit_scaling("quantile", X, weight)
    whole = CompiledRows.from_arrays(X, y, 3, weight, scaling.transform)
    parts, facts = [], []
    for number, (low, high) in enumerate([(0, 900), (900, 901), (901, len(y))]):
        here = np.unique(y[low:high])
        samples = Samples.from_arrays(
            X[low:high], np.searchsorted(here, y[low:high]), len(here), weight[low:high]
        )
        parts.append(Part.write(samples, here, "f8", number, "here", tmp_path))
        facts.append(Moments.of(samples, here))
    reading = Reading(classes, scaling)
    draw = np.random.default_rng(1)
    splits, table = draw.normal(size=(3, 5)), draw.dirichlet(np.ones(3), 4).T
    asked = splits, table, LOGARITHM, 8.0
    expected, found = whole.evaluate(*asked), added(part_sums(p, reading, *asked) for p in parts)
    for name in ("value", "splits", "mass", "table"):
        assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9, atol=1e-9)
    some = np.array([3, 1])
    asked = splits[:, [3, 1, -1]], *asked[1:]
    expected = whole.of_columns(some).evaluate(*asked)
    found = added(part_sums(p, reading.of_columns(some), *asked) for p in parts)
    assert_allclose(found.splits, expected.splits, rtol=1e-9, atol=1e-9)
    gram = reduce(np.add, [part_gram(p, reading) for p in parts])
    moves = np.column_stack([whole.samples.features.T / 4, -np.ones(whole.n_rows)])
    assert_allclose(gram, moves.T @ (whole.samples.weights[:, None] * moves), rtol=1e-9)
    known = Moments.added(facts)
    assert_array_equal(known.totals, whole.group_totals)
    direct = fit_scaling("standard", X, weight)
    assert_allclose(known.standard().low, direct.low, rtol=1e-12)
    assert_allclose(known.standard().span, direct.span, rtol=1e-12)
    Path(parts[0].path).write_bytes(b"cut short")
    assert not parts[0].there and parts[1].there


@pytest.mark.parametrize(
    "settings", [{}, {"scale": "quantile"}, {"scale": "minmax", "class_weight": "balanced"}]
)
def test_the_tree_is_that_of_rows_in_memory(client, settings):
    far, near, table = far_and_near(client, settings)
    assert_allclose(far.objective_, near.objective_, rtol=1e-6)
    assert_array_equal(far.classes_, near.classes_)
    assert far.solution_.status == near.solution_.status
    assert far.tree_.target == near.tree_.target == "y"
    features = table[far.feature_names_in_]
    assert_allclose(far.predict_proba(features), near.predict_proba(features), atol=1e-5)
    assert_array_equal(far.tree_.summary.kinds, near.tree_.summary.kinds)


def far_and_near(client, settings):
    """A tree of rows on Dask, one of the same rows in memory, and the rows."""
    frame = frames(*rows())
    far = DaskSoftTreeClassifier(client=client, **{**SETTINGS, **settings})
    far.fit(frame[[f"c{j}" for j in range(5)]], frame["y"], frame["w"])
    table = frame.compute()
    near = SoftTreeClassifier(**{**IN_MEMORY, **settings})
    near.fit(table[far.feature_names_in_], table["y"], table["w"])
    return far, near, table


def test_leaves_in_points_count_all_rows_not_those_of_the_sample(client, monkeypatch):
    monkeypatch.setattr("softsplit.on_dask.engine.MOST_DRAWN", 700)
    X, y = rows()
    tree = DaskSoftTreeClassifier(client=client, **SETTINGS)
    tree.fit(da.from_array(X, chunks=(700, 5)), da.from_array(y, chunks=700))
    walk, local = tree.tree_.walk, tree.to_local()
    assert tree.tree_.coding.pointed
    counts, leaves = np.zeros_like(walk.counts), local.apply(X) - tree.tree_.topology.n_branches
    np.add.at(counts, (y, leaves), 1.0)
    np.testing.assert_array_equal(walk.counts, counts)


@pytest.mark.slow
def test_the_same_bits_for_any_workers_also_if_one_is_lost(monkeypatch, tmp_path):
    X, y = rows()
    X, y = da.from_array(X, chunks=(500, 5)), da.from_array(y, chunks=500)
    kept = DaskSoftTreeClassifier(**SETTINGS).fit(X, y)  # on a cluster of its own
    asked, old = [], dask_parts.DaskParts.ask
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, local_directory=tmp_path, **QUIET
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        two = DaskSoftTreeClassifier(**SETTINGS).fit(X, y)
        assert not list(tmp_path.rglob("*.rows"))
        pid = min(client.run(os.getpid).values())

        def ask(parts, *question, **each):
            asked.append(question)
            if len(asked) == 5:
                assert len(list(tmp_path.rglob("*.rows"))) == 5
                os.kill(pid, signal.SIGKILL)
            return old(parts, *question, **each)

        monkeypatch.setattr(dask_parts.DaskParts, "ask", ask)
        lost = DaskSoftTreeClassifier(client=client, **SETTINGS).fit(X, y)
        assert len(asked) > 8, "the worker was to be lost in the middle"
        assert pid not in client.run(os.getpid).values()
    for other in (two, lost):
        assert_array_equal(other.coef_, kept.coef_)
        assert_array_equal(other.leaf_distributions_, kept.leaf_distributions_)
        assert other.objective_ == kept.objective_


def test_estimators_keep_the_conventions_of_scikit_learn(client):
    X, y = rows(700)
    frame = frames(X, y, 3)
    features = frame[["c0", "c1", "c2"]]
    far = DaskSoftTreeClassifier(client=client, **SETTINGS)
    assert set(far.get_params()) == {"client", *SoftTreeClassifier().get_params()} - {
        "engine",
        "device",
    }
    twin = clone(far.set_params(ridge=2.0))
    assert twin.client is client and twin.ridge == 2.0 and "ridge=2.0" in repr(twin)
    far.fit(features, frame["y"])
    assert pickle.loads(pickle.dumps(far)).client is None
    local, table = far.to_local(), features.compute()
    assert type(local) is SoftTreeClassifier and local.get_params()["ridge"] == 2.0
    said, likely = far.predict(features), far.predict_proba(features)
    assert isinstance(said, dd.Series) and said.npartitions == 3
    assert_array_equal(said.compute(), local.predict(table))
    assert list(likely.columns) == ["may be", "no", "yes"]
    assert_array_equal(likely.compute(), local.predict_proba(table))
    assert_array_equal(likely.compute().index, table.index)
    assert far.score(features, frame["y"]) == local.score(table, frame["y"].compute())
    array = features.to_dask_array()  # of unknown chunk sizes
    unnamed = DaskSoftTreeClassifier(client=client, **SETTINGS).fit(array, frame["y"])
    assert_array_equal(unnamed.coef_, DaskSoftTreeClassifier(
        client=client, **SETTINGS).fit(features, frame["y"]).coef_)  # fmt: skip
    assert_array_equal(unnamed.predict(array).compute(), unnamed.predict(table.to_numpy()))
    assert unnamed.predict_proba(array).shape[1] == 3


def test_tables_are_coded_by_what_some_of_their_rows_say(client):
    X, y = rows(900)
    table = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 10, "high", "low")})
    table["c"] = pd.Categorical(np.where(y == 1, "u", "v"))
    table["d"], table["y"] = X[:, 2] > 10, y
    table.loc[table.index % 7 == 0, "a"] = np.nan
    frame = dd.from_pandas(table, npartitions=3)
    columns = ["a", "b", "c", "d"]
    far = DaskSoftTreeClassifier(client=client, **SETTINGS).fit(frame[columns], frame["y"])
    near = SoftTreeClassifier(**IN_MEMORY).fit(table[columns], table["y"])
    assert far.coding_.column_names == near.coding_.column_names
    assert_allclose(far.objective_, near.objective_, rtol=1e-6)
    assert_array_equal(far.predict(frame[columns]).compute(), far.predict(table[columns]))
    # Gaps in a table of numbers are found when it is read.
    gaps = DaskSoftTreeClassifier(client=client, **SETTINGS).fit(frame[["a", "d"]], frame["y"])
    assert gaps.coding_.names == ("a", "d")


def parts_of(*tables):
    """A frame of partitions that need not be alike."""
    from dask import delayed

    meta = tables[0].iloc[:0]
    return dd.from_delayed([delayed(t) for t in tables], meta=meta, verify_meta=False)


TABLE = pd.DataFrame({"a": [0.0, 1, 2, 3], "b": [1.0, 0, 1, 0], "y": [0, 1, 0, 1]})

BAD = {
    "X must be a dask array or a dask frame, got ndarray": lambda: (np.zeros((4, 1)), None),
    "y must be a dask array or series .* got list": lambda: (da.zeros((4, 1)), [0, 1]),
    "X has 4 rows and y 5": lambda: (da.zeros((4, 1)), da.zeros(5)),
    "X has 2 partitions and y 1": lambda: (
        parts_of(TABLE, TABLE)[["a"]], da.zeros(8, chunks=8)),
    "X must have two dimensions": lambda: (da.zeros(4), da.zeros(4)),
    "partition 1: column 0 is 'c' where the table has 'a'": lambda: (
        parts_of(TABLE[["a"]], TABLE[["b"]].set_axis(["c"], axis=1)), da.zeros(8, chunks=4)),
    "partition 1: X has 2 columns where the table has 1": lambda: (
        parts_of(TABLE[["a"]], TABLE[["a", "b"]]), da.zeros(8, chunks=4)),
    "partition 1: column 'a' holds no numbers where the table has float64": lambda: (
        parts_of(TABLE[["a"]], TABLE[["a"]].astype(str)), da.zeros(8, chunks=4)),
    "partition 1: y holds text beside other labels": lambda: (
        da.zeros((4, 1), chunks=2), da.from_array(np.array(["a", "b", "a", 1], object), chunks=2)),
    "y holds numbers in some partitions and text in others": lambda: (
        da.zeros((8, 1), chunks=4),
        parts_of(TABLE, TABLE.assign(y=["a", "b", "a", "b"]))["y"]),
    "partition 0: X holds infinity in column 0, row 1": lambda: (
        da.from_array(np.array([[0.0], [np.inf]])), da.from_array(np.arange(2))),
    "y has only one class; a classifier": lambda: (da.zeros((4, 1)), da.zeros(4, dtype=int)),
    "partition 0: Unknown label type": lambda: (da.zeros((4, 1)), da.arange(4) / 3),
    "X holds values up to 1e\\+200": lambda: (
        da.from_array(np.array([[0.0], [1e200]])), da.from_array(np.arange(2))),
}  # fmt: skip


@pytest.mark.parametrize("said", BAD)
def test_bad_tables_are_named_in_one_sentence(client, said):
    with pytest.raises(ValueError, match=said) as error:
        DaskSoftTreeClassifier(client=client, **SETTINGS).fit(*BAD[said]())
    assert ". " not in str(error.value).partition("Unknown label type")[0]


def test_bad_weights_parameters_and_clients_are_named_in_one_sentence(client, monkeypatch):
    X, y = da.zeros((4, 1), chunks=2), da.from_array(np.arange(4) % 2, chunks=2)
    far = DaskSoftTreeClassifier(client=client, **SETTINGS)
    with pytest.raises(
        ValueError,
        match=r"partition 1: sample_weight holds -1 in row 1; give finite numbers >= 0\.",
    ):
        far.fit(X, y, da.from_array(np.array([1.0, 1, 1, -1]), chunks=2))
    with pytest.raises(ValueError, match="solver 'ipopt' needs all rows in one process"):
        clone(far).set_params(solver="ipopt").fit(X, y)
    with pytest.raises(ValueError, match="n_starts must be"):
        clone(far).set_params(n_starts=0).fit(X, y)
    with pytest.raises(ValueError, match=r"client must be a distributed\.Client, got 'tcp"):
        clone(far).set_params(client="tcp://here").fit(X, y)
    with monkeypatch.context() as patch:
        patch.setattr("softsplit.on_dask.classifiers.__version__", "0.0.9")
        other = {"softsplit": "0.1"}
        patch.setattr(type(client), "run", lambda *_, **__: {"tcp://w": other | {
            "Python": "3.11", "distributed": "1", "numpy": "1"}})  # fmt: skip
        with pytest.raises(ValueError, match=r"worker tcp://w has softsplit 0\.1 and this process"):
            far.fit(X, y)
    with distributed.LocalCluster(n_workers=0, processes=False, **QUIET) as empty:
        lonely = distributed.Client(empty, set_as_default=False)
        with pytest.raises(ValueError, match="the Dask cluster has no workers"):
            clone(far).set_params(client=lonely).fit(X, y)
        lonely.close()
    with pytest.raises(ValueError, match="the Dask client is closed"):
        clone(far).set_params(client=lonely).fit(X, y)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "distributed", None)
        with pytest.raises(ImportError, match=r"pip install 'softsplit\[dask\]'"):
            far.fit(X, y)


def invoke(*arguments):
    return CliRunner().invoke(app, ["fit", *map(str, arguments)], env={"COLUMNS": "200"})


def test_the_command_line_takes_files_by_a_pattern(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster_parts, "ANSWER", 0.5)
    X, y = rows(600)
    table = frames(X, y, 1).compute().drop(columns="w")
    (tmp_path / "parts").mkdir()
    for part in range(3):
        table[200 * part : 200 * (part + 1)].to_parquet(tmp_path / "parts" / f"{part}.parquet")
    data, model = tmp_path / "parts" / "*.parquet", tmp_path / "tree.json"
    quick = ["--depth", 1, "--scale", "standard", "--strength", 5, "--jobs", 1, "--seed", 0]
    result = invoke(data, "--dask", "-t", "y", "-m", model, *quick, "--json", "-q", "--drop", "c4")
    assert result.exit_code == 0, result.output
    told, tree = json.loads(result.stdout), load_model(model)
    assert told["features"] == 4 and told["classes"] == ["may be", "no", "yes"]
    assert tree.tree_.target == "y"
    assert tree.score(table.drop(columns=["y", "c4"]), table["y"]) > 0.4
    result = invoke(tmp_path / "parts", "-t", "y", *quick, "--dask")
    assert result.exit_code == 0 and "features used" in result.stdout
    assert "partitions of" in result.stderr and "a cluster in this process" in result.stderr
    for arguments, said in [
        ([data, "-t", "z", "--dask"], r"target 'z' is not a column of the table"),
        ([data, "-t", "y", "--dask", "--report", tmp_path / "r.html"], "--report cannot be had"),
        ([tmp_path / "none*", "-t", "y", "--dask"], "there is no file"),
        ([data, "-t", "y", "--drop", "q", "--dask"], "column 'q' is missing"),
        ([data, "-t", "y", "--dask", "127.0.0.1:9", "--jobs", 1], "no Dask scheduler answers at"),
    ]:
        result = invoke(*arguments)
        assert result.exit_code == 2 and said in result.stderr, result.output


@pytest.mark.parametrize("kind", [SoftTreeClassifier, SoftTreeRegressor])
def test_estimators_in_memory_refuse_collections(kind):
    X, y = pd.DataFrame({"a": np.arange(40.0)}), pd.Series(np.arange(40) % 2)
    with pytest.raises(TypeError, match=r"X is a DataFrame of Dask; give X\.compute"):
        kind().fit(dd.from_pandas(X, npartitions=2), y)
    with pytest.raises(TypeError, match=r"y is a Series of Dask; give y\.compute"):
        kind().fit(X, dd.from_pandas(y, npartitions=2))
