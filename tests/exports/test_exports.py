"""Exports against ``predict`` and ``predict_proba``, run where the code is at home."""

from __future__ import annotations

import math
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from export_cases import CASES, NUMBERS, PARTS, STORED, case, dated, priced, stored_case
from export_runs import RUNNERS, absent, run_c, run_onnx, run_sqlite, run_workbooks, text_of
from readings import TREES, alter, classifier_and_frame, random_classifier
from slow_cases import examples
from softsplit import (
    SoftTreeClassifier,
    export_c,
    export_excel,
    export_javascript,
    export_onnx,
    export_python,
    export_sql,
)
from softsplit.persistence.estimators import classifier_of

TOLERANCE = 1e-9


def agree(tree, X, answers, name=""):
    told, proba = answers
    if not hasattr(tree, "classes_"):
        given = np.array(told, dtype=float)
        return np.testing.assert_allclose(given, tree.predict(X), rtol=TOLERANCE, err_msg=name)
    np.testing.assert_allclose(proba, tree.predict_proba(X), atol=TOLERANCE, rtol=0, err_msg=name)
    assert told == [text_of(label) for label in tree.predict(X)], name


def in_this_process(tree, X):
    """The answers of the Python module; its only imports are of the standard library."""
    space = {}
    exec(compile(export_python(tree), "exported", "exec"), space)
    rows = [{name: space_of(value) for name, value in row.items()} for row in X.to_dict("records")]
    return [str(space["predict"](row)) for row in rows], np.array(
        [space["predict_proba"](row) for row in rows]
    )


def space_of(value):
    return None if value is pd.NaT or value is pd.NA else value


def halved(runners, cases):
    """All pairs; half of them are slow: those of each runner with every second case."""
    return [
        pytest.param(runner, one, marks=[pytest.mark.slow] * ((i + j) % 2))
        for i, runner in enumerate(runners)
        for j, one in enumerate(cases)
    ]


@pytest.mark.parametrize(
    ("runner", "name"), halved([name for name in RUNNERS if name != "excel"], CASES)
)
def test_code_answers_as_the_tree_does(runner, name):
    if why := absent(runner):
        pytest.skip(why)
    tree, X = case(name)
    agree(tree, X, RUNNERS[runner](tree, X))


@pytest.mark.parametrize(
    ("runner", "name"), halved([name for name in RUNNERS if name != "excel"], NUMBERS)
)
def test_code_predicts_the_number_that_the_tree_does(runner, name):
    if why := absent(runner):
        pytest.skip(why)
    tree, X = priced(name)
    assert np.ptp(tree.predict(X)) > 1  # leaves of all formulas, and clipped rows, are among them
    agree(tree, X, RUNNERS[runner](tree, X))


@pytest.mark.parametrize(
    ("runner", "part"), halved([name for name in RUNNERS if name != "excel"], PARTS)
)
def test_parts_of_dates(runner, part):
    if why := absent(runner):
        pytest.skip(why)
    tree, X = dated(part)
    agree(tree, X, RUNNERS[runner](tree, X))


@pytest.mark.slow
def test_workbooks_answer_as_the_trees_do():
    """In one LibreOffice, which takes seconds to start."""
    if why := absent("excel"):
        pytest.skip(why)
    names = [*CASES, *PARTS, *NUMBERS]
    cases = [*map(case, CASES), *map(dated, PARTS), *map(priced, NUMBERS)]
    for name, (tree, X), found in zip(names, cases, run_workbooks(cases), strict=True):
        agree(tree, X, found, name)


@given(**TREES)
@examples(40)
def test_any_tree(seed, depth, kind, labels):
    tree, X = classifier_and_frame(seed, depth, kind, labels)
    X = pd.concat([X, X[:3] * np.nan], ignore_index=True)
    expected = tree.predict_proba(X)
    votes = np.sort(tree.tree_.votes(tree.tree_.table_coding.code(X).X), axis=1)
    clear = votes[:, -1] - votes[:, -2] > 1e-8
    known = clear | (tree.tree_.class_factors is None)
    for told, proba in (in_this_process(tree, X), run_sqlite(tree, X), run_onnx(tree, X)):
        np.testing.assert_allclose(proba[known], expected[known], atol=TOLERANCE, rtol=0)
        right = [text_of(label) for label in tree.predict(X)]
        assert [a for a, sure in zip(told, clear, strict=True) if sure] == [
            a for a, sure in zip(right, clear, strict=True) if sure
        ]


def test_a_tree_without_features():
    tree, X = random_classifier(2, depth=2)
    tree.tree_ = replace(
        tree.tree_, parameters=replace(tree.tree_.parameters, weights=np.zeros_like(tree.weights_))
    )
    frame = pd.DataFrame(X, columns=tree.feature_names_in_)
    for run in (in_this_process, run_sqlite, run_c, run_onnx):
        agree(tree, frame, run(tree, frame))


def test_a_matrix_without_names_is_read_by_position():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    tree = SoftTreeClassifier(n_starts=1, random_state=0).fit(X, X[:, 0] + X[:, 2] > 0)
    space = {}
    exec(export_python(tree), space)
    found = [space["predict_proba"](row) for row in X.tolist()]
    np.testing.assert_allclose(found, tree.predict_proba(X), atol=TOLERANCE)
    assert "x0" in export_sql(tree, "rows")


@pytest.mark.parametrize("name", STORED)
def test_trees_of_stored_files_as_graphs(name):
    tree, X = stored_case(name)
    agree(tree, X, run_onnx(tree, X))


def test_what_no_graph_can_hold_is_refused(monkeypatch):
    tree, _ = random_classifier(1, n_classes=2)
    alter(tree, classes=np.array([b"a", b"b"]))
    with pytest.raises(ValueError, match=r"labels of type \|S1 cannot be exported"):
        export_onnx(tree)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"ONNX export needs onnx; install it with pip install"):
        export_onnx(tree)


NASTY = st.one_of(
    st.text(
        st.sampled_from("\"'`\\;-/*()[]{}<>=$%?#&|!@,.:~^_ \t\n\rabAB01xé漢\u2028\u202e\x07"),
        min_size=1, max_size=12,
    ),
    st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8
    ),
    st.sampled_from(
        [
            '"; DROP TABLE t; --', "' OR '1'='1", "*/ system(1); /*", "</script><script>", "${1}",
            "=1+1", "#N/A", "_x0041_", "{0}", "%s", "\\", "\\'", "??/", "t", "ss_c0", "softsplit_1",
            "__proto__", "constructor", "NULL", "NaN", "true", "1.0", "1", "1e3", "''", '""',
        ]
    ),
)  # fmt: skip


def renamed(seed, names, levels, labels):
    """A trained tree with other names, levels and classes, and rows with such values."""
    tree, X = case("several classes, labels")
    model = tree.tree_
    coding = model.coding.renamed(names)
    home = next(i for i, v in enumerate(coding.variables) if v.name == names[1])
    town = coding.variables[home]
    changed = replace(town, levels=tuple(levels[: len(town.levels)]))
    variables = tuple(changed if v is town else v for v in coding.variables)
    made = replace(model, coding=replace(coding, variables=variables), classes=np.array(labels))
    X = X.set_axis(names, axis=1)
    rng = np.random.default_rng(seed)
    X[names[1]] = rng.choice(np.array([*levels, *names], dtype=object), len(X))
    return classifier_of(made, named=True), X


@st.composite
def fuzzed(draw):
    """7 names, 9 levels (some of no training row) and 4 classes."""
    distinct = st.lists(NASTY, min_size=20, max_size=20, unique_by=str.casefold)
    texts = draw(distinct.filter(lambda found: all(map(str.strip, found))))
    return renamed(draw(st.integers(0, 99)), texts[:7], texts[7:16], sorted(texts[16:20]))


FUZZ = settings(
    max_examples=40,
    suppress_health_check=list(HealthCheck),
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # a run in another program takes long
)


@pytest.mark.slow
@given(fuzzed())
@FUZZ
def test_fuzzed_names_and_values_do_not_change_the_meaning(made):
    """40 x 20 texts, in Python, SQLite and DuckDB."""
    tree, X = made
    agree(tree, X, in_this_process(tree, X))
    agree(tree, X, run_sqlite(tree, X))
    if not absent("duckdb"):
        agree(tree, X, RUNNERS["duckdb"](tree, X))


def test_what_a_language_cannot_say_is_refused():
    tree, _ = renamed(0, [*"abcdefg"], ["a\0b", *"cdefghij"], [*"wxyz"])
    with pytest.raises(ValueError, match=r"a zero character, which ends a string of C"):
        export_c(tree)
    tree, _ = renamed(0, ["a\0", *"bcdefg"], [*"bcdefghij"], [*"wxyz"])
    with pytest.raises(ValueError, match="cannot be the name of a column or table in SQL"):
        export_sql(tree, "rows")
    with pytest.raises(ValueError, match="dialect must be one of postgres, sqlite"):
        export_sql(tree, "rows", dialect="oracle")
    with pytest.raises(TypeError, match="a SoftTreeClassifier is needed, got dict"):
        export_python({})


@pytest.mark.parametrize("dialect", ["mssql", "bigquery"])
def test_statements_of_databases_that_are_not_here_can_be_parsed(dialect):
    """By sqlglot: names and levels are found again as names and texts, and as nothing else."""
    sqlglot = pytest.importorskip("sqlglot")
    read = {"mssql": "tsql", "bigquery": "bigquery"}[dialect]
    for name in list(CASES)[::2]:
        tree, _ = case(name)
        statement = export_sql(tree, ("a]b", "t`x"), dialect=dialect, reasons=True)
        (parsed,) = sqlglot.parse(statement, read=read)
        names = {found.name for found in parsed.find_all(sqlglot.exp.Column)}
        used = {tree.tree_.column_names[j] for j in tree.selected_features_}
        assert used <= names


@pytest.mark.parametrize("name", ["two classes", "two classes, ranks", "odd names, labels by cost"])
def test_reasons_are_those_of_explain(name):
    tree, X = case(name)
    space = {}
    exec(export_python(tree, reasons=True), space)
    numbers = {found: i for i, found in enumerate(_questions(tree), start=1)}
    for i in range(0, 20, 4):
        row = {key: space_of(value) for key, value in X.iloc[i].to_dict().items()}
        found = {(q, variable): value for q, variable, value in space["reasons"](row)}
        told = tree.explain(X.iloc[[i]])
        expected = {
            (numbers[branch.branch], term.name): term.log_odds
            for branch in told.branches
            for term in branch.contributions
        }
        assert found == pytest.approx(expected, abs=1e-9)
        for branch in told.branches:
            q = numbers[branch.branch]
            total = space["BASE"][q] + sum(v for (at, _), v in found.items() if at == q)
            assert total == pytest.approx(branch.log_odds, abs=1e-9)


def _questions(tree):
    from softsplit.reading.outline import outline

    return [found.node for found in outline(tree.tree_).questions()]


def test_a_row_without_a_column_gets_one_sentence():
    tree, X = case("two classes")
    space = {}
    exec(compile(export_python(tree), "exported", "exec"), space)
    row = {name: space_of(value) for name, value in X.to_dict("records")[0].items()}
    used = tree.tree_.column_names[tree.selected_features_[0]]
    del row[used]
    with pytest.raises(ValueError, match=f"^the row has no column '{used}'; give None if") as error:
        space["predict"](row)
    assert "\n" not in str(error.value)
    said = "the row has no column '${name}'; give null if its value is not known."
    assert said in export_javascript(tree)


def test_a_written_file_is_the_text(tmp_path):
    tree, _ = case("numbers")
    for export, name in ((export_python, "t.py"), (export_javascript, "t.js"), (export_c, "t.c")):
        assert export(tree, tmp_path / name) == (tmp_path / name).read_text()
    text = export_sql(tree, "rows", tmp_path / "t.sql", dialect="duckdb", keep=["id", "age"])
    assert text == (tmp_path / "t.sql").read_text()
    assert '"id"' in text
    path, link = tmp_path / "tree.onnx", tmp_path / "link.onnx"
    path.touch(0o600)
    link.symlink_to(path)
    assert export_onnx(tree, link).SerializeToString() == path.read_bytes()
    assert link.is_symlink() and path.stat().st_mode & 0o777 == 0o600


def test_an_empty_workbook_has_lines_to_fill_in(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    tree, _ = case("odd names, labels")
    export_excel(tree, tmp_path / "tree.xlsx", reasons=True)
    book = openpyxl.load_workbook(tmp_path / "tree.xlsx")
    assert book.sheetnames == ["Case", "Batch", "Tree", "Tables"]
    assert book["Batch"].max_row == 201
    formulas = [c for row in book["Case"] for c in row if c.data_type == "f"]
    assert formulas
    # What a name holds is in no formula.
    assert not any("DROP" in c.value or "town" in c.value for c in formulas)
    assert book["Tree"]["A1"].value.startswith("if ")


def test_the_table_of_a_tree():
    tree, X = case("several classes, labels")
    frame = tree.to_frame()
    leaves = frame[frame["question"].isna()]
    assert frame["node"].is_unique and frame.loc[0, "node"] == 0
    assert math.isclose(leaves["rows"].sum(), 500)
    np.testing.assert_allclose(leaves.filter(like="p_").sum(axis=1), 1.0)
    assert set(leaves["class"]) <= set(tree.classes_)
    # Every node but the root has its parent in the table, and every question two children.
    assert set(frame["parent"].dropna()) == set(frame.loc[frame["question"].notna(), "node"])
    arrived = pd.Series(tree.apply(X)).isin(leaves["node"])
    assert arrived.all()
    mixture, _ = case("several classes, mixture")
    assert mixture.to_frame()["rows"].isna().all()
