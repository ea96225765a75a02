"""Every command on every kind of table: it works, or says in one sentence what to do."""

from __future__ import annotations

import csv
import io
import json
import re

import numpy as np
import pandas as pd
import pytest

from cli_runs import invoke, refused, works
from softsplit.persistence import load_model
from softsplit.report import comparison
from tables import people, written

QUICK = ["--depth", "1", "--strength", "2", "--jobs", "1", "--quiet"]
SAME = ["plain", "bom", "utf-16", "semicolons", "windows", "tabs", "index", "quoted", "parquet"]
SAME += ["feather", "excel"]
REFUSED = {
    "empty": "empty.csv is empty; its first line must name the columns.",
    "folder": "is a folder; give a file.",
    "absent": "there is no file",
    "header-only": "the table has no rows.",
}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    path = folder / "m.json"
    works(invoke("fit", written(folder, "plain"), "-t", "risk", "--model", path, *QUICK))
    return path


@pytest.fixture(scope="module")
def expected(model, tmp_path_factory):
    """Predictions for the plain table."""
    plain = written(tmp_path_factory.mktemp("plain"), "plain")
    return works(invoke("predict", model, plain, "--proba", "--quiet"))


@pytest.mark.parametrize("kind", SAME)
def test_the_same_table_in_any_dress_gives_the_same_answers(kind, model, expected, tmp_path):
    path = written(tmp_path, kind)
    assert works(invoke("predict", model, path, "--proba", "--quiet")) == expected
    said = json.loads(works(invoke("fit", path, "--target", "risk", "--json", *QUICK)))
    assert said["rows"] == 60 and said["features"] == 4
    assert said["classes"] == ["high", "low"]
    explained = works(invoke("explain", model, path, "--row", 2, "--quiet"))
    assert explained.startswith("row 2: class ")
    facts = json.loads(works(invoke("info", path, "--json")))
    assert facts["rows"] == 60 and facts["column age"] == "numbers"


def test_standard_input_is_a_table(model, expected, tmp_path):
    content = written(tmp_path, "semicolons").read_bytes()
    assert works(invoke("predict", model, "-", "--proba", "--quiet", input=content)) == expected
    parquet = written(tmp_path, "parquet").read_bytes()
    assert works(invoke("predict", model, "-", "--proba", "--quiet", input=parquet)) == expected
    said = works(invoke("fit", "-", "-t", "risk", "--json", *QUICK, input=content))
    assert json.loads(said)["rows"] == 60


@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize("command", ["fit", "path", "predict", "explain", "report", "info"])
def test_what_is_no_table_is_refused_in_one_sentence(command, kind, model, tmp_path):
    path = written(tmp_path, kind)
    arguments = {
        "fit": ["fit", path, "-t", "risk", "--quiet"],
        "path": ["path", path, "-t", "risk", "--quiet"],
        "predict": ["predict", model, path, "--quiet"],
        "explain": ["explain", model, path, "--quiet"],
        "report": ["report", model, path, "--out", tmp_path / "r.html", "--quiet"],
        "info": ["info", path],
    }[command]
    if kind == "header-only" and command in ("predict", "info"):
        works(invoke(*arguments))
    elif kind == "header-only" and command == "explain":
        refused(invoke(*arguments), "there is no row 1; the table has 0.")
    else:
        refused(invoke(*arguments), REFUSED[kind])
    assert not (tmp_path / "r.html").exists()


def test_one_class_is_refused_for_training_and_fine_for_prediction(model, tmp_path):
    path = written(tmp_path, "one-class")
    message = "target 'risk' has only one class, 'low'; a classifier needs at least two."
    refused(invoke("fit", path, "-t", "risk", "--quiet"), message)
    refused(invoke("path", path, "-t", "risk", "--quiet"), message)
    out = tmp_path / "r.html"
    refused(invoke("report", model, path, "--out", out, "--quiet"), "no row is of class 'high'")
    assert works(invoke("predict", model, path, "--quiet")).count("\n") == 61


def test_a_report_of_other_rows_than_those_of_training_is_refused(model, tmp_path):
    frame = pd.read_csv(written(tmp_path, "plain"))
    frame.iloc[:-5].to_csv(tmp_path / "recent.csv", index=False)
    out = tmp_path / "r.html"
    said = invoke("report", model, tmp_path / "recent.csv", "--out", out, "--quiet")
    refused(said, "'recent' is not the table that the tree was fitted to: it has 55 rows, ")
    assert "these rows with --held-out, or judge the tree on them with softsplit check." in (
        said.stderr
    )
    assert not out.exists()


@pytest.mark.parametrize("place", ["path_trees", "assess"])
def test_ctrl_c_in_the_report_keeps_the_tree(tmp_path, monkeypatch, place):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(comparison, place, interrupted)
    path, model, out = written(tmp_path, "plain"), tmp_path / "m.json", tmp_path / "r.html"
    result = invoke("fit", path, "-t", "risk", "-m", model, "-r", out, *QUICK)
    assert result.exit_code == 130
    assert f"no report is written after Ctrl-C; make it with: softsplit report {model}" in (
        result.stderr
    )
    assert "class " in result.stdout
    assert model.exists() and not out.exists()


def test_gaps_are_trained_on_and_predicted(model, expected, tmp_path):
    path, gaps = written(tmp_path, "missing"), tmp_path / "gaps.json"
    fit = ("fit", path, "-t", "risk", "-m", gaps, "--json", "--depth", 1, "--strength", 0.01)
    said = json.loads(works(invoke(*fit, "-q", "--jobs", 1)))
    assert said["rows"] == 60 and said["dropped_rows"] == 0
    assert len(works(invoke("predict", gaps, path, "-q")).splitlines()) == 61
    told = " ".join(works(invoke("explain", gaps, path, "--row", 4, "-q")).split())
    assert "age = unknown" in told or "age unknown" in told
    result = invoke("predict", model, path, "--proba", "-q")  # of a table without gaps
    found, full = (list(csv.reader(io.StringIO(text))) for text in (works(result), expected))
    assert "7 rows have a missing value of 'age', as no training row had;" in result.stderr
    same = [row == given for row, given in zip(found, full, strict=True)]
    assert len(found) == 61 and sum(same) >= 61 - 8
    explained = works(invoke("explain", model, path, "--row", 4, "-q"))
    assert "age is unknown, as in no training row: it counts as" in explained


def test_columns_that_the_tree_does_not_use_need_not_be_there(model, expected, tmp_path):
    tree = load_model(model)
    used = set(tree.feature_names_in_[tree.selected_features_])
    assert used < set(people().columns)
    few = tmp_path / "few.csv"
    people()[sorted(used)].to_csv(few, index=False)
    assert works(invoke("predict", model, few, "--proba", "-q")) == expected
    lost = sorted(used)[0]
    people().drop(columns=lost).to_csv(few, index=False)
    refused(invoke("predict", model, few, "-q"), f"column {lost!r} is missing")
    people().rename(columns={lost: lost.upper()}).to_csv(few, index=False)
    said = f"column {lost!r} is missing; did you mean {lost.upper()!r}?"
    refused(invoke("predict", model, few, "-q"), said)


def test_texts_that_training_did_not_have_are_answered_and_said(tmp_path):
    table, path, model = people(), tmp_path / "t.csv", tmp_path / "m.json"
    table["risk"] = np.where(table["town"] == "Oslo", "high", "low")
    table.loc[7, "town"] = "Riga"
    table.to_csv(path, index=False)
    works(invoke("fit", path, "-t", "risk", "-m", model, *QUICK))
    assert invoke("predict", model, path, "-q").stderr == ""  # Riga is rare, not new
    table.loc[3, "town"] = "Rome"
    table.to_csv(path, index=False)
    result = invoke("predict", model, path, "-q")
    assert works(result).splitlines()[4] == "4,low"
    assert result.stderr == (
        "softsplit: 1 row has a value of 'town' that was not seen in training; softsplit explain "
        "shows how it is treated.\n"
    )
    explained = invoke("explain", model, path, "--row", 4, "-q")
    said = works(explained)
    assert explained.stderr == ""
    assert "town 'Rome' was not seen in training: it counts as other" in said


def test_all_problems_of_a_table_are_said_at_once(tmp_path):
    path, model = tmp_path / "t.csv", tmp_path / "m.json"
    rows = [f"p{i},{i % 7}.{i % 3},{'ab'[i % 2]},x,{'yn'[i % 2]}" for i in range(60)]
    path.write_text("\n".join(["id,n,k,same,y", *rows]))
    result = invoke("fit", path, "-t", "y", "-m", model, *QUICK)
    works(result)
    assert result.stderr.splitlines() == [
        "softsplit: columns 'id' (an identifier), 'same' (one value only) are left out; to use one "
        "all the same, name it with --keep."
    ]
    assert load_model(model).coding_.left_out == (
        ("id", "an identifier"),
        ("same", "one value only"),
    )
    kept = invoke("fit", path, "-t", "y", "--keep", "id,same", "--drop", "k", *QUICK)
    assert works(kept) and kept.stderr == ""
    refused(invoke("fit", path, "-t", "y", "--keep", "a,b", "--drop", "z", "-q"), "columns ")
    path.write_text("a,b,y\ninf,1,n\n2,inf,y\n")
    refused(
        invoke("fit", path, "-t", "y", "-q"),
        "column 'a' holds infinity (row 1); replace it; "
        "column 'b' holds infinity (row 2); replace it.",
    )


def test_dates_are_recognised(tmp_path):
    path, model = tmp_path / "t.csv", tmp_path / "m.json"
    rows = [
        f"2020-{1 + i % 12:02d}-03,{1 + i % 28}.{1 + i % 12}.2020,{1 + i % 12}/{i % 7 + 1}/"
        f"{2000 + i},{i % 12 > 5}"
        for i in range(60)
    ]
    path.write_text("\n".join(["iso,own,odd,y", *rows]))
    result = invoke("fit", path, "-t", "y", "-m", model, *QUICK)
    assert re.search(r"(days since|before|from|after) 2020-\d\d-\d\d", works(result))
    assert "'odd' (dates such as '1/1/2000', day and month unclear: write them as" in result.stderr
    variables = load_model(model).coding_.variables
    assert [(v.kind, v.form) for v in variables] == [("date", ""), ("date", "%d.%m.%Y")]
    refused(invoke("fit", path, "-t", "iso", "--date", "y", "-q"), "where dates are needed")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,a,y\n1,2,0\n", "several columns named 'a'; rename all but one"),
        ("a,,y\n1,2,0\n", "column 2 of t.csv has no name"),
        ("a,b,y\n1,2,0\n1,2,3,4\n", "line 3 has 4 fields where there are 3 columns"),
        ("a,b,y\n1,2,0,9\n1,2,3,4\n", "more fields than its first line"),
        ("a,y\n,1\n,2\n", "the table has no column that a tree can use: 'a' (no values)."),
        ('a,b,y\n1,"2,1\n3,4,2\n', "a quotation mark near line 2 is never closed; close it"),
        (
            "a,y\n" + "".join(f"p{i},{i % 2}\n" for i in range(60)),
            "the table has no column that a tree can use: 'a' (an identifier).",
        ),
    ],
)
def test_what_cannot_be_used_is_named(text, message, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(text)
    refused(invoke("fit", path, "-t", "y", "-q"), message)


def test_no_output_is_written_over_an_input_or_another_output(model, tmp_path, monkeypatch):
    path, page = written(tmp_path, "plain"), tmp_path / "z.json"
    link, copied = tmp_path / "link.csv", tmp_path / "model.json"
    link.symlink_to(path)
    copied.write_bytes(model.read_bytes())
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    monkeypatch.chdir(tmp_path)
    fit = ("fit", path, "-t", "risk")
    table, read = "would overwrite the table that is read", "would overwrite the model that is read"
    for name in (path, path.name, link):
        refused(invoke(*fit, "-m", name), f"--model {str(name)!r} {table}; name another file.")
        refused(invoke(*fit, "-m", page, "-r", name), f"--report {str(name)!r} {table}")
        refused(invoke("predict", copied, path, "-o", name), f"--out {str(name)!r} {table}")
        refused(invoke("report", copied, path, "-o", name), f"--out {str(name)!r} {table}")
    for name in (page, page.name):
        refused(invoke(*fit, "-m", page, "-r", name), "would overwrite the file of --model")
    for command in ("predict", "report"):
        refused(invoke(command, copied, path, "-o", "model.json"), f"--out 'model.json' {read}")
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before
    # Another name for it: standard input.
    monkeypatch.setattr("softsplit.cli.outputs.STANDARD_INPUT", str(path))
    refused(invoke("predict", copied, "-", "-o", path, input=before[path]), table)
    assert path.read_bytes() == before[path]


def test_the_tree_is_kept_where_the_report_fails(tmp_path, monkeypatch):
    def broken(*_, **__):
        raise ValueError("no report today.")

    monkeypatch.setattr(comparison, "walk_path", broken)
    path, model = written(tmp_path, "plain"), tmp_path / "m.json"
    result = invoke("fit", path, "-t", "risk", "-m", model, "-r", tmp_path / "r.html", *QUICK)
    refused(result, "no report today.")
    assert model.exists()
