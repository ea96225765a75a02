"""Figures by group, and cases for a person, on the page and in Python."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from softsplit import SoftTreeClassifier, group_figures, report


def made(rows: int, seed: int) -> tuple[pd.DataFrame, pd.Series]:
    drawn = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": drawn.normal(size=rows), "b": drawn.normal(size=rows)})
    frame["sex"] = drawn.choice(["f", "m"], rows)
    noise = np.where(frame["sex"] == "f", 0.5, 3.0) * drawn.logistic(size=rows)
    return frame, pd.Series(np.where(3 * frame["a"] + noise > 0, "yes", "no"))


@pytest.fixture(scope="module")
def tree() -> SoftTreeClassifier:
    frame, classes = made(500, 0)
    return SoftTreeClassifier(depth=1, random_state=0).fit(frame[["a", "b"]], classes)


def test_figures_by_group_are_counted(tree: SoftTreeClassifier) -> None:
    """A column that is no feature: the tree is worse for one group, and the figures are counts."""
    frame, classes = made(800, 1)
    found = group_figures(tree, frame[["a", "b"]], classes, frame["sex"])
    predicted = tree.predict(frame[["a", "b"]])

    def figure(group: str, name: str, label: str | None = None) -> pd.Series:
        own = found[(found["group"] == group) & (found["figure"] == name)]
        return (own if label is None else own[own["class"] == label]).iloc[0]

    for group in ("f", "m"):
        own = (frame["sex"] == group).to_numpy()
        yes = (classes == "yes").to_numpy()
        right = (predicted == classes).to_numpy()
        assert figure(group, "accuracy")["value"] == pytest.approx(right[own].mean())
        recall = (predicted[own & yes] == "yes").mean()
        alarms = (predicted[own & ~yes] == "yes").mean()
        assert figure(group, "found", "yes")["value"] == pytest.approx(recall)
        assert figure(group, "alarms", "yes")["value"] == pytest.approx(alarms)
        assert figure(group, "found", "yes")["rows"] == np.sum(own & yes)
        said = tree.predict_proba(frame[["a", "b"]])[own, 1].mean() - yes[own].mean()
        assert figure(group, "said - true", "yes")["value"] == pytest.approx(said)
    assert figure("m", "accuracy")["high"] < figure("f", "accuracy")["low"]
    assert figure("all rows", "accuracy")["rows"] == 800


def test_hostile_groups_get_one_sentence(tree: SoftTreeClassifier) -> None:
    frame, classes = made(50, 1)
    with pytest.raises(ValueError, match="groups must hold one value for each of the 50 rows"):
        group_figures(tree, frame[["a", "b"]], classes, ["f"])
    with pytest.raises(ValueError, match="y holds 'perhaps', which is not a class of the tree"):
        group_figures(tree, frame[["a", "b"]], ["perhaps"] * 50, frame["sex"])
    with pytest.raises(ValueError, match="by names 'age', which is not a column of X"):
        report(tree, frame[["a", "b"]], classes, by="age")
    with pytest.raises(ValueError, match="refer must be a number between 0 and 1"):
        report(tree, frame[["a", "b"]], classes, refer=90)


def test_the_page_tells_groups_and_cases_for_a_person(tree: SoftTreeClassifier) -> None:
    frame, classes = made(500, 0)
    page = report(tree, frame, classes, by="sex", refer=0.95, time_limit=5)
    passed, rows, right = page.data.referred(0.95)
    assert rows == 500 and 0 < passed < 500
    assert right.value > page.data.accuracy(page.data.chosen).value
    said = (
        rf"confidence {500 - passed} of 500 cases have a prediction set of one class; \d+\s% of "
        rf"these predictions are right \(\d+ to \d+\); {passed} cases go to a person\."
    )
    assert re.search(said, page.html)
    assert "By sex, on held-out rows" in page.html
    counted = page.data.by_group.query("figure == 'accuracy'").set_index("group")["rows"]
    assert counted.to_dict() == {"all rows": 500, **frame["sex"].value_counts().to_dict()}
