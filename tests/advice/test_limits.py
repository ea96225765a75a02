"""Limits for advice: every change respects them, and ``predict`` confirms it."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from softsplit import SoftTreeClassifier, export_text


def made_table(rows: int, seed: int) -> tuple[pd.DataFrame, pd.Series]:
    drawn = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": drawn.integers(20, 80, rows),
            "bmi": drawn.normal(27, 5, rows).round(1),
            "smoker": drawn.choice(["no", "yes"], rows),
            "size": drawn.choice(["small", "medium", "large"], rows),
            "town": drawn.choice(["Rome", "Oslo", "Bern", "Kyiv"], rows),
            "seen": pd.Timestamp("2024-01-01")
            + pd.to_timedelta(drawn.integers(0, 700, rows), unit="D"),
        }
    )
    frame.loc[drawn.random(rows) < 0.05, "bmi"] = np.nan
    days = (frame["seen"] - pd.Timestamp("2024-01-01")).dt.days
    score = (
        (frame["age"] - 50) / 8 + (frame["bmi"].fillna(27) - 27) / 3
        + 2 * (frame["smoker"] == "yes")
        + 1.5 * frame["town"].isin(["Rome", "Oslo"]) + (days - 350) / 250
        + frame["size"].map({"small": -1, "medium": 0, "large": 1}) - 2
    )  # fmt: skip
    return frame, pd.Series(np.where(score + drawn.normal(size=rows) > 0, "ill", "well"))


@pytest.fixture(scope="module", params=["walk", "mixture"])
def fitted(request: pytest.FixtureRequest) -> tuple[SoftTreeClassifier, pd.DataFrame]:
    frame, classes = made_table(900, 0)
    tree = SoftTreeClassifier(depth=2, decision=request.param, global_strength=0.1,
                              local_strength=0.1, random_state=0)  # fmt: skip
    return tree.fit(frame, classes), frame


ORDER = ["small", "medium", "large"]
LIMITS = {
    "fixed": ["age"],
    "ranges": {"bmi": (18, 30), "town": ["Oslo", "Bern"], "seen": ("2024-06-01", None)},
    "only_decrease": ["bmi", "size"],
    "only_increase": ["seen"],
}


def test_changes_stay_within_limits(fitted: tuple[SoftTreeClassifier, pd.DataFrame]) -> None:
    tree, frame = fitted
    found: set[str] = set()
    for place in range(0, 300, 10):
        row = frame.iloc[[place]]
        free, limited = tree.explain(row), tree.explain(row, **LIMITS)
        before = tree.predict(row)[0]
        assert not free.limits and limited.limits[0] == "age stays as it is"
        for parts in [*((change,) for change in limited.changes), limited.together]:
            after = row.astype({"age": float})
            for change in parts:
                new, old = change.new_value, row.iloc[0][change.name]
                found.add(change.name)
                assert change.name != "age"
                if change.name == "bmi":
                    assert 18 <= new <= 30 and new <= old  # an unknown value stays
                elif change.name == "seen":
                    assert pd.Timestamp(new) >= max(pd.Timestamp("2024-06-01"), old)
                    new = pd.Timestamp(new)
                elif change.name == "town":
                    assert new in ("Oslo", "Bern")
                elif change.name == "size":
                    assert ORDER.index(new) <= ORDER.index(old)
                after[change.name] = [new]
            if parts:
                assert tree.predict(after)[0] == parts[0].label != before
        names = {change.name for change in limited.changes}
        assert names <= {change.name for change in free.changes}
    assert found == {"bmi", "seen", "town", "size", "smoker"}


def test_no_limits_change_nothing(fitted: tuple[SoftTreeClassifier, pd.DataFrame]) -> None:
    """Ranges as wide as those of training leave every change as it is."""
    tree, frame = fitted
    wide = {"bmi": (None, None), "age": (0, 200), "seen": (None, "2030-01-01")}
    for place in range(0, 60, 3):
        row = frame.iloc[[place]]
        assert tree.explain(row, ranges=wide).changes == tree.explain(row).changes


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"fixed": "age"}, "fixed must list columns"),
        ({"fixed": ["agee"]}, "did you mean 'age'"),
        ({"ranges": [("bmi", 1, 2)]}, "ranges must map columns"),
        ({"ranges": {"bmi": 3}}, r"must be \(smallest, largest\)"),
        ({"ranges": {"bmi": (30, 20)}}, "begin above their end"),
        ({"ranges": {"bmi": (200, 300)}}, "is in its training range; widen"),
        ({"ranges": {"bmi": ("thin", 30)}}, "holds 'thin' where numbers are needed"),
        ({"ranges": {"town": ["Paris"]}}, "hold 'Paris', which is no level"),
        ({"ranges": {"town": "Oslo"}}, "must list its allowed levels"),
        ({"only_decrease": ["town"]}, "whose levels have no order"),
        ({"only_increase": [17]}, "names 17, which is not a column"),
    ],
)
def test_hostile_limits_get_one_sentence(
    fitted: tuple[SoftTreeClassifier, pd.DataFrame], given: dict[str, object], said: str
) -> None:
    tree, frame = fitted
    with pytest.raises(ValueError, match=said):
        tree.explain(frame.iloc[[0]], **given)  # type: ignore[arg-type]


# What an explanation prints: changes that hold as they are read, numbers of the printed tree.


CHANGE = re.compile(r"(\w+) from (.+?) to (.+?)(?: \([^()]*range\))?(?= and |: class |$)")


def table(seed, n=400):
    """A bent effect, whole numbers, dates with times, and missing values."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({
        "dose": rng.gamma(2.0, 1.3, n),
        "visits": rng.integers(0, 40, n),
        "salt": 1e-3 * rng.normal(size=n),
        "income": np.round(rng.lognormal(14, 0.4, n), 2),
        "start": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.random(n) * 700, unit="D"),
    })  # fmt: skip
    days = (X["start"] - X["start"].min()).dt.days
    score = np.abs(X["dose"] - 2.5) + 0.06 * X["visits"] + 700 * X["salt"] + days / 250
    score += X["income"] / 1e6
    y = np.array(["low", "mid", "high"])[np.digitize(score, np.quantile(score, [0.35, 0.7]))]
    for name in ("dose", "start", "visits"):
        X[name] = X[name].astype(float) if name == "visits" else X[name]
        X.loc[rng.random(n) < 0.08, name] = None
    return X, y


def fitted_of_explanation(seed, **options):
    X, y = table(seed)
    kinds = {"start": "date: days"}
    tree = SoftTreeClassifier(
        depth=2, n_starts=1, random_state=0, feature_types=kinds, **options
    )  # fmt: skip
    return tree.fit(X, y), X


TREES = pytest.mark.parametrize(
    "options", [{}, {"scale": "quantile"}, {"decision": "mixture"}], ids=str
)


@TREES
def test_the_printed_changes_change_the_class_as_printed(options):
    tree, X = fitted_of_explanation(1, **options)
    moved, unknown = set(), 0
    for i in range(60):
        row, said = X.iloc[[i]], str(tree.explain(X.iloc[i]))
        (before,) = tree.predict(row)
        for line in said.splitlines():
            if not line.startswith("    ") or " from " not in line:
                continue
            changed, (told, label) = row.copy(), line.strip().rsplit(": class ", 1)
            found = CHANGE.findall(told)
            assert found
            for name, old, new in found:
                changed[name] = pd.Timestamp(new) if name == "start" else float(new)
                moved.add(name)
                if old == "unknown":
                    unknown += 1
                    assert f"{name} from unknown to {new}" in told
                    assert f"{name} from unknown to {new} (" not in told
            assert tree.predict(changed)[0] == label != before, line
    assert len(moved) > 3 and unknown > 3


def test_questions_and_leaves_have_the_numbers_of_the_printed_tree():
    X = np.arange(256.0).reshape(-1, 1) % 16
    X = np.hstack([X, np.arange(256).reshape(-1, 1) // 16.0])
    y = (X[:, 0] > 7) * 4 + (X[:, 1] > np.where(X[:, 0] > 7, 4, 10)) * 2
    tree = SoftTreeClassifier(depth=2, n_starts=2, random_state=0, points=False).fit(X, y)
    printed = export_text(tree)
    conditions = dict(re.findall(r"if (.+?)   (\[question \d+\])", printed))
    leaves = re.findall(r"class (.+?)   \[leaf (\d+)\]", printed)
    assert len(conditions) == 3 and len(leaves) == 4
    asked, reached = set(), set()
    for x in X[::5]:
        said = str(tree.explain(x))
        for number, condition in re.findall(r"question (\d+): (.+)", said):
            assert conditions[condition] == f"[question {number}]"
            asked.add(number)
        (leaf,) = re.findall(r"leaf: class (.+?)   \[leaf (\d+)\]", said)
        assert leaf in leaves
        reached.add(leaf)
    assert asked == {"1", "2", "3"} and len(reached) == 4
