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
from slow_cases import slow
from softsplit import load_model, load_tree
from softsplit.formulations.likelihood import LikelihoodFormulation
from softsplit.reading.text import tree_text
from softsplit.report import comparison
from softsplit.report import study as fitting
from softsplit.report.comparison import ComparisonOptions
from softsplit.report.study import StudyOptions
from tables import people, written

COMMANDS = [
    "fit", "predict", "explain", "check", "report", "path", "demo", "info", "compile", "vc",
    "experiment", "export",
]  # fmt: skip


def compare_cells(monkeypatch, count):
    """Let ``softsplit fit`` compare settings on so many cells of a table."""
    changed = replace(LikelihoodFormulation.choice, compared_cells=count)
    monkeypatch.setattr(LikelihoodFormulation, "choice", changed)


def test_what_is_not_given_is_chosen_by_cross_validation(tmp_path):
    path, model = written(tmp_path, "plain"), tmp_path / "m.json"
    result = invoke("fit", path, "-t", "risk", "-m", model, "--jobs", 1)
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


def test_sizes_are_given_in_numbers(tmp_path):
    path, quick = written(tmp_path, "plain"), ["-t", "risk", "--jobs", 1, "-q", "--json"]
    limits = ["--max-features", 1, "--max-terms", 1, "--max-questions", 1]
    for given in ([], ["--depth", 2, "--strength", 0.1]):
        found = json.loads(invoke("fit", path, *quick, *given, *limits).stdout)
        assert len(found["selected_features"]) <= 1
    walked = json.loads(invoke("path", path, *quick, "--points", 3, "--max-features", 2).stdout)
    assert max(line["features"] for line in walked) <= 2


def test_the_papers_model_is_an_option_away(tmp_path):
    path = written(tmp_path, "plain")
    quick = ["-t", "risk", "--loss", "cost", "--jobs", 1, "-q", "--json"]
    given = json.loads(invoke("fit", path, *quick, "--depth", 1, "--strength", 2).stdout)
    assert (given["loss"], given["scale"], given["steepness"]) == ("cost", "minmax", 512.0)
    assert given["local_strength"] == 0 and given["global_strength"] == 2
    chosen = json.loads(invoke("fit", path, *quick, "--depth", 1).stdout)
    assert chosen["loss"] == "cost" and chosen["steepness"] in (512.0, 128.0)
    walked = json.loads(invoke("path", path, *quick, "--points", 2).stdout)
    assert [line["local_strength"] for line in walked] == [0, 0]


def test_large_tables_are_compared_on_a_sample_and_trained_whole(tmp_path, monkeypatch):
    compare_cells(monkeypatch, 300)
    monkeypatch.setattr(fitting, "OPTIONS", StudyOptions(fewest_rows=50))
    path = tmp_path / "t.csv"
    people(200).to_csv(path, index=False)
    arguments = ["fit", path, "-t", "risk", "--depth", 1, "-q"]
    first = invoke(*arguments, "--jobs", 1).stdout
    assert "on 50 of 200 rows drawn for that" in first
    assert "on all 200 rows with the chosen settings" in first
    assert invoke(*arguments, "--jobs", 2).stdout == first


def test_the_report_of_a_model_is_the_report_of_its_fit(tmp_path, monkeypatch):
    options = ComparisonOptions(points=2, folds=2)
    monkeypatch.setattr(comparison, "OPTIONS", options)
    path, model, page = written(tmp_path, "plain"), tmp_path / "m.json", tmp_path / "r.html"
    quick = ["--depth", 1, "--strength", 2, "-q", "--jobs", 1]
    fitted = invoke("fit", path, "-t", "risk", "-m", model, "-r", page, "--json", *quick)
    works(fitted)
    again = tmp_path / "again.html"
    made = invoke("report", model, path, "-o", again, "--json", "-q", "--jobs", 1)
    said, before = json.loads(made.stdout), json.loads(fitted.stdout)
    assert said["accuracy"] == before["accuracy"]
    assert said["majority"]["value"] < said["accuracy"]["value"]
    pages = [
        file.read_text().split("<main>")[1].split('id="provenance"')[0] for file in (page, again)
    ]
    # A file does not know why its tree was chosen, nor whether it was found by its settings alone.
    unknown = r'<p id="rule">.*?</p>|<details class="anew">.*?</details>'
    first, second = (re.sub(unknown, "", text, flags=re.DOTALL) for text in pages)
    assert first == second


def test_a_path_shows_what_each_strength_buys(tmp_path, monkeypatch):
    options = ComparisonOptions(folds=2)
    monkeypatch.setattr(comparison, "OPTIONS", options)
    monkeypatch.setattr(comparison, "_stability", pytest.fail)  # no line shows resamples
    path = written(tmp_path, "plain")
    lines = works(invoke("path", path, "-t", "risk", "--points", 3, "--jobs", 1, "-q")).splitlines()
    assert len(lines) == 6 and "95 % interval" in lines[0] and "age" in lines[1]
    assert lines[5].startswith(f"the tree of a line: softsplit fit {path} -t risk --depth 2 ")
    said = json.loads(
        invoke("path", path, "-t", "risk", "--points", 3, "--jobs", 1, "-q", "--json").stdout
    )
    assert [s["features"] for s in said] == sorted((s["features"] for s in said), reverse=True)
    assert said[0]["accuracy"]["low"] <= said[0]["accuracy"]["value"]


def test_the_demo_ends_with_the_path_of_its_report(tmp_path, monkeypatch):
    options = ComparisonOptions(points=2, folds=2)
    monkeypatch.setattr(comparison, "OPTIONS", options)
    page = tmp_path / "demo.html"
    demo = works(invoke("demo", "--data", "iris", "--out", page, "--jobs", 1))
    assert demo.splitlines()[-1] == str(page)
    assert page.read_text().startswith("<!doctype html>")


def test_classes_that_no_leaf_has_are_named(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 200)
    frame = pd.DataFrame({"a": y + rng.normal(0, 0.2, 200), "kind": [f"k{i}" for i in y]})
    frame.to_csv(tmp_path / "four.csv", index=False)
    given = ("fit", tmp_path / "four.csv", "-t", "kind", "-q", "--strength", 0.1, "--depth")
    told = re.search(r"never predicted +2 of 4 classes: k\d, k\d\n", invoke(*given, 1).stdout)
    assert told and "never predicted" not in invoke(*given, 3).stdout


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


def test_ctrl_c_before_there_is_a_tree_on_all_rows_keeps_that_of_the_sample(tmp_path, monkeypatch):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    compare_cells(monkeypatch, 120)
    monkeypatch.setattr(fitting, "OPTIONS", StudyOptions(fewest_rows=30))
    monkeypatch.setattr(fitting, "_on_all_rows", interrupted)
    model = tmp_path / "m.json"
    result = invoke("fit", written(tmp_path, "plain"), "-t", "risk", "-m", model, "--depth", 1)
    assert result.exit_code == 130
    assert "interrupted; the tree of the choice is kept" in (result.stderr)
    assert "on the 30 rows drawn for the choice" in result.stdout
    assert model.exists()


def test_words_come_before_anything_that_takes_long(tmp_path):
    """The first line is said before pandas, scikit-learn or numba are loaded."""
    script = (
        "import sys\n"
        "from softsplit.cli import app, inputs\n"
        "heavy = {'numba', 'pandas', 'sklearn', 'scipy'}\n"
        "def say(message):\n"
        "    print(message, sorted(heavy & set(sys.modules)))\n"
        "    sys.stdout.flush()\n"
        "    raise SystemExit(0)\n"
        "inputs.say = say\n"
        f"app(['fit', {str(tmp_path / 'x.csv')!r}, '-t', 'y'])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.startswith("reading ") and done.stdout.endswith(" []\n"), done.stderr


LOOKS = """
import sys
from softsplit.cli import app
from softsplit.support.status_line import line_in_use
class Looks:
    def find_spec(name, path, target=None):
        if name in ('pandas', 'sklearn', 'numba', 'scipy.optimize', 'softsplit.report.study'):
            line = line_in_use()
            print(name, '|', None if line is None else line.now().text, flush=True)
sys.meta_path.insert(0, Looks)
app(sys.argv[1:], standalone_mode=False)
"""


@pytest.mark.parametrize("command", ["fit", *slow("path", "report")])
def test_life_is_shown_while_anything_that_takes_long_is_loaded(command, tmp_path):
    path, model = written(tmp_path, "plain"), tmp_path / "m.json"
    given = ["--strength", "1", "--depth", "1"]
    if command == "report":
        works(invoke("fit", path, "-t", "risk", "-m", model, *given))
    words = {
        "fit": [path, "-t", "risk", *given],
        "path": [path, "-t", "risk", "--points", "2"],
        "report": [model, path, "--out", tmp_path / "r.html"],
    }[command]
    started = [sys.executable, "-c", LOOKS, command, *map(str, words)]
    done = subprocess.run(started, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    looked = dict(line.split(" | ") for line in done.stdout.splitlines() if " | softsplit" in line)
    assert {"pandas", "sklearn"} <= set(looked)
    assert " | None" not in done.stdout


@pytest.mark.parametrize("command", ["predict", "explain"])
def test_to_ask_a_tree_takes_nothing_that_trains_one(command, tmp_path):
    path, model = written(tmp_path, "plain"), tmp_path / "m.json"
    works(invoke("fit", path, "-t", "risk", "-m", model, "--strength", 1, "--depth", 1))
    script = (
        "import sys\n"
        "from softsplit.cli import app\n"
        f"app([{command!r}, {str(model)!r}, {str(path)!r}], standalone_mode=False)\n"
        "print(sorted({'numba', 'sklearn', 'scipy', 'joblib'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.endswith("\n[]\n"), done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_there_for_every_command(command):
    result = invoke(command, "--help")
    assert result.exit_code == 0
    assert "Usage: softsplit" in result.stdout or f"Usage: root {command}" in result.stdout
    if command not in ("vc", "experiment", "export"):
        assert "Example" in result.stdout
        assert "--json" in result.stdout
    assert command in invoke("--help").stdout


def test_shells_can_complete():
    environment = {
        **os.environ, "_SOFTSPLIT_COMPLETE": "complete_bash", "COMP_WORDS": "softsplit pre",
        "COMP_CWORD": "1",
    }  # fmt: skip
    command = [sys.executable, "-m", "softsplit"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert "predict" in done.stdout.split()


def test_ctrl_c_before_anything_is_found_is_said(monkeypatch):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("softsplit.cli.info._installation", interrupted)
    result = invoke("info")
    assert result.exit_code == 130
    assert result.stderr == "softsplit: interrupted before there was anything to keep.\n"
