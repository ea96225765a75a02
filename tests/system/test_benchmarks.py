"""The benchmark scripts run, on a small scale: what they measure is not judged here."""

from __future__ import annotations

import argparse
import csv
import importlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import warnings
from contextlib import redirect_stdout

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

from places import ROOT

pytestmark = pytest.mark.slow

FOLDER = ROOT / "benchmarks"
ROW = "iris,numeric,L0glob,1.0,0,0.1"


def run(script, *arguments, reference=None, data=None):
    """What a script prints. It runs in this process, where the library is loaded already."""
    with (
        pytest.MonkeyPatch.context() as patch,
        warnings.catch_warnings(action="ignore"),  # a user would see them on standard error
        redirect_stdout(io.StringIO()) as printed,
    ):
        for name, value in (("SOFTSPLIT_DATA", data), ("SOFTSPLIT_REFERENCE", reference)):
            if value is not None:
                patch.setenv(name, str(value))
            elif name == "SOFTSPLIT_DATA":
                patch.delenv(name, raising=False)
        patch.setattr(sys, "argv", [script, *arguments])
        patch.syspath_prepend(str(FOLDER))
        try:
            importlib.import_module(script.removesuffix(".py")).main()
        except SystemExit as end:
            assert not end.code, end.code
    return printed.getvalue()


def run_alone(script, *arguments):
    """The same in a process of its own, where that is what the script measures or changes."""
    command = [sys.executable, str(FOLDER / script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def module(name):
    """A script as a module."""
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(FOLDER))


def read_rows(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture
def reference(tmp_path):
    columns = "dataset,coding,form,strength,fold,min_class_rate"
    (tmp_path / "ipopt.csv").write_text(f"{columns},best_objective\n{ROW},3.7535\n")
    (tmp_path / "best_known.csv").write_text(f"{columns},objective\n{ROW},3.3927\n")
    return tmp_path


@pytest.mark.parametrize("part", ["objective", "speed"])
def test_solvers(reference, part):
    pytest.importorskip("casadi", reason="needs softsplit[ipopt]")
    out = run("solvers.py", part, "--starts", "2", "--ipopt-starts", "1", reference=reference)
    assert "iris L0glob 1" in out


def test_global_optimum():
    out = run("global_optimum.py", "--problems", "1", "--kinds", "depth 1, 1 feature")
    assert "| depth 1, 1 feature, 2 classes | 1 of 1 |" in out and "depth 2" not in out


@pytest.mark.skipif("SOFTSPLIT_DATA" not in os.environ, reason="SOFTSPLIT_DATA is not set")
def test_decomposition(tmp_path):
    pytest.importorskip("matplotlib", reason="needs softsplit[plots]")
    page = tmp_path / "page.md"
    places = [f"<!-- begin {part} -->\n<!-- end {part} -->" for part in ("native", "step")]
    page.write_text("\n".join(["before", *places, "after\n"]))
    small = ["--out", str(tmp_path), "--page", str(page), "--datasets", "car"]
    small += ["--folds", "1", "--starts", "2", "--macro-iterations", "1", "--deepest", "2"]

    def part(name):
        return run("decomposition.py", name, *small, data=os.environ["SOFTSPLIT_DATA"])

    assert "S-NB-DEC, init 20, proximal" in part("native")
    assert part("native") == ""  # what has been run is not run again
    part("step")
    printed = part("report")
    assert "within 0.2 points" in printed and "Medians over the runs" in printed
    rows = [line for line in printed.splitlines() if line.startswith("|")]
    written = page.read_text()
    assert [line for line in written.splitlines() if line.startswith("|")] == rows
    assert written.startswith("before\n") and written.endswith("after\n")
    assert len(rows) == 2 + 8 + 2 + 1  # headers, variants of "native", depths of "step"
    assert (tmp_path / "native-car.png").stat().st_size > 1000


def test_decomposition_page_is_what_the_script_prints(tmp_path):
    """The tables of the page are made of the runs beside it, and of nothing else."""
    report_parts = module("decomposition_report").report_parts
    Book = module("decomposition_runs").Book
    write_page = module("pages").write_page
    results = FOLDER.parent / "docs" / "results"
    page = results / "decomposition.md"
    folder = results / "decomposition"
    content = page.read_text(encoding="utf-8")
    texts = report_parts(Book(folder), folder / "steps.json")
    for text in texts.values():
        assert text in content
    tables = "\n".join(texts.values()).splitlines()
    assert all(line in tables for line in content.splitlines() if line.startswith("|"))
    with pytest.raises(SystemExit, match="<!-- begin nothing -->"):
        write_page(page, {"nothing": ""})
    copy = tmp_path / "page.md"
    copy.write_text(content, encoding="utf-8")
    write_page(copy, texts)
    assert copy.read_text(encoding="utf-8") == content

    shutil.copy(folder / "runs.jsonl", tmp_path)
    Book(tmp_path).forget("native", ["car"])  # what --fresh does
    left = Book(tmp_path)
    assert ("car", None) in left.tables("ipopt") and ("car", None) not in left.tables("native")
    assert ("dna", None) in left.tables("native")


def test_selection(tmp_path):
    rows, document = tmp_path / "rows.jsonl", tmp_path / "selection.md"
    rows.write_text('{"dataset": "iris", "fold_seed": 1, "fold": 0, "method": "tree"}\n')  # former
    small = ["--out", str(rows), "--datasets", "iris", "--fold-seed", "1"]
    fits = [*small, "--folds", "0", "--methods", "tree", "peer-default", "cart"]
    first = run("selection.py", "run", *fits)
    assert all(f"iris 0 {method}" in first for method in ("tree", "peer-default", "cart"))
    assert run("selection.py", "run", *fits) == ""  # what has been run is not run again
    document.write_text("before\n<!-- figures: begin -->\nold\n<!-- figures: end -->\nafter\n")
    run("selection.py", "table", *small, "--document", str(document))
    text = document.read_text()
    line = next(line for line in text.splitlines() if line.startswith("| iris | 150 | 4 | 3 |"))
    assert "old" not in text and all(80 <= float(cell) <= 100 for cell in line.split("|")[5:8])
    assert "- Tree against peer-default, 1 data sets: accuracy" in text
    assert text.startswith("before\n") and text.endswith("after\n")


def test_methods_that_are_missing_or_fail(tmp_path, monkeypatch, capsys):
    """A method that is not installed is left out in words; one that raises leaves its sentence."""
    methods = module("methods")
    monkeypatch.setitem(methods.PACKAGES, "abess", "no_such_package")
    monkeypatch.setitem(methods.METHODS, "cart", lambda X, y, iterations: 1 / 0)
    args = argparse.Namespace(
        out=tmp_path / "rows.jsonl", methods=["cart", "abess"], peer_iterations=1, datasets=None
    )
    X, y = np.arange(4.0)[:, None], np.array([0, 0, 1, 1])
    methods.work([methods.Task({"dataset": "four"}, X, y, X, y, 2)], args)
    printed = capsys.readouterr().out
    assert "abess is left out: the package no_such_package is not installed." in printed
    failed = "four cart: ZeroDivisionError: division by zero"
    assert failed in printed and failed in methods.failures(methods.read_rows(args))


def test_methods_judge_a_class_that_was_not_there_to_learn():
    methods = module("methods")
    X, y = np.arange(4.0)[:, None], np.array([0, 0, 2, 2])
    model = DummyClassifier(strategy="prior").fit(X, y)
    weights = np.array([0.1, 0.1, 0.3, 0.5])
    task = methods.Task({}, X, y, X, np.array([0, 0, 1, 2]), 3, weights=weights)
    scores = methods.judge(model, task)
    assert scores["accuracy"] == pytest.approx(0.2) and scores["balanced"] == pytest.approx(1 / 3)
    assert scores["log_loss"] == pytest.approx(0.7 * np.log(2) + 0.3 * 15 * np.log(10))


def test_noise_and_rare_classes(tmp_path):
    few = ("--out", str(tmp_path / "noise.jsonl"), "--draws", "1", "--methods", "cart")
    assert "iris 0 400 cart" in run("new_rows.py", "noise", "run", "--datasets", "iris", *few)
    assert "- 400 columns, cart: " in run("new_rows.py", "noise", "table", *few)
    few = ("--out", str(tmp_path / "rare.jsonl"), "--draws", "1", "--methods", "cart", "peer")
    assert "wdbc 0.05 0 peer" in run("new_rows.py", "rare", "run", "--datasets", "wdbc", *few)
    assert "- 5% positives, 1 data sets, cart: " in run("new_rows.py", "rare", "table", *few)


def test_ordinary_problems(tmp_path):
    few = ("--out", str(tmp_path / "rows.jsonl"), "--problems", "1")
    assert len(run("ordinary.py", "run", *few).splitlines()) == 1
    assert run("ordinary.py", "run", *few) == ""
    assert "1 problems of 4 data sets" in run("ordinary.py", "table", *few)


def test_accuracy(reference, tmp_path):
    names = "dataset,form,prototype_mean_over_starts"
    (reference / "prototype_accuracy.csv").write_text(f"{names}\niris,L1,0.9533\n")
    common = ("--datasets", "iris", "--starts", "2", "--out", str(tmp_path))
    out = run("accuracy.py", "--models", "L1", "L0glob", *common, reference=reference)
    assert "| iris | 150 | 4 | 3 | 2 | L1 | -5 | 96.3 |" in out
    assert "of 2 rows" in out
    table = read_rows(tmp_path / "accuracy.csv")
    assert [row["prototype_accuracy"] for row in table] == ["0.9533", ""]
    assert all(float(row["kept_objective"]) <= float(row["objective"]) for row in table)
    assert all(0.8 < float(row["accuracy"]) <= 1 for row in table)
    assert len(read_rows(tmp_path / "accuracy_runs.csv")) == 2 * 5 * (2 + 1)


def test_what_a_script_needs_first_is_said(monkeypatch):
    monkeypatch.delenv("SOFTSPLIT_REFERENCE", raising=False)
    with pytest.raises(AssertionError, match="name the folder of the reference tables"):
        run("solvers.py", "objective")


def test_mutation(tmp_path):
    pytest.importorskip("cosmic_ray", reason="needs the development tools")
    arguments = ("mutation.py", "sparsity", "--every", "15", "--journal", str(tmp_path))
    printed = run_alone(*arguments)
    assert re.search(r"\| sparsity \| \d+ \| (\d) \| \1 \| 0 \| 0 \|", printed)
    (journal,) = tmp_path.iterdir()
    ends = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [list(end.values()) for end in ends] == [["noticed"]] * len(ends)
    journal.write_text(
        "\n".join(json.dumps(end) for end in ends[:-1]) + "\n"
    )  # stopped before the end
    assert run_alone(*arguments) == printed
    assert len(journal.read_text().splitlines()) == len(ends) > 2


def test_load_leaves_nothing_behind():
    printed = run_alone("load.py", "--times", "12")
    assert "| flat within 5 % | yes |" in printed
    assert "| threads left | 0 |" in printed and "| files left open | 0 |" in printed


@pytest.mark.skipif("SOFTSPLIT_DATA" not in os.environ, reason="SOFTSPLIT_DATA is not set")
def test_exports_agree():
    asked = ("agree", "iris", "--runners", "python,sqlite")
    text = run("exports.py", *asked, data=os.environ["SOFTSPLIT_DATA"])
    assert re.search(r"2 trees, [\d,]+ answers, 0 with another class", text)


def test_exports_are_timed():
    assert "| 8 numbers |" in run("exports.py", "million", "--rows", "500")


def test_benchmarks_by_name_are_scripts_of_the_folder():
    bench = module("bench")
    steps = [step.split()[0] for benchmark in bench.BENCHMARKS.values() for step in benchmark.steps]
    assert [step for step in steps if not (FOLDER / step).is_file()] == []
    assert bench.main("nothing") == 1 and bench.main() == 0
