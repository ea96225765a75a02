"""Tables and figures from stores that were written by hand, so that the answer is known."""

from __future__ import annotations

import csv
import json
import xml.etree.ElementTree as ElementTree

import pandas as pd
import pytest

from experiment_parts import small
from softsplit.experiments.cells import WHOLE, Cell, chains_of
from softsplit.experiments.choice import best_start, nested_choice, nested_rows, paper_choice
from softsplit.experiments.results import write_plots, write_results
from softsplit.experiments.store import CellOutcome, Row, Store, StoreError, open_store
from softsplit.experiments.tables import latex, make_table, markdown, peer_table, spec_rows


def outcome(cell: Cell) -> CellOutcome:
    """Made so that the strongest strength is best on test folds, the weakest on inner folds.

    Fold 1 is a tenth better than fold 0, start 1 a hundredth worse than start 0 but of lower
    objective; the middle strength of start 1 fails.
    """
    strength = max(cell.local_strength, cell.global_strength)
    if strength == 1.0 and cell.start == 1 and cell.inner == WHOLE:
        return CellOutcome("INFEASIBLE", test_accuracy=0.0, objective=0.0)
    rank = {0.25: 0, 1.0: 1, 4.0: 2}[strength]
    accuracy = 0.8 + 0.02 * (rank if cell.inner == WHOLE else -rank)
    accuracy += 0.1 * cell.fold - 0.01 * cell.start + 0.001 * (cell.model == "L0glob")
    return CellOutcome(
        "OPTIMAL",
        objective=5.0 - cell.start,
        cost=1.0,
        test_accuracy=accuracy,
        test_log_loss=0.5,
        local_sparsity=10.0 + 20.0 * rank,
        global_sparsity=5.0 * rank,
        features_used=4 - rank,
        nonzeros=8,
        seconds=0.25 if cell.solver == "native" else 1.0,
        predict_seconds=0.001,
    )


def fill(store: Store, spec, outcome=outcome) -> None:
    store.add_spec(spec)
    for chain in chains_of(spec):
        for index in range(len(chain.steps)):
            cell = chain.cell(index)
            store.write(Row(cell, index, outcome(cell)))


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "made.sqlite") as store:
        fill(store, small())
        yield store


def test_the_papers_choice_looks_at_the_test_folds(store):
    chosen = paper_choice(spec_rows(small(), store))
    row = chosen.loc[("iris", "L1", "native")]
    assert row["local_strength"] == 4.0
    assert row["test_accuracy"] == pytest.approx(0.84 + 0.05 - 0.005)
    assert row["local_sparsity"] == 50.0


def test_the_nested_choice_does_not(store):
    frame = spec_rows(small(), store)
    assert set(nested_choice(frame)[["local_strength", "global_strength"]].max(axis=1)) == {0.25}
    changed = frame.copy()
    outside = changed["inner"] == WHOLE
    changed.loc[outside, "test_accuracy"] = 1 - changed.loc[outside, "test_accuracy"]
    pd.testing.assert_frame_equal(nested_choice(changed), nested_choice(frame))
    rows = nested_rows(frame)
    assert (rows["inner"] == WHOLE).all() and len(rows) == 2 * 2 * 2 * 2
    kept = best_start(rows)
    assert set(kept["start"]) == {1} and len(kept) == 8


def test_the_table_stands_beside_the_papers(store):
    table = make_table(small(), store)
    assert list(zip(table["dataset"], table["model"], strict=True)) == [
        ("iris", "L1"), ("iris", "L0glob"), ("wine", "L1"), ("wine", "L0glob"),
    ]  # fmt: skip
    row = table.iloc[1]
    assert (row["paper_accuracy"], row["paper_local_sparsity"], row["paper_log2"]) == (
        0.96, 83.33, 5,
    )  # fmt: skip
    assert row["accuracy"] == pytest.approx(0.886)
    assert row["nested_accuracy"] == pytest.approx(0.8 + 0.001 + 0.05 - 0.005)
    assert row["nested_best_accuracy"] == pytest.approx(0.8 + 0.001 + 0.05 - 0.01)
    assert row["log2"] == 2.0
    assert row["failed"] == 2


def test_peers(tmp_path):
    spec = small(models=(), peers=("CART-D", "HistGB"), table="peers", inner=None)
    with Store(tmp_path / "peers.sqlite") as store:
        fill(store, spec, lambda cell: CellOutcome("FITTED", test_accuracy=0.9 - 0.2 * cell.fold))
        store.skip({"HistGB": "it is left out on purpose"})
        table = peer_table(spec_rows(spec, store), spec)
        paths = write_results(spec, store, tmp_path)
    assert table["model"].tolist() == ["CART-D", "HistGB"] * 2
    assert table["test_accuracy"].tolist() == pytest.approx([0.8] * 4)
    assert table["accuracy_std"].tolist() == pytest.approx([0.1] * 4)
    assert "Left out: HistGB, because it is left out on purpose." in paths[1].read_text()


def test_files(store, tmp_path):
    paths = write_results(small(), store, tmp_path / "out")
    assert [path.name for path in paths] == [
        "small.csv", "small.md", "small.tex", "small_verdict.csv", "small_nested.csv",
    ]  # fmt: skip
    with paths[0].open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 4 and float(rows[0]["accuracy"]) == pytest.approx(0.885)
    text = paths[1].read_text()
    assert "| iris | L1 | 96.3 | 88.5 |" in text
    assert "96 of 96 cells: 8 INFEASIBLE, 88 OPTIMAL." in text
    assert "2 inner folds with 1 start," in text
    assert r"iris & L1 & 96.3" in paths[2].read_text()


@pytest.mark.parametrize("where", ["own", "folder", "store"])
def test_results_are_not_written_over_data_or_the_store(store, tmp_path, monkeypatch, where):
    """A spec that is called as its data, with the results beside them."""
    spec, data, content = small(), tmp_path / "small.csv", b"x,y\n1,2\n"
    data.write_bytes(content)
    if where == "own":
        spec = small(datasets=[{"name": "mine", "file": str(data), "target": "y"}])
    elif where == "folder":
        entries = [{"name": "iris", "file": "small.csv", "categorical": []}]
        (tmp_path / "datasets.json").write_text(json.dumps({"datasets": entries}))
        monkeypatch.setenv("SOFTSPLIT_DATA", str(tmp_path))
    else:
        monkeypatch.setattr(store, "path", data)
    what = {"own": "data set 'mine'", "folder": "data set 'iris'", "store": "the store"}[where]
    with pytest.raises(ValueError, match=rf"would overwrite {what}; name another file\.$"):
        write_results(spec, store, tmp_path)
    assert data.read_bytes() == content and not (tmp_path / "small.md").exists()


def test_markdown_and_latex_say_what_is_missing():
    table = pd.DataFrame({"a_b": ["x_1", "y&z"], "accuracy": [0.5, None], "reached": [True, False]})
    assert markdown(table).splitlines() == [
        "| a b | accuracy | reached |",
        "| --- | ---: | ---: |",
        "| x_1 | 50.0 | yes |",
        "| y&z | - | no |",
    ]
    assert r"y\&z & - & no \\" in latex(table, "50 %")
    assert r"\caption{50 \%}" in latex(table, "50 %")


def test_an_empty_store_says_what_to_run(tmp_path):
    with Store(tmp_path / "empty.sqlite") as store:
        with pytest.raises(StoreError, match=r"holds no experiment 'small'; run it first"):
            store.spec("small")
        with pytest.raises(StoreError, match=r"no row of experiment 'small' yet; run it first"):
            make_table(small(), store)
    with pytest.raises(FileNotFoundError, match=r"there is no store .*; run the experiment first"):
        open_store(small(), tmp_path / "none.sqlite")


def texts(path) -> str:
    """An SVG file as text, if it is one."""
    ElementTree.parse(path)
    return path.read_text()


def test_scatter_and_boxes(tmp_path):
    spec = small(models=("L1", "Linf", "L0loc", "L0glob"), figures=("scatter", "boxes"))
    with Store(tmp_path / "figures.sqlite") as store:
        fill(store, spec)
        paths = write_plots(spec, store, tmp_path)
        assert [path.name for path in paths] == [
            "small_scatter_global.svg", "small_scatter_local.svg", "small_boxes.svg",
        ]  # fmt: skip
        before = [texts(path) for path in paths]
        assert [texts(path) for path in write_plots(spec, store, tmp_path)] == before
