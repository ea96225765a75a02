"""Limits for advice: every change respects them, and ``predict`` confirms it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from softsplit import SoftTreeClassifier


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
