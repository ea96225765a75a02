"""Checks of new rows: tests with known answers, alarms on shifted and unshifted draws, files."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2_contingency, mannwhitneyu
from typer.testing import CliRunner

from softsplit import SoftTreeClassifier, check_rows, dumps_model, loads_model
from softsplit.cli.app import app
from softsplit.drift.two_samples import holm, p_value_all_unseen, p_value_location, p_value_shares


def drawn_table(seed: int, rows: int) -> tuple[pd.DataFrame, pd.Series]:
    drawn = np.random.default_rng(seed)
    frame = pd.DataFrame(drawn.normal(size=(rows, 6)), columns=list("abcdef"))
    frame["count"] = drawn.poisson(2, rows)
    frame["flag"] = drawn.random(rows) < 0.3
    frame["town"] = drawn.choice(["Rome", "Oslo", "Bern"], rows, p=[0.6, 0.3, 0.1])
    frame.loc[drawn.random(rows) < 0.1, "b"] = np.nan
    score = 2 * frame["a"] + (frame["town"] == "Rome") + drawn.logistic(size=rows)
    return frame, pd.Series(np.where(score > 0, "yes", "no"), name="answer")


@pytest.fixture(scope="module")
def tree() -> SoftTreeClassifier:
    frame, classes = drawn_table(0, 500)
    return SoftTreeClassifier(depth=2, points=False, random_state=0).fit(frame, classes)


def test_the_tests_are_those_of_scipy() -> None:
    a, b = np.array([40.0, 60, 100, 20]), np.array([20.0, 80, 90, 30])
    expected = chi2_contingency([a, b], correction=False).pvalue
    np.testing.assert_allclose(p_value_shares(a, b, ordered=True), expected)
    x, y = (np.repeat(np.arange(4), counts.astype(int)) for counts in (a, b))
    exact = mannwhitneyu(y, x, use_continuity=False, method="asymptotic")
    np.testing.assert_allclose(p_value_location(a, b), exact.pvalue)
    larger = mannwhitneyu(y, x, alternative="greater", use_continuity=False, method="asymptotic")
    np.testing.assert_allclose(p_value_location(a, b, larger=True), larger.pvalue)
    np.testing.assert_allclose(p_value_all_unseen(2, 3, 2), 3 / 5 * 2 / 4)
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03]), [0.03, 0.06, 0.06])
    # By hand: p / w is .02, .16, .02; the ties keep their order, with weights 1, .5 and .25 left.
    np.testing.assert_allclose(holm([0.01, 0.04, 0.005], [0.5, 0.25, 0.25]), [0.02, 0.04, 0.02])


def test_alarms_without_and_with_a_shift() -> None:
    """Of 20 draws of both tables at most a tenth gives an alarm; shifts are found."""
    alarms, found = 0, {"shift": 0, "level": 0, "gaps": 0, "classes": 0}
    base = SoftTreeClassifier(depth=1, n_starts=1, effort="fast", random_state=0)
    for seed in range(20):
        tree = base.fit(*drawn_table(seed, 300))
        new, classes = drawn_table(1000 + seed, 600)
        alarms += not check_rows(tree, new, classes).fine
        moved = check_rows(tree, new.assign(e=new["e"] + 0.5), classes).moved
        found["shift"] += moved != () and moved[0].name == "e"
        other = new["town"].where(np.arange(600) % 20 > 0, "Kyiv")
        found["level"] += "town" in {o.name for o in check_rows(tree, new.assign(town=other)).moved}
        gaps = new["c"].where(np.arange(600) % 20 > 0)
        found["gaps"] += "c" in {o.name for o in check_rows(tree, new.assign(c=gaps)).moved}
        kept = (classes == "yes") | (np.arange(600) % 2 > 0)
        found["classes"] += not check_rows(tree, new[kept], classes[kept]).fine
    assert alarms <= 2
    assert min(found.values()) >= 18, found


def test_a_model_file_checks_as_the_tree_does(tree: SoftTreeClassifier) -> None:
    new, classes = drawn_table(7, 400)
    new["a"] += 0.4
    back = loads_model(dumps_model(tree))
    pd.testing.assert_frame_equal(
        check_rows(back, new, classes).to_frame(), check_rows(tree, new, classes).to_frame()
    )


def test_what_the_tree_does_not_use_may_be_absent(tree: SoftTreeClassifier) -> None:
    new, _ = drawn_table(7, 50)
    found = check_rows(tree, new[["a", "town"]])
    assert "not in the table, and not used by the tree: b, c, d, e, f" in found.notes[0]
    with pytest.raises(ValueError, match="'a' is missing"):
        check_rows(tree, new.drop(columns="a"))
    with pytest.raises(ValueError, match="one class for each of the 50 rows"):
        check_rows(tree, new, ["yes"])
    with pytest.raises(ValueError, match="level must be a number between 0 and 1"):
        check_rows(tree, new, level=5)


def test_what_has_moved_is_what_is_said(tree: SoftTreeClassifier) -> None:
    new, _ = drawn_table(0, 500)  # the training rows: same location, another spread
    wide = {one.name: one for one in check_rows(tree, new.assign(b=3 * new["b"])).comparisons}["b"]
    found = re.search(r"median .*; ([\d.]+) % of the values (up to|above) (\S+), was", wide.said)
    share, side, edge = float(found[1]), found[2], float(found[3])
    values = 3 * new["b"].dropna()
    beyond = values <= edge if side == "up to" else values > edge
    assert abs(share - 100 * beyond.mean()) < 1 and share > 25
    strange = new.assign(town=np.where(np.arange(500) % 4 == 0, "Ulm", new["town"]))
    town = {one.name: one for one in check_rows(tree, strange).comparisons}["town"]
    assert "125 rows of levels that training did not have" in town.said
    assert not town.said.startswith("other")
    with pytest.raises(ValueError, match="has no rows to compare"):
        check_rows(tree, new[:0])


def test_the_command_has_an_exit_code_and_a_page(tree: SoftTreeClassifier, tmp_path) -> None:
    model, page = tmp_path / "tree.json", tmp_path / "check.html"
    model.write_text(dumps_model(tree))
    new, classes = drawn_table(0, 500)  # the training rows
    hostile = "<script>alert(1)</script>"
    for name, frame in (
        ("same.csv", new),
        ("moved.csv", new.assign(a=new["a"] + 1, town=new["town"].replace("Bern", hostile))),
    ):
        frame.assign(answer=classes).to_csv(tmp_path / name, index=False)
    run = CliRunner().invoke
    arguments = ["check", str(model), str(tmp_path / "same.csv"), "--quiet"]
    assert run(app, arguments).exit_code == 0
    arguments[2] = str(tmp_path / "moved.csv")
    told = run(app, [*arguments, "--html", str(page), "--json"])
    assert told.exit_code == 1
    names = {one["name"] for one in json.loads(told.stdout)["comparisons"] if one["moved"]}
    assert {"a", "town", "leaves"} <= names
    html = page.read_text()
    assert "script-src 'none'" in html and hostile not in html
    assert run(app, [*arguments, "--level", "7"]).exit_code == 2
