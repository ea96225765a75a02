"""Fairness of trees on held-out rows, beside fairlearn's ExponentiatedGradient.

    python benchmarks/requirements_fairness.py peers      with a Python that has fairlearn
    python benchmarks/requirements_fairness.py run        [--cases adult-sex ...]
    python benchmarks/requirements.py fairness            both, as far as possible, and the table

Figures are kept in docs/results/fairness-*.json, and a run goes on where it was left: remove what
is to be measured anew.

Adult (2,500 rows to train on and 8,000 others to judge by, drawn anew for each of five folds) and
German credit (five stratified folds). The favourable class is ">50K" or "good". Demographic parity
by sex, and in German credit by age over 25; equalised odds for three groups (race of adult: White,
Black, others). The sensitive column is among the features of both methods. Trees of German credit
are those of `SoftTreeClassifierCV(selection="best")`, those of adult of
`SoftTreeClassifier(n_starts=3)`, since a choice takes minutes there. ExponentiatedGradient is run
over logistic regression on the same table, one-hot and standardised, with the same bounds; its
answers are those of a random mixture, of which expectations are taken here. Held-out rows of all
folds are judged together: disparity is the difference of the largest and the smallest rate.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from common import RESULTS, arguments

DATA = Path(os.environ.get("SOFTSPLIT_DATA", "data"))
BOUNDS = (0.02, 0.05, 0.1)
FOLDS = 5
ADULT_TRAINED, ADULT_JUDGED = 2500, 8000
FILES = {part: RESULTS / f"fairness-{part}.json" for part in ("run", "peers")}


class Case(NamedTuple):
    """A table with a column to compare by."""

    X: pd.DataFrame
    y: np.ndarray
    group: np.ndarray
    odds: bool


def adult() -> tuple[pd.DataFrame, np.ndarray]:
    table = pd.read_csv(DATA / "large" / "adult.csv.gz")
    y = np.where(table.pop("class").str.strip() == ">50K", "yes", "no")
    return table.drop(columns=["fnlwgt", "education"]), y


def german() -> tuple[pd.DataFrame, np.ndarray]:
    table = pd.read_csv(DATA / "german-credit.csv")
    y = np.where(table.pop("class") == "good", "yes", "no")
    female = table.pop("personal_status").isin(["A92", "A95"])
    return table.assign(sex=np.where(female, "F", "M")), y


def case_of(name: str) -> Case:
    """The table of a case, with the sensitive column as a feature."""
    X, y = adult() if name.startswith("adult") else german()
    if name == "adult-race-odds":
        X["race"] = np.where(X.race.isin(["White", "Black"]), X.race, "Other")
        return Case(X, y, X.race.to_numpy(), True)
    if name == "german-age":
        X["over25"] = np.where(X.age > 25, "over", "up to")
        return Case(X, y, X.over25.to_numpy(), False)
    return Case(X, y, X.sex.to_numpy(), False)


CASES = {"adult-sex": "sex", "german-sex": "sex", "german-age": "over25", "adult-race-odds": "race"}


def folds_of(name: str, y: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for seed in range(FOLDS):
        if name.startswith("adult"):
            drawn = np.random.default_rng(seed).permutation(len(y))
            yield drawn[:ADULT_TRAINED], drawn[ADULT_TRAINED:][:ADULT_JUDGED]
            continue
        order = np.random.default_rng(7).permutation(len(y))
        order = order[np.argsort(y[order], kind="stable")]
        test = order[seed::FOLDS]
        yield np.setdiff1d(order, test), test


def disparity(said: np.ndarray, true: np.ndarray, group: np.ndarray, odds: bool) -> float:
    """Largest difference of the rates of the favourable class, given the class with ``odds``."""
    parts = [true == k for k in ("no", "yes")] if odds else [np.ones(len(true), dtype=bool)]
    gaps = []
    for part in parts:
        rates = [said[part & (group == g)].mean() for g in np.unique(group[part])]
        gaps.append(max(rates) - min(rates))
    return float(max(gaps))


def judged(case: Case, name: str, answer) -> dict:
    """Held-out accuracy and disparity over all folds, and disparities on the training rows.

    ``answer(X, y, group, X_test)`` returns probabilities of the favourable decision for training
    and test rows, expected ones of training rows, and the number of columns in use.
    """
    held, true, groups, trained, expected, columns = [], [], [], [], [], []
    began = time.perf_counter()
    for train, test in folds_of(name, case.y):
        X, y, group = case.X.iloc[train], case.y[train], case.group[train]
        own, soft, other, used = answer(X, y, group, case.X.iloc[test])
        trained.append(disparity(own, y, group, case.odds))
        expected.append(disparity(soft, y, group, case.odds))
        held.append(other)
        true.append(case.y[test])
        groups.append(case.group[test])
        columns.append(used)
    held, true, groups = map(np.concatenate, (held, true, groups))
    right = np.where(true == "yes", held, 1 - held)
    return {
        "accuracy": float(right.mean()),
        "error": float(right.std() / np.sqrt(len(right))),
        "disparity": disparity(held, true, groups, case.odds),
        "training": float(max(trained)),
        "training_expected": float(max(expected)),
        "columns": float(np.mean(columns)),
        "seconds": (time.perf_counter() - began) / FOLDS,
    }


def of_trees(name: str, bound: float | None) -> dict:
    from softsplit import EqualizedOdds, Parity, SoftTreeClassifier, SoftTreeClassifierCV

    case, column = case_of(name), CASES[name]
    kind = EqualizedOdds if case.odds else Parity
    wanted = None if bound is None else kind(column, bound, of="yes")

    def answer(X, y, group, X_test):
        given = {"fairness": wanted, "random_state": 0}
        if name.startswith("german"):
            tree = SoftTreeClassifierCV(selection="best", **given).fit(X, y)
        else:  # a choice takes minutes
            tree = SoftTreeClassifier(n_starts=3, **given).fit(X, y)
        own, other = (tree.predict(rows) == "yes" for rows in (X, X_test))
        soft = tree.predict_proba(X)[:, list(tree.classes_).index("yes")]
        return own.astype(float), soft, other.astype(float), len(tree.selected_features_)

    return judged(case, name, answer)


def of_mixtures(name: str, bound: float | None) -> dict:
    from fairlearn.reductions import DemographicParity, EqualizedOdds, ExponentiatedGradient
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    case = case_of(name)

    def answer(X, y, group, X_test):
        coded = make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
            (StandardScaler(), make_column_selector(dtype_include="number")),
            sparse_threshold=0.0,
        ).fit(X)
        rows, others, labels = coded.transform(X), coded.transform(X_test), (y == "yes").astype(int)
        plain = LogisticRegression(max_iter=2000)
        if bound is None:
            plain.fit(rows, labels)
            said = [plain.predict(one).astype(float) for one in (rows, others)]
        else:
            kind = EqualizedOdds if case.odds else DemographicParity
            wanted = kind(difference_bound=bound)
            found = ExponentiatedGradient(plain, wanted, eps=bound)
            found.fit(rows, labels, sensitive_features=group)
            said = [found._pmf_predict(one)[:, 1] for one in (rows, others)]
        return said[0], said[0], said[1], X.shape[1]

    return judged(case, name, answer)


def summary(trees: dict, peers: dict) -> str:
    """The table, and what it comes to."""
    head = (
        "| case | bound | training, expected | training, decided | held-out disparity | accuracy "
        "| columns | mixture: disparity | mixture: accuracy | mixture at the disparity of the tree "
        "| difference |\n|---|---|---|---|---|---|---|---|---|---|---|"
    )
    lines, gaps = [head], []
    for case, found in trees.items():
        beside = peers.get(case, {})
        curve = sorted((one["disparity"], one["accuracy"]) for one in beside.values())
        for bound, one in found.items():
            cells = [case, bound, f"{one['training_expected']:.3f}", f"{one['training']:.3f}"]
            cells += [f"{one['disparity']:.3f}", f"{100 * one['accuracy']:.1f}"]
            cells.append(f"{one['columns']:.1f}")
            if curve:
                near = float(np.interp(one["disparity"], *zip(*curve, strict=True)))
                other = beside.get(bound)
                cells += ["", ""]
                if other is not None:
                    cells[-2:] = [f"{other['disparity']:.3f}", f"{100 * other['accuracy']:.1f}"]
                cells += [f"{100 * near:.1f}", f"{100 * (one['accuracy'] - near):+.1f}"]
                if bound != "none":
                    gaps.append(100 * (one["accuracy"] - near))
            else:
                cells += ["", "", "", ""]
            lines.append("| " + " | ".join(cells) + " |")
    bounds = [(float(b), one) for f in trees.values() for b, one in f.items() if b != "none"]
    soft = sum(one["training_expected"] <= b + 1e-6 for b, one in bounds)
    hard = sum(one["training"] <= b + 0.01 for b, one in bounds)
    seconds = np.mean([one["seconds"] for f in trees.values() for one in f.values()])
    said = (
        f"Expected rates hold the bound on the training rows of all folds in {soft} of "
        f"{len(bounds)} lines, decisions to one point in {hard}. A fit takes {seconds:.0f} s in "
        "the mean on one core."
    )
    if gaps:
        ahead = sum(gap >= 0 for gap in gaps)
        said += (
            f" At its held-out disparity the tree is at least as accurate as the mixture of "
            f"logistic regressions in {ahead} of {len(gaps)} lines, {np.mean(gaps):+.1f} points in "
            "the mean."
        )
    return "\n".join(lines) + f"\n\n{said}\n"


def known(part: str) -> dict:
    """What was measured before."""
    return json.loads(FILES[part].read_text()) if FILES[part].exists() else {}


def measured(part: str, cases: list[str]) -> None:
    """Measure what is not known yet."""
    measure, found = (of_trees if part == "run" else of_mixtures), known(part)
    for name in cases:
        for bound in (*BOUNDS, None):
            key = "none" if bound is None else f"{bound:g}"
            if key in found.get(name, {}):
                continue
            found.setdefault(name, {})[key] = measure(name, bound)
            FILES[part].write_text(json.dumps(found, indent=1) + "\n")
            print(name, key, found[name][key], flush=True)


def lines() -> list[str]:
    """The section of the document."""
    measured("run", list(CASES))
    if find_spec("fairlearn") is not None:
        measured("peers", list(CASES))
    told = __doc__.split("\n\n")[-1].strip().replace("\n", " ")
    return ["## Fairness", "", told, "", *summary(known("run"), known("peers")).splitlines()]


def main() -> None:
    args = arguments(__doc__, ["run", "peers", "table"], cases=list(CASES))
    if args.part == "table":
        print(summary(known("run"), known("peers")))
    else:
        measured(args.part, args.cases)


if __name__ == "__main__":
    main()
