"""Every command on every kind of table: it works, or says in one sentence what to do."""

from __future__ import annotations

import csv
import io
import json
import os
import threading

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from softsplit.cli import app
from softsplit.persistence import load_model
from softsplit.report import rivals as reporting
from tables import HOSTILE, HOSTILE_TARGET, hostile, people, written

QUICK = ["--depth", "1", "--strength", "2", "--jobs", "1", "--quiet"]
SAME = ["plain", "bom", "utf-16", "semicolons", "windows", "tabs", "index", "quoted", "parquet"]
REFUSED = {
    "empty": "empty.csv is empty; its first line must name the columns.",
    "folder": "is a folder; give a file.",
    "absent": "there is no file",
    "header-only": "the table has no rows.",
}


def invoke(*arguments: object, input: bytes | None = None):
    return CliRunner().invoke(
        app, [str(part) for part in arguments], env={"COLUMNS": "200"}, input=input
    )


def works(result) -> str:
    assert result.exit_code == 0, result.output
    assert "Traceback" not in result.output
    return result.stdout


def refused(result, message: str) -> None:
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    said = [line for line in result.stderr.splitlines() if line]
    assert len(said) == 1 and said[0].startswith("softsplit: ")
    assert message in said[0]


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


@pytest.fixture
def light(monkeypatch):
    """Little work for reports and paths."""
    monkeypatch.setattr(reporting, "PATH_CELLS", 400)
    monkeypatch.setattr(reporting, "TRAINED_CELLS", 400)
    monkeypatch.setattr(reporting, "FEWEST_ROWS", 100)
    monkeypatch.setattr(reporting, "POINTS", 2)
    monkeypatch.setattr(reporting, "FOLDS", 2)


@pytest.mark.parametrize("kind", SAME)
def test_the_same_table_in_any_dress_gives_the_same_answers(kind, model, expected, tmp_path):
    path = written(tmp_path, kind)
    assert works(invoke("predict", model, path, "--proba", "--quiet")) == expected
    said = json.loads(works(invoke("fit", path, "--target", "risk", "--json", *QUICK)))
    assert said["rows"] == 60 and said["features"] == 7
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
    message = "target 'risk' holds one class, 'low'; a classifier needs two."
    refused(invoke("fit", path, "-t", "risk", "--quiet"), message)
    refused(invoke("path", path, "-t", "risk", "--quiet"), message)
    out = tmp_path / "r.html"
    refused(invoke("report", model, path, "--out", out, "--quiet"), "no row is of class 'high'")
    assert works(invoke("predict", model, path, "--quiet")).count("\n") == 61


def test_five_rows(tmp_path, light):
    path, model, out = written(tmp_path, "five"), tmp_path / "m.json", tmp_path / "r.html"
    said = json.loads(
        works(invoke("fit", path, "-t", "risk", "-m", model, "-r", out, "--json", *QUICK))
    )
    assert said["rows"] == 5 and out.exists()
    assert len(json.loads(works(invoke("predict", model, path, "--json", "-q")))) == 5
    works(invoke("explain", model, path, "-q"))
    lines = json.loads(works(invoke("path", path, "-t", "risk", "--points", 2, "--json", "-q")))
    assert len(lines) == 2


def test_one_row_of_a_class_is_too_few_to_choose_and_enough_to_train(tmp_path, light):
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n1,5,no\n2,3,no\n3,4,no\n4,4,no\n9,1,yes\n")
    result = invoke("fit", path, "-t", "y", "-q")
    refused(result, "only one class of 2 has more than one row")
    assert "give them with --depth and --strength" in result.stderr
    out = tmp_path / "r.html"
    works(invoke("fit", path, "-t", "y", "-r", out, "--depth", 1, "--strength", 0.1, "-q"))
    assert out.exists()


def test_very_large_numbers_are_judged_like_others(tmp_path, light):
    frame = people().assign(age=lambda f: f["age"] * 1e300)
    path, out = tmp_path / "t.csv", tmp_path / "r.html"
    frame.to_csv(path, index=False)
    works(invoke("fit", path, "-t", "risk", "-r", out, *QUICK))
    assert "L1 logistic regression" in out.read_text()


def test_the_tree_is_kept_where_the_report_fails(tmp_path, monkeypatch):
    def broken(*_, **__):
        raise ValueError("no report today.")

    monkeypatch.setattr(reporting, "walk_path", broken)
    path, model = written(tmp_path, "plain"), tmp_path / "m.json"
    result = invoke("fit", path, "-t", "risk", "-m", model, "-r", tmp_path / "r.html", *QUICK)
    refused(result, "no report today.")
    assert model.exists()


@pytest.mark.parametrize("place", ["path_trees", "assess"])
def test_ctrl_c_in_the_report_keeps_the_tree(tmp_path, monkeypatch, place):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(reporting, place, interrupted)
    path, model, out = written(tmp_path, "plain"), tmp_path / "m.json", tmp_path / "r.html"
    result = invoke("fit", path, "-t", "risk", "-m", model, "-r", out, *QUICK)
    assert result.exit_code == 130
    assert f"no report is written after Ctrl-C; make it with: softsplit report {model}" in (
        result.stderr
    )
    assert "class " in result.stdout
    assert model.exists() and not out.exists()


@pytest.mark.parametrize("kept", [1, 3])
def test_ctrl_c_in_the_path_of_the_report_keeps_what_was_walked(tmp_path, monkeypatch, light, kept):
    whole = reporting.path_trees

    def cut_short(base, X, y, fractions, budget):
        trees = whole(base, X, y, fractions, budget)
        budget.stop()
        return trees[:kept]

    monkeypatch.setattr(reporting, "path_trees", cut_short)
    path, page = written(tmp_path, "plain"), tmp_path / "r.html"
    result = invoke("fit", path, "-t", "risk", "-r", page, *QUICK)
    assert result.exit_code == 130, result.output
    assert "interrupted: accuracies in the report are incomplete." in result.stderr
    assert page.exists()


def test_ctrl_c_among_the_folds_of_the_report_is_told(tmp_path, monkeypatch, light):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("softsplit.selection.assessment.train_baseline", interrupted)
    path, out = written(tmp_path, "plain"), tmp_path / "r.html"
    result = invoke("fit", path, "-t", "risk", "-r", out, *QUICK)
    assert result.exit_code == 130
    assert "interrupted: accuracies in the report are incomplete." in result.stderr
    assert out.exists()


def test_fifty_thousand_rows(tmp_path, light):
    path, model, out = written(tmp_path, "large"), tmp_path / "m.json", tmp_path / "r.html"
    works(invoke("fit", path, "-t", "risk", "-m", model, *QUICK))
    answers = works(invoke("predict", model, path, "-q"))
    rows = list(csv.DictReader(io.StringIO(answers)))
    assert len(rows) == 50_000 and [r["row"] for r in rows[:3]] == ["1", "2", "3"]
    right = np.mean([r["prediction"] for r in rows] == pd.read_csv(path)["risk"].to_numpy())
    assert right > 0.9
    works(invoke("explain", model, path, "--row", 50_000, "-q"))
    works(invoke("report", model, path, "--out", out, "-q", "--jobs", 1))
    assert "rows drawn for that" in out.read_text()
    works(invoke("path", path, "-t", "risk", "--points", 2, "-q", "--jobs", 1))


def test_missing_values_follow_the_stated_rule(model, expected, tmp_path):
    path = written(tmp_path, "missing")
    for command in ("fit", "path"):
        refused(
            invoke(command, path, "-t", "risk", "--quiet"),
            "values are missing, in column 'age' (7), 'town' (1); fill them in, or go on with "
            "--missing drop or --missing fill.",
        )
    dropped = json.loads(
        works(invoke("fit", path, "-t", "risk", "--missing", "drop", "--json", *QUICK))
    )
    assert dropped["rows"] == 52 and dropped["dropped_rows"] == 8
    filled = tmp_path / "filled.json"
    said = works(
        invoke("fit", path, "-t", "risk", "--missing", "fill", "-m", filled, "--json", *QUICK)
    )
    assert json.loads(said)["rows"] == 60
    refused(invoke("predict", model, path, "-q"), "--missing blank or --missing fill")
    blank = list(
        csv.reader(io.StringIO(works(invoke("predict", model, path, "--missing", "blank", "-q"))))
    )
    full = list(csv.reader(io.StringIO(expected)))
    assert len(blank) == 61
    assert [row[0] for row in blank] == [row[0] for row in full]
    for given, row in zip(full[1:], blank[1:], strict=True):
        assert row[1] in ("", given[1])
    assert sum(row[1] == "" for row in blank) in (7, 8)  # the town may not be in use
    kept = works(invoke("predict", model, path, "--missing", "drop", "-q")).splitlines()
    assert len(kept) == 61 - sum(row[1] == "" for row in blank)
    assert "," + "\n" not in works(invoke("predict", filled, path, "-q"))  # as it was fitted
    assert works(invoke("explain", model, path, "--row", 4, "--missing", "blank", "-q")).startswith(
        "row 4: no answer"
    )


def test_columns_that_the_tree_does_not_use_need_not_be_there(model, expected, tmp_path):
    tree = load_model(model)
    used = tree.input_schema_.needed(tree.selected_features_.tolist())
    assert used < set(people().columns)
    few = tmp_path / "few.csv"
    people()[sorted(used)].to_csv(few, index=False)
    assert works(invoke("predict", model, few, "--proba", "-q")) == expected
    lost = sorted(used)[0]
    people().drop(columns=lost).to_csv(few, index=False)
    refused(invoke("predict", model, few, "-q"), f"column {lost!r} is not there")


def test_unknown_levels_follow_the_stated_rule(tmp_path):
    table, path, model = people(), tmp_path / "t.csv", tmp_path / "m.json"
    table["risk"] = np.where(table["town"] == "Oslo", "high", "low")
    table.to_csv(path, index=False)
    works(invoke("fit", path, "-t", "risk", "-m", model, *QUICK))
    table.loc[3, "town"] = "Rome"
    table.to_csv(path, index=False)
    refused(
        invoke("predict", model, path, "-q"),
        "column 'town' holds 'Rome', which the training data did not have (1 rows; known: 'Bern', "
        "'Lyon', 'Oslo'); go on with --unknown blank or --unknown none.",
    )
    blank = works(invoke("predict", model, path, "--unknown", "blank", "-q")).splitlines()
    assert blank[4] == "4," and all(not line.endswith(",") for line in blank[5:])
    none = works(invoke("predict", model, path, "--unknown", "none", "-q")).splitlines()
    assert none[4] == "4,low"
    table["age"] = table["age"].astype(str)
    table.loc[0, "age"] = "old"
    table.loc[3, "town"] = "Bern"
    table.to_csv(path, index=False)
    result = invoke("predict", model, path, "-q")
    if "age" in load_model(model).input_schema_.needed(load_model(model).selected_features_):
        refused(result, "column 'age' holds 'old' where numbers are needed.")


def test_a_coding_without_a_place_for_unknown_levels_says_so(tmp_path):
    path, model = written(tmp_path, "plain"), tmp_path / "m.json"
    works(invoke("fit", path, "-t", "risk", "-m", model, "--coding", "binary-once", *QUICK))
    refused(invoke("predict", model, path, "--unknown", "none", "-q"), "has no place for unknown")


def test_odd_names_go_through_everything(tmp_path, light):
    path, model, out = tmp_path / "odd.csv", tmp_path / "m.json", tmp_path / "r.html"
    hostile().to_csv(path, index=False)
    target = ["-t", HOSTILE_TARGET]
    text = works(invoke("fit", path, *target, "-m", model, "-r", out, *QUICK))
    assert "class " in text
    said = works(invoke("predict", model, path, "--proba", "-q"))
    assert {row["prediction"] for row in csv.DictReader(io.StringIO(said))} <= {
        HOSTILE[1],
        HOSTILE[6],
    }
    works(invoke("explain", model, path, "-q"))
    works(invoke("info", model))
    works(invoke("path", path, *target, "--points", 2, "-q"))
    page = out.read_text(encoding="utf-8")
    for name in HOSTILE[:2]:
        assert name not in page
    assert "<!--" not in page.replace("<!doctype", "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,a,y\n1,2,0\n", "several columns named 'a'; rename all but one"),
        ("a,,y\n1,2,0\n", "column 2 of t.csv has no name"),
        ("a,b,y\n1,2,0\n1,2,3,4\n", "line 3 has 4 fields where there are 3 columns"),
        ("a,b,y\n1,2,0,9\n1,2,3,4\n", "more fields than its first line"),
        ("a,b,z\n1,2,0\n3,4,1\n", "target 'y' is not a column of the table; there are: a, b, z."),
        ("a,y\n1,0.5\n2,1.5\n", "target 'y' holds fractions"),
        ("y\n1\n2\n", "there is no column beside the target 'y'"),
        ("a,y\ninf,1\n2,2\n", "column 'a' holds infinity; replace it."),
        ("a,b,y\n,3,1\n2,4,2\n", "values are missing, in column 'a' (1); fill them in, or go on"),
        ("a,b,y\n,3,1\n,4,2\n", "column 'a' holds no values; leave it out with --drop 'a'."),
        ('a,b,y\n1,"2,1\n3,4,2\n', "a quotation mark near line 2 is never closed; close it"),
        ("a=b,a,y\n1,b,1\n2,c,2\n", "two columns give a feature 'a=b'"),
        (
            "a,y\n" + "".join(f"p{i},{i % 2}\n" for i in range(60)),
            "column 'a' holds 60 different texts in 60 rows, which is a name rather than a "
            "category; leave it out with --drop 'a'.",
        ),
        ("a,y\n" + "".join(f"1,{i}\n" for i in range(101)), "holds 101 different values"),
    ],
)
def test_what_cannot_be_used_is_named(text, message, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(text)
    refused(invoke("fit", path, "-t", "y", "-q"), message)


def test_other_encodings_are_named_or_refused(tmp_path):
    path = tmp_path / "t.csv"
    text = people().to_csv(index=False).replace("Lyon", "Zürich")
    path.write_bytes(text.encode("cp1252"))
    refused(invoke("fit", path, "-t", "risk", "-q"), "is not text in utf-8 (byte")
    works(invoke("fit", path, "-t", "risk", "--encoding", "cp1252", *QUICK))
    refused(invoke("fit", path, "-t", "risk", "--encoding", "nope", "-q"), "'nope' is unknown")
    path.write_bytes(b"a,y\n\0,1\n")
    refused(invoke("fit", path, "-t", "y", "-q"), "holds zero bytes")


def test_columns_are_dropped_and_numbers_may_be_categories(tmp_path):
    path = written(tmp_path, "plain")
    said = json.loads(
        works(invoke("fit", path, "-t", "risk", "--drop", "height", "--drop", "age",
                     "--categorical", "smoker", "--json", *QUICK))
    )  # fmt: skip
    assert said["features"] == 5
    refused(invoke("fit", path, "-t", "risk", "--drop", "hight", "-q"), "did you mean 'height'?")


def test_files_that_cannot_be_written_are_refused_before_the_work(model, tmp_path):
    path = written(tmp_path, "plain")
    nowhere = tmp_path / "none" / "m.json"
    refused(invoke("fit", path, "-t", "risk", "-m", nowhere), "in a folder that is not there")
    refused(invoke("fit", path, "-t", "risk", "-r", tmp_path), "is a folder; name another file")
    refused(invoke("predict", model, path, "-o", nowhere), "in a folder that is not there")


def test_models_that_are_none_are_refused(model, tmp_path):
    path = written(tmp_path, "plain")
    refused(invoke("predict", tmp_path / "no.json", path), "there is no model file")
    refused(invoke("predict", tmp_path, path), "is a folder; give a model file")
    refused(
        invoke("predict", path, path),
        f"{str(path)!r} is no model that can be used: the model file is not valid JSON",
    )
    bare = json.loads(model.read_text())
    del bare["input"]
    other = tmp_path / "bare.json"
    other.write_text(json.dumps(bare))
    refused(invoke("predict", other, path), "does not say which columns it was made for")


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


def test_answers_go_into_a_pipe_and_keep_private_files_private(model, expected, tmp_path):
    path, out, pipe = written(tmp_path, "plain"), tmp_path / "out.csv", tmp_path / "pipe"
    out.touch(0o600)
    works(invoke("predict", model, path, "--proba", "-o", out, "-q"))
    assert out.read_text() == expected and out.stat().st_mode & 0o777 == 0o600
    os.mkfifo(pipe)
    heard = []
    reader = threading.Thread(target=lambda: heard.append(pipe.read_text()), daemon=True)
    reader.start()
    works(invoke("predict", model, path, "--proba", "-o", pipe, "-q"))
    reader.join(10)
    assert heard == [expected] and pipe.is_fifo()
