"""Whatever stops a run or a fit: nothing recorded is lost, doubled or wrong.

A run that is killed is in test_experiment_runner.py. With SOFTSPLIT_TIMES=50 each is tried fifty
times, at other moments.
"""

from __future__ import annotations

import os
import random
import sqlite3

import pytest

from experiment_parts import contents, small
from fault_runs import damaged, interrupt, start_run, use_damaged, whole_run
from slow_cases import TIMES
from softsplit.experiments import store as store_module
from softsplit.experiments.runner import run_experiment
from softsplit.experiments.store import Store, StoreError

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals and limits of Unix")


@pytest.fixture(autouse=True)
def bundled_data(monkeypatch):
    monkeypatch.delenv("SOFTSPLIT_DATA", raising=False)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The store of a run that nothing disturbed, and its rows."""
    path = tmp_path_factory.mktemp("whole") / "small.sqlite"
    before = os.environ.pop("SOFTSPLIT_DATA", None)
    rows = whole_run(path)
    if before is not None:
        os.environ["SOFTSPLIT_DATA"] = before
    with sqlite3.connect(path) as base:
        failed = base.execute("SELECT message FROM cells WHERE test_accuracy IS NULL").fetchall()
    base.close()
    assert failed == []
    return path, rows


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(TIMES))
def test_a_full_disk(seed, whole, tmp_path):
    path = tmp_path / "full.sqlite"
    run = start_run(path, file_limit=400_000 + 20_000 * (seed % 20))
    _, said = run.communicate()
    assert run.returncode == 2
    assert "the disk may be full: make room, and run the same command again" in said
    kept = set(contents(path))
    assert 0 < len(kept) < len(whole[1]) and kept <= set(whole[1])
    with Store(path) as store:
        run_experiment(small(), store)
    assert contents(path) == whole[1]


@pytest.mark.slow
def test_two_runs_on_one_store(whole, tmp_path):
    path = tmp_path / "shared.sqlite"
    runs = [start_run(path), start_run(path)]
    for run in runs:
        _, said = run.communicate()
        assert run.returncode == 0, said
    assert contents(path) == whole[1]


@pytest.mark.slow
def test_a_damaged_store_is_refused_or_unharmed(whole, tmp_path):
    ends = [
        use_damaged(
            damaged(whole[0].read_bytes(), random.Random(seed)), tmp_path / "d.sqlite", whole[1]
        )
        for seed in range(60 * TIMES)
    ]
    assert ends.count("refused") > 20 * TIMES


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("cells SET test_accuracy = test_accuracy + 1e-15", "the row of .* was changed"),
        ("cells SET tree = zeroblob(length(tree))", "the row of .* was changed"),
        ("cells SET status = 'OPTIMAL '", "the row of .* was changed"),
        ("notes SET content = '{' WHERE kind = 'runs'", "the record of runs cannot .*"),
        ("notes SET content = '{\"a\": 1}' WHERE kind = 'runs'", "the record of runs cannot .*"),
        ("notes SET content = '[]' WHERE kind = 'specs'", "the spec cannot .*"),
        ("notes SET content = 'x' WHERE kind = 'versions'", "the record of versions cannot .*"),
    ],
)
def test_a_changed_row_or_note_is_named(change, sentence, whole, tmp_path):
    path = tmp_path / "changed.sqlite"
    path.write_bytes(whole[0].read_bytes())
    with sqlite3.connect(path) as base:
        changed = base.execute(f"UPDATE {change}").rowcount
    base.close()
    assert changed >= 1
    message = f"is damaged: {sentence}; go back to a copy"
    with pytest.raises(StoreError, match=message), Store(path) as store:
        store.runs("small")
        store.spec("small")
        store.check_versions({})


def test_a_store_held_by_another_program_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "PATIENCE", 0.1)
    path = tmp_path / "held.sqlite"
    Store(path).close()
    with sqlite3.connect(path, isolation_level=None) as other, Store(path) as store:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreError, match="another program holds it: end that one"):
            store.skip({})
        other.execute("ROLLBACK")
    other.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(TIMES))
def test_ctrl_c_keeps_the_path_so_far(seed):
    """Fits are in test_training.py, and the choice of a tree in test_cli_fit.py."""
    end, said, _ = interrupt(seed % 8, after="start 2")
    assert end == "kept", said
    assert "interrupted" in said and "Traceback" not in said
