"""Names that others wrote cannot forge what is read: they are shown with escapes, and kept."""

from __future__ import annotations

import csv
import io
import json
import unicodedata

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cli_runs import invoke
from readings import alter
from softsplit import SoftTreeClassifier, dumps_model, export_markdown, export_text, loads_model
from softsplit.cli import predict
from softsplit.data.files import read_table
from softsplit.support.messages import shown, visible

FORGED = "a\nelse\n|   class SAFE"
STEERING = "b\x1b[2J\r\x07\x9b31m"
TURNED = "c\u202egpj\u2066\u200b\ufeff\u2028\u2029\x85\u00ad"
EVIL = [FORGED, STEERING, TURNED]
FAMILY = "\U0001f469\u200d\U0001f469\u200d\U0001f467"
ORDINARY = [
    "naïve €", "Größe", "Ωμέγα", "漢字 かな 한글", "العربية", "हिन्दी", "\U0001f333", FAMILY,
    "\U0001f469\U0001f3fd\u200d\U0001f52c", "\u2764\ufe0f\u200d\U0001f525",
    "a\u00a0b\u3000c", "C:\\new",
]  # fmt: skip


def is_calm(text: str) -> bool:
    """No control, format or separating character but ends of lines."""
    bad = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return not any(unicodedata.category(c) in bad for c in text if c != "\n")


@given(st.text(alphabet=st.characters()))
@example("\ud800")
@example("\u200d\U0001f333")
@example("\U0001f333\u200d")
def test_shown_names_are_one_line_and_steer_nothing(name):
    made = visible(name)
    assert is_calm(made.replace("\u200d", "")) and "\n" not in made
    assert visible(made) == made
    if is_calm(name) and "\n" not in name:
        assert made == name


def test_escapes_say_what_was_there():
    assert [visible(name) for name in ORDINARY] == ORDINARY
    assert visible("\n\t\x1b\x85\u202e\u2028\U000e0041") == r"\n\t\x1b\x85\u202e\u2028\U000e0041"
    assert visible("x\u200dy") == r"x\u200dy"
    assert visible(3.5) == "3.5"

    class Odd:
        def __repr__(self) -> str:
            return "odd\x1b[2J\u202e"

    assert shown(Odd()) == r"odd\x1b[2J\u202e"


@pytest.fixture(scope="module", params=["minmax", "quantile"])
def tree(request):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(size=(90, 3)), columns=[f"{n} feature" for n in EVIL])
    y = np.array(EVIL)[np.digitize(X.iloc[:, 0] + X.iloc[:, 1] + 0.3 * X.iloc[:, 2], [0.9, 1.3])]
    made = SoftTreeClassifier(
        curves=False, n_starts=1, random_state=0, scale=request.param, points=False
    ).fit(X, y)
    return made, X


def assert_true_to_the_tree(text, tree):
    """As many lines of each kind as a tree with plain names has, and nothing that steers."""
    assert is_calm(text)
    told = [line.replace("|   ", "") for line in text.splitlines()]
    twin = loads_model(dumps_model(tree))
    alter(twin, classes=np.array(["p", "q", "r"]))
    alter(twin, feature_names=("f", "g", "h"))
    plain_lines = export_text(twin).splitlines()
    assert len(told) == len(plain_lines)
    assert told.count("else") == [line.replace("|   ", "") for line in plain_lines].count("else")


@pytest.mark.parametrize("through_a_file", [False, True])
def test_a_tree_as_text_holds_no_more_lines_than_the_tree(tree, through_a_file):
    made, X = tree
    if through_a_file:
        made = loads_model(dumps_model(made))
    assert_true_to_the_tree(export_text(made), made)
    assert is_calm(str(made.to_hard_tree()))
    assert "SAFE" in export_text(made)
    assert is_calm(export_markdown(made)) and "\n|   class" not in export_markdown(made)
    given_names = export_text(made, feature_names=["a\nelse", "b", "c"])
    assert "\nelse >" not in given_names and given_names.count("\n") == export_text(made).count(
        "\n"
    )
    # The model itself keeps the true names.
    assert made.classes_.tolist() == sorted(EVIL)
    assert made.feature_names_in_.tolist() == list(X.columns)
    assert set(made.predict(X)) <= set(EVIL)


def test_an_explanation_shows_escapes_and_holds_the_true_names(tree):
    made, X = tree
    for i in range(0, len(X), 9):
        found = made.explain(X.iloc[[i]])
        text = str(found)
        assert is_calm(text) and "\nelse" not in text
        assert all(is_calm(reading.condition) for reading in found.branches)
        assert found.label in EVIL and set(found.probabilities) == set(EVIL)
        told = found.to_dict()
        assert told["label"] == found.label
        assert all(
            term["name"] in X.columns for b in told["branches"] for term in b["contributions"]
        )
        assert all(change["name"] in X.columns for change in told["changes"])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A table, a model and a folder, with the worst of names everywhere."""
    folder = tmp_path_factory.mktemp("names")
    rng = np.random.default_rng(1)
    numbers = rng.uniform(size=120)
    levels = np.array([f"{n} level" for n in EVIL])[rng.integers(0, 3, 120)]
    labels = np.where(numbers + 0.8 * (levels == levels[0]) > 0.7, "=1+1", FORGED)
    frame = pd.DataFrame({STEERING: numbers, TURNED.strip(): levels, "y\x1b[1m": labels})
    data, model = folder / "d\x1b[3m\n\u202ea.csv", folder / "m\x1b\n.json"
    frame.to_csv(data, index=False, quoting=csv.QUOTE_ALL)
    given = ("--depth", 1, "--strength", 0.01, "--jobs", 1)
    return data, model, invoke("fit", data, "-t", "y\x1b[1m", "-m", model, *given)


def assert_calm(result, code: int = 0) -> None:
    assert result.exit_code == code, result.output
    for text in (result.stdout, result.stderr):
        assert is_calm(text)
        assert "\nelse\n|   class SAFE" not in text


def test_explain_info_and_path_say_names_with_escapes(files):
    data, model, _ = files
    for i in (1, 2, 3):
        assert_calm(invoke("explain", model, data, "--row", i))
    assert_calm(invoke("info", data))
    about = invoke("info", model)
    assert_calm(about)
    assert r"a\nelse\n|   class SAFE" in about.stdout
    assert len(about.stdout.split("\n\n")[0].splitlines()) == 12
    walked = invoke("path", data, "-t", "y\x1b[1m", "--depth", 1, "--points", 2, "--jobs", 1)
    assert_calm(walked)
    assert r"\x1b[2J" in walked.stdout


def test_answers_for_programs_hold_the_true_labels(files, tmp_path, monkeypatch):
    data, model, _ = files
    true = sorted(["=1+1", FORGED])
    out = tmp_path / "o\x1b.csv"
    said = invoke("predict", model, data, "--proba", "-o", out)
    assert_calm(said)
    assert r"o\x1b.csv" in said.stderr
    rows = list(csv.reader(io.StringIO(out.read_text(encoding="utf-8"))))
    assert rows[0][2:] == [f"probability {label}" for label in true]
    assert sorted({row[1] for row in rows[1:]}) == true
    assert invoke("predict", model, data, "--proba", "-q").stdout == out.read_text(encoding="utf-8")
    objects = json.loads(invoke("predict", model, data, "--json", "-q").stdout)
    assert sorted({row["prediction"] for row in objects}) == true
    explained = json.loads(invoke("explain", model, data, "--json", "-q").stdout)
    assert explained[0]["label"] in true
    # A person at a terminal reads a line for each row.
    answer = {"row": 1, "prediction": FORGED, "probabilities": {FORGED: 1.0}}
    answer |= {"set": [FORGED], "refer": False}
    made = predict.as_csv([answer], [FORGED], ["set", "refer"], visible)
    name = visible(FORGED)
    assert made == f"row,prediction,probability {name},set,refer\n1,{name},1,{name},no\n"
    assert "formula" in " ".join(invoke("predict", "--help").stdout.split())


@pytest.mark.parametrize("content", [b"", b"a,a\n1,2\n", b"a,b\n1,2,3\n", b"a,b\n1,\0\n", b"a\xff"])
def test_sentences_about_files_name_them_with_escapes(tmp_path, content):
    path = tmp_path / "t\x1b[2J\n\u202e.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"t\\x1b\[2J\\n\\u202e\.csv") as refused:
        read_table(path)
    assert is_calm(str(refused.value)) and "\n" not in str(refused.value)


def test_errors_on_the_command_line_are_one_calm_line(files):
    data, model, _ = files
    assert_calm(invoke("fit", data, "-t", "no\x1b\u202e such"), code=2)
    assert_calm(invoke("predict", model, "no\x1b\u202e\nfile.csv"), code=2)
    assert_calm(invoke("info", "no\x1b\u202e\nfile.json"), code=2)
