"""Fitting from the command line: choice, interruption, progress, help, completion."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from cli_runs import invoke, refused, works
from softsplit import load_model, load_tree
from softsplit.estimators import classifier_cv
from softsplit.reading.text import tree_text
from softsplit.report import comparison
from softsplit.report.comparison import ComparisonOptions
from softsplit.support.row_budgets import ROWS
from tables import people, written

COMMANDS = [
    "fit", "predict", "explain", "check", "report", "path", "demo", "info", "compile", "vc",
    "experiment", "export",
]  # fmt: skip


def test_what_is_not_given_is_chosen_by_cross_validation(tmp_path):
    path, model = written(tmp_path, "plain"), tmp_path / "m.json"
    result = invoke("fit", path, "-t", "risk", "-m", model, "--jobs", 1, "--text", "full")
    words = " ".join(works(result).split())
    assert "class high" in words and "cross-validated accuracy" in words
    assert "chosen by 5-fold cross-validation among" in words
    tree = load_model(model)
    assert tree.tree_.target == "risk"
    assert tree.feature_names_in_.tolist() == ["age", "town", "height", "smoker"]
    lines = result.stderr.splitlines()
    assert lines[0] == f"softsplit: reading {path}"
    assert "60 rows, 4 variables" in lines[1]
    given = json.loads(
        invoke("fit", path, "-t", "risk", "--scale", "quantile", "--depth", 2, "--json", "-q",
               "--scope", "local", "--jobs", 1).stdout
    )  # fmt: skip
    assert given["scale"] == "quantile"
    assert given["depth"] in (1, 2)  # without the branches that have left it
    assert given["global_strength"] == 0 and given["local_strength"] > 0
    assert given["loss"] == "log"


def test_a_fit_ends_with_how_good_how_many_columns_and_where_the_report_is(tmp_path):
    path, model = written(tmp_path, "plain"), tmp_path / "m.json"
    given = ("fit", path, "-t", "risk", "--depth", 1, "--strength", 1, "--jobs", 1, "-q")
    said, used, page = works(invoke(*given)).splitlines()[-3:]
    assert said.startswith("right on ") and "; always guessing " in said
    assert used.startswith("columns used: ") and used.endswith(" of 4")
    assert page == "report: --report tree.html makes one, --model tree.json keeps the tree"
    assert works(invoke(*given, "-m", model)).splitlines()[-1] == page.partition(",")[0]


def test_the_demo_prints_its_tree_and_writes_the_report(tmp_path):
    page = tmp_path / "demo.html"
    text = works(invoke("demo", "--out", page, "-q", "--jobs", 1))
    assert "question 1: add the points" in text
    assert text.splitlines()[-1] == f"report: {page}"
    assert "repaid: no or yes?" in page.read_text(encoding="utf-8")


def test_large_tables_are_compared_on_a_sample_and_trained_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(classifier_cv, "ROWS", replace(ROWS, compared=50))
    path = tmp_path / "t.csv"
    people(200).to_csv(path, index=False)
    arguments = ["fit", path, "-t", "risk", "--depth", 1, "-q", "--text", "full"]
    first = invoke(*arguments, "--jobs", 1).stdout
    assert 50 <= int(re.search(r"on (\d+) of 200 rows drawn for that", first)[1]) < 200
    assert "on all 200 rows with the chosen settings" in first
    assert invoke(*arguments, "--jobs", 2).stdout == first


def test_a_path_shows_what_each_strength_buys(tmp_path, monkeypatch):
    options = ComparisonOptions(folds=2)
    monkeypatch.setattr(comparison, "OPTIONS", options)
    path = written(tmp_path, "plain")
    lines = works(invoke("path", path, "-t", "risk", "--points", 3, "--jobs", 1, "-q")).splitlines()
    assert len(lines) == 6 and "95 % interval" in lines[0] and "age" in lines[1]
    line = f"softsplit fit {path} -t risk --jobs 1 --depth 2 --strength STRENGTH"
    assert lines[5] == f"the tree of a line: {line}"
    said = json.loads(
        invoke("path", path, "-t", "risk", "--points", 3, "--jobs", 1, "-q", "--json").stdout
    )
    assert [s["features"] for s in said] == sorted((s["features"] for s in said), reverse=True)
    assert said[0]["accuracy"]["low"] <= said[0]["accuracy"]["value"]


def test_a_page_of_the_tree_alone_needs_no_table(tmp_path):
    path, model, page = written(tmp_path, "plain"), tmp_path / "m.json", tmp_path / "page.html"
    invoke("fit", path, "-t", "risk", "-m", model, "--depth", 1, "--strength", 2, "-q")
    assert invoke("report", model, "-o", page).stdout.strip() == str(page)
    html, tree = page.read_text(), load_tree(model).tree_
    assert "script-src 'none'" in html and "<script" not in html
    for line in tree_text(tree).splitlines():
        if ": unknown" in line:
            assert line in html
    for name in tree.column_names:
        assert f'<th scope="row">{name}</th>' in html
    needed = "--by needs the table that the tree was fitted to; give it as DATA"
    refused(invoke("report", model, "-o", page, "--by", "town"), needed)


def test_info_describes_a_model_and_the_installation(tmp_path):
    path, model = written(tmp_path, "plain"), tmp_path / "m.json"
    invoke("fit", path, "-t", "risk", "-m", model, "--depth", 1, "--strength", 2, "-q")
    said = json.loads(invoke("info", model, "--json").stdout)
    assert said["target"] == "risk" and said["columns"] == ["age", "town", "height", "smoker"]
    assert said["features"] == 4
    assert said["tree"] == tree_text(load_tree(model).tree_)
    text = invoke("info", model).stdout
    assert said["tree"] in text
    assert said["left_out"] == [] and "left" not in text.split("\n\n")[0]
    assert "steepness" in said and "steepness" not in text
    assert "numba" in invoke("info").stdout


def pieces_of(terminal):
    """What is written to a terminal, until its other end is closed."""
    try:
        while piece := os.read(terminal, 4096):
            yield piece.decode(errors="replace")
    except OSError:  # so Linux says that it is closed
        pass
    finally:
        os.close(terminal)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT to send")
def test_ctrl_c_keeps_the_best_tree_so_far(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 12))
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=1500), [-1, 0, 1])
    path, model = tmp_path / "t.csv", tmp_path / "m.json"
    pd.DataFrame(X).add_prefix("v").assign(y=y).to_csv(path, index=False)
    command = [sys.executable, "-m", "softsplit", "fit", str(path), "-t", "y", "-m", str(model)]
    # Of its own group, so that nothing else gets the signal; not ignored as in the background. A
    # terminal is told of every candidate, where a pipe gets a line in ten seconds.
    terminal, end = os.openpty()
    with open(tmp_path / "out.txt", "w") as printed:
        process = subprocess.Popen(
            [*command, "--time-limit", "0", "--report", str(tmp_path / "r.html")],
            stdout=printed, stderr=end, start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )  # fmt: skip
    os.close(end)
    rest = ""
    for piece in pieces_of(terminal):
        before, rest = rest.count(": accuracy "), rest + piece
        if before < 2 <= rest.count(": accuracy "):  # two candidates have been judged
            process.send_signal(signal.SIGINT)
    assert process.wait() == 130, rest
    out = (tmp_path / "out.txt").read_text()
    assert "interrupted; the choice is among the" in rest
    assert "interrupted: this is the best tree so far." in rest
    assert "no report is written after Ctrl-C" in rest
    assert "Traceback" not in rest and "class " in out
    assert load_model(model).predict(pd.DataFrame(X).add_prefix("v")).shape == (1500,)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_there_for_every_command(command):
    result = invoke(command, "--help")
    assert result.exit_code == 0
    assert "Usage: softsplit" in result.stdout or f"Usage: root {command}" in result.stdout
    if command not in ("vc", "experiment", "export"):
        assert "Example" in result.stdout
        assert "--json" in result.stdout
    assert command in invoke("--help").stdout


def test_ctrl_c_before_anything_is_found_is_said(monkeypatch):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("softsplit.cli.info._installation", interrupted)
    result = invoke("info")
    assert result.exit_code == 130
    assert result.stderr == "softsplit: interrupted before there was anything to keep.\n"
