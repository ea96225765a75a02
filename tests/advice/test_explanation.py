"""What an explanation prints: changes that hold as they are read, numbers of the printed tree."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from softsplit import SoftTreeClassifier, export_text

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


def fitted(seed, **options):
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
    tree, X = fitted(1, **options)
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
