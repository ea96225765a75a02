"""Runs of experiments: complete, repeatable, and unharmed by whatever stops them."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

from experiment_parts import SMALL, contents, small
from slow_cases import TIMES
from softsplit.experiments.cells import WHOLE, tree_protocol
from softsplit.experiments.context import axis_seed, load_data, make_fold, versions
from softsplit.experiments.runner import RunProgress, run_experiment, summarise
from softsplit.experiments.spec import Folds
from softsplit.experiments.store import Store, StoreError


@pytest.fixture(autouse=True)
def bundled_data(monkeypatch):
    monkeypatch.delenv("SOFTSPLIT_DATA", raising=False)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The store of a run that nothing disturbed."""
    path = tmp_path_factory.mktemp("whole") / "small.sqlite"
    before = os.environ.pop("SOFTSPLIT_DATA", None)
    with Store(path) as store:
        done = run_experiment(small(), store)
    if before is not None:
        os.environ["SOFTSPLIT_DATA"] = before
    assert done.n_done == done.n_cells == 96
    return path


class AfterRows(RunProgress):
    """Does something once, after so many rows."""

    def __init__(self, count, action):
        self.count, self.action, self.seen = count, action, 0

    def advance(self, row, work):
        self.seen += 1
        if self.seen == self.count:
            self.action()


def test_protocol_depends_on_settings_and_not_on_axes():
    base = tree_protocol(small(), WHOLE)
    assert tree_protocol(small(datasets=("iris",), starts=5, models=("Linf",)), WHOLE) == base
    assert tree_protocol(small(inner=None), WHOLE) == base
    assert tree_protocol(small(), 0) != base
    assert tree_protocol(small(seed=1), WHOLE) != base
    assert tree_protocol(small(folds={"seed": 1}), WHOLE) != base
    assert tree_protocol(small(training={"steepness": 256.0}), WHOLE) != base
    assert base == "d7d34eb6b9dcf9d2"  # stores keep rows under it
    by_likelihood = tree_protocol(small(training={"loss": "log"}), WHOLE)
    assert by_likelihood != base
    assert tree_protocol(small(training={"loss": "log", "ridge": 2.0}), WHOLE) != by_likelihood
    # The other strengths matter to a tree that was warm-started, and to no other.
    short = {"strengths": (0.25,)}
    assert tree_protocol(small(grid=short), WHOLE) != base
    fresh = tree_protocol(small(grid={"walk": "fresh"}), WHOLE)
    assert tree_protocol(small(grid={"walk": "fresh", **short}), WHOLE) == fresh


def test_seeds_are_the_same_on_every_machine():
    assert axis_seed("start", 0, "iris", 1).entropy == 0x9C0D71BDC091A4003D37B5B3B790DF83
    assert axis_seed("start", 0, "iris", 2).entropy != axis_seed("start", 0, "iris", 1).entropy


def test_shuffled_folds_are_the_published_ones():
    data = load_data(small())["iris"]
    fold = make_fold(data, Folds(), 1, scaling_fit="all")
    order = np.random.RandomState(23).permutation(150)
    test = np.sort(order[30:60])
    X = (data.X - data.X.min(axis=0)) / np.ptp(data.X, axis=0)
    np.testing.assert_array_equal(fold.X_test, X[test])
    np.testing.assert_array_equal(fold.X, X[np.setdiff1d(np.arange(150), test)])
    assert [data.class_names[k] for k in fold.y_test] == data.y[test].tolist()


@pytest.mark.parametrize("rule", ["shuffled", "stratified"])
def test_inner_folds_part_the_training_rows_and_never_see_the_test_rows(rule):
    data = load_data(small())["iris"]
    folds = Folds(rule=rule)
    options = {"inner_folds": 3, "scaling_fit": "all"}
    outside = make_fold(data, folds, 2, scaling_fit="all")
    inside = [make_fold(data, folds, 2, inner=i, **options) for i in range(3)]
    tests = np.concatenate([fold.X_test for fold in inside])
    np.testing.assert_array_equal(
        np.array(sorted(map(tuple, tests))), np.array(sorted(map(tuple, outside.X)))
    )
    for fold in inside:
        assert len(fold.X) + len(fold.X_test) == len(outside.X)


def test_rows_are_complete(whole):
    with Store(whole) as store:
        frame = store.frame({tree_protocol(small(), WHOLE), tree_protocol(small(), 0)})
    assert len(frame) == 96
    assert set(frame["status"]) <= {"OPTIMAL", "ACCEPTABLE"}
    assert frame["test_accuracy"].between(0.5, 1.0).all()
    assert (frame["seconds"] > 0).all()
    numbers = frame.drop(columns=["message"])
    assert not numbers.isna().any().any()
    strong = frame[frame[["local_strength", "global_strength"]].max(axis=1) == 4.0]
    weak = frame[frame[["local_strength", "global_strength"]].max(axis=1) == 0.25]
    assert strong["local_sparsity"].mean() > weak["local_sparsity"].mean()


def test_a_second_run_has_nothing_to_do(whole):
    before = contents(whole)
    progress = AfterRows(1, lambda: pytest.fail("a finished cell was run again"))
    with Store(whole) as store:
        assert run_experiment(small(), store, progress=progress).n_done == 96
    assert contents(whole) == before


def test_whatever_rows_are_missing_come_back_bit_for_bit(whole, tmp_path):
    path = tmp_path / "holes.sqlite"
    with sqlite3.connect(whole) as source, sqlite3.connect(path) as copy:
        source.backup(copy)
        numbers = [row[0] for row in copy.execute("SELECT rowid FROM cells")]
        lost = random.Random(0).sample(numbers, 40)
        copy.executemany("DELETE FROM cells WHERE rowid = ?", [(n,) for n in lost])
    source.close()
    copy.close()
    with Store(path) as store:
        assert summarise(small(), store).n_done == 56
        run_experiment(small(), store)
    assert contents(path) == contents(whole)


# With two processes, and killed by itself at a row.
KILLED = """
import os, signal, sys
from softsplit.experiments.runner import RunProgress, run_experiment
from softsplit.experiments.spec import load_spec
from softsplit.experiments.store import Store

class Killing(RunProgress):
    seen = 0
    def advance(self, row, work):
        self.seen += 1
        if self.seen == int(sys.argv[3]):
            os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    run_experiment(load_spec(sys.argv[1]), Store(sys.argv[2]), n_jobs=2, progress=Killing())
"""


@pytest.mark.slow
@pytest.mark.parametrize("row", [5, *range(6, 5 + TIMES)])
def test_a_run_killed_in_the_middle_is_taken_up(row, whole, tmp_path):
    spec, path = tmp_path / "small.toml", tmp_path / "killed.sqlite"
    spec.write_text(SMALL)
    run = subprocess.run([sys.executable, "-c", KILLED, str(spec), str(path), str(row)])
    assert run.returncode == -signal.SIGKILL
    assert row <= len(contents(path)) < 96, "the run must be killed half way"
    with Store(path) as store:
        run_experiment(small(), store)
    assert contents(path) == contents(whole)


def test_a_cell_that_raises_becomes_a_row_and_the_walk_goes_on(tmp_path):
    spec = small(datasets=("iris",), solvers=("experiment_parts:RaisingSolver",), inner=None)
    with Store(tmp_path / "raised.sqlite") as store:
        done = run_experiment(spec, store)
        frame = store.frame({tree_protocol(spec, WHOLE)})
    assert done.n_done == 24 and done.statuses["ERROR"] == 8
    failed = frame[frame["status"] == "ERROR"]
    assert set(failed["message"]) == {"ArithmeticError: division by cucumber"}
    assert failed["test_accuracy"].isna().all()
    assert frame[frame["status"] != "ERROR"]["test_accuracy"].notna().all()


def test_an_interrupted_training_leaves_no_row(tmp_path):
    spec = small(datasets=("iris",), solvers=("experiment_parts:InterruptedSolver",), inner=None)
    with Store(tmp_path / "stopped.sqlite") as store:
        with pytest.raises(KeyboardInterrupt):
            run_experiment(spec, store)
        assert "INTERRUPTED" not in summarise(spec, store).statuses


def test_rows_of_other_versions_are_not_mixed_in_silence(tmp_path):
    with Store(tmp_path / "old.sqlite") as store:
        store.check_versions({**versions(), "numba": "0.1"})
        with pytest.raises(StoreError, match=r"numba 0\.1 -> .*--accept-versions"):
            run_experiment(small(), store)
        store.check_versions(versions(), accept_others=True)
        store.check_versions(versions())


def test_rows_of_other_data_are_not_mixed(tmp_path):
    with Store(tmp_path / "data.sqlite") as store:
        store.check_dataset("iris", "reported", "abc")
        with pytest.raises(StoreError, match="'iris' is not the one whose rows are in store"):
            run_experiment(small(), store)


def test_unknown_solvers_and_peers_are_refused_before_any_work(tmp_path):
    with Store(tmp_path / "x.sqlite") as store:
        with pytest.raises(ValueError, match="solver 'magic' is unknown"):
            run_experiment(small(solvers=("magic",)), store)
        with pytest.raises(ValueError, match="peer 'oracle' is unknown"):
            run_experiment(small(peers=("oracle",)), store)
        with pytest.raises(ValueError, match=r"'nowhere:Solver' cannot be loaded"):
            run_experiment(small(solvers=("nowhere:Solver",)), store)
