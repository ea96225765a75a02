"""How sure a tree is, and whether it notices that rows have moved: two questions.

    python benchmarks/after_fit.py coverage [--folds 2] [--document docs/results/after-fit.md]
    python benchmarks/after_fit.py check [--draws 9] [--document docs/results/after-fit.md]

coverage: the 28 data sets of the catalogue as they are published. A tree is chosen by
cross-validation (effort "fast") on three fifths of the training part of an outer fold, at most 500
rows; its sets at 80, 90 and 95 % are judged on the held-out fold. Beside it, sets from rows of
their own: the rest of the rows are halved, one half is given to ``calibrate``, the other judged,
and MAPIE (if it is installed) makes its sets of the same tree's probabilities and the same halves.

check: the table of a data set stands for all rows there are. Training rows (at most 500) and 1,000
new rows are drawn from it with replacement, so that both come from one distribution; a tree is
trained on the first. Then the new rows are shifted: half a deviation in one column of numbers, a
new level in a tenth of the rows of one category, or the odds of the most frequent class halved. A
shift is found if ``check_rows`` says of the column that it has moved, of classes if anything has.

One thread; each part takes minutes. With --out a run may be stopped and resumed: data sets that the
file has are not judged again, and the table is that of all lines in it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import add_row, arguments, put_into, rows_of, timed
from methods import outer_folds

from softsplit import SoftTreeClassifier, SoftTreeClassifierCV, check_rows
from softsplit.data.named import catalogue, file_of
from softsplit.experiments.tables import markdown

LEVELS = (0.8, 0.9, 0.95)
TRAINING_ROWS, NEW_ROWS = 500, 1000
SHIFTED_DRAWS = 200
NEW_LEVEL = 0.1
"""Part of the rows that get a level which training does not have."""


def main() -> None:
    args = arguments(
        __doc__,
        ("coverage", "check"),
        datasets=([], "only these"),
        folds=(2, "outer folds of five"),
        draws=(9, "trees for each data set"),
        out=(Path, "file of the lines, JSON"),
        document=(Path, "file to put the tables into"),
    )
    warnings.simplefilter("ignore")
    names = args.datasets or list(catalogue())
    if args.part == "coverage":
        lines = judged(names, args.out, lambda name: coverage(name, args.folds))
        text = coverage_text(lines.drop(columns="seconds"))
    else:
        times = shifted_times(list(catalogue()) if args.out else names, args.draws)
        lines = judged(names, args.out, lambda name: check(name, args.draws, times))
        text = check_text(lines)
    took = lines.groupby("dataset")["seconds"].first().sum()
    put_into(args.document, f"{text}\n{took:.0f} s on one thread.\n", args.part)


def judged(
    names: list[str], out: Path | None, judge: Callable[[str], list[dict[str, Any]]]
) -> pd.DataFrame:
    """The lines of all data sets, those of an earlier run included."""
    lines = rows_of(out)
    there = {line["dataset"] for line in lines}
    for name in (name for name in names if name not in there):
        new, took = timed(partial(judge, name))
        lines += [
            add_row(out, {"dataset": name, **line, "seconds": took["seconds"]}) for line in new
        ]
        print(f"{name}: {took['seconds']:.0f} s", flush=True)
    return pd.DataFrame(lines)


def table_of(name: str) -> tuple[pd.DataFrame, pd.Series, dict[str, str]]:
    """The features of a data set as published, its classes, and which columns are categories."""
    path = file_of(name)
    assert path is not None, f"no file of {name} in SOFTSPLIT_DATA"
    frame = pd.read_csv(path)
    names = list(frame.columns[:-1])
    kinds = {names[j]: "category" for j in catalogue()[name]["categorical"]}
    return frame[names], frame[frame.columns[-1]].astype(str), kinds


# --- coverage ------------------------------------------------------------------------------------


def coverage(name: str, folds: int) -> list[dict[str, Any]]:
    lines = []
    X, y, kinds = table_of(name)
    codes = pd.factorize(y, sort=True)[0]
    for fold, (train, test) in list(enumerate(outer_folds(codes, 2026)))[:folds]:
        train = np.random.default_rng([2026, fold]).permutation(train)
        number = min(TRAINING_ROWS, 3 * len(train) // 5)
        own, rest = train[:number], train[number:]
        tree = SoftTreeClassifierCV(effort="fast", feature_types=kinds, random_state=0)
        tree.fit(X.iloc[own], y.iloc[own])
        others = np.random.default_rng([7, fold]).permutation(np.concatenate([rest, test]))
        known = np.isin(y, tree.classes_)  # a class without training rows is in no set
        others = others[known[others]]
        line: dict[str, Any] = {"fold": fold, "rows": len(own), "judged": len(test)}
        truth = np.minimum(np.searchsorted(tree.classes_, y.iloc[test]), len(tree.classes_) - 1)
        for level in LEVELS:
            sets = tree.predict_set(X.iloc[test], level)
            covered = sets[np.arange(len(test)), truth] & known[test]
            line[f"covered {level}"] = covered.mean()
            line[f"size {level}"] = sets.sum(axis=1).mean()
        half = len(others) // 2
        lines.append(line | halves(tree, X, y, others[:half], others[half:]))
    return lines


def halves(tree: Any, X: pd.DataFrame, y: pd.Series, known: Any, new: Any) -> dict[str, float]:
    """Sets from rows of their own: those of ``calibrate``, and of MAPIE with the same tree."""
    made: dict[str, float] = {}
    truth = np.searchsorted(tree.classes_, y.iloc[new])
    twin = tree.calibrate(X.iloc[known], y.iloc[known])
    found = {"split": {level: twin.predict_set(X.iloc[new], level) for level in LEVELS}}
    said, asked = tree.predict_proba(X.iloc[known]), tree.predict_proba(X.iloc[new])
    several = y.iloc[known].nunique() > 2  # of two classes, MAPIE has one score
    for score in ("lac", "aps") if several else ("lac",):
        sets = mapie_sets(tree.classes_, said, y.iloc[known].to_numpy(), asked, score)
        if sets is not None:
            found[f"MAPIE {score}"] = sets
    for name, by_level in found.items():
        for level, sets in by_level.items():
            made[f"{name} covered {level}"] = sets[np.arange(len(new)), truth].mean()
            made[f"{name} size {level}"] = sets.sum(axis=1).mean()
    return made


def mapie_sets(classes: Any, said: Any, labels: Any, asked: Any, score: str) -> Any:
    """Sets of MAPIE at all levels from probabilities; None if it is not installed."""
    try:
        from mapie.classification import SplitConformalClassifier
    except ImportError:
        return None
    from sklearn.base import BaseEstimator, ClassifierMixin

    class Said(ClassifierMixin, BaseEstimator):  # a fitted classifier whose rows are its answers
        def __init__(self, known: Any = None) -> None:
            self.known, self.classes_ = known, known

        def fit(self, X: Any, y: Any) -> Any:
            return self

        def predict_proba(self, X: Any) -> Any:
            return np.asarray(X)

        def predict(self, X: Any) -> Any:
            return self.classes_[np.argmax(X, axis=1)]

    made = SplitConformalClassifier(
        Said(classes), confidence_level=list(LEVELS), conformity_score=score, prefit=True,
        random_state=0,
    )  # fmt: skip
    made.conformalize(said, labels)
    _, sets = made.predict_set(asked)
    return {level: sets[:, :, i] for i, level in enumerate(LEVELS)}


def coverage_text(lines_of_folds: pd.DataFrame) -> str:
    folds = len(lines_of_folds)
    found = lines_of_folds.groupby("dataset", sort=False).mean().drop(columns="fold")
    means = found.mean()
    methods = [name for name in ("split", "MAPIE lac", "MAPIE aps") if f"{name} size 0.9" in found]
    lines = []
    for level in LEVELS:
        line = {"level": level, "covered": means[f"covered {level}"],
                "classes a set": means[f"size {level}"]}  # fmt: skip
        for name in methods:
            line |= {f"{name}: covered": means[f"{name} covered {level}"],
                     f"{name}: classes a set": means[f"{name} size {level}"]}  # fmt: skip
        lines.append(line)
    columns = [f"{what} {level}" for level in LEVELS for what in ("covered", "size")]
    each = found[["rows", "judged", *columns]].reset_index()
    each[["rows", "judged"]] = each[["rows", "judged"]].round().astype(int)
    return "\n".join(
        [f"Means over {len(found)} data sets, {folds} held-out folds.\n",
         markdown(pd.DataFrame(lines).round(3)), "", markdown(each.round(3))]
    )  # fmt: skip


# --- check ---------------------------------------------------------------------------------------


SHIFTS = ("half a deviation", "a new level", "class odds halved")


def shifted_times(names: list[str], draws: int) -> dict[str, int]:
    """How often each tree is asked about each shift, so that there are enough of each."""
    tables = [table_of(name) for name in names]
    eligible = (
        sum(bool(number_columns(X, kinds)) for X, _, kinds in tables),
        sum(bool(kinds) for *_, kinds in tables),
        len(names),
    )
    pairs = zip(SHIFTS, eligible, strict=True)
    return {shift: -(-SHIFTED_DRAWS // max(draws * count, 1)) for shift, count in pairs}


def check(name: str, draws: int, times: dict[str, int]) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    X, y, kinds = table_of(name)
    numbers = number_columns(X, kinds)
    there = dict(zip(SHIFTS, (bool(numbers), bool(kinds), True), strict=True))
    for draw in range(draws):
        drawn = np.random.default_rng([11, draw])
        own = drawn.integers(0, len(y), min(len(y), TRAINING_ROWS))
        tree = SoftTreeClassifier(
            effort="fast", n_starts=1, feature_types=kinds, random_state=0
        ).fit(X.iloc[own], y.iloc[own])
        used = {v.name for v in tree.tree_.table_coding.variables}
        fresh = drawn.integers(0, len(y), NEW_ROWS)
        alarm = not check_rows(tree, X.iloc[fresh], y.iloc[fresh]).fine
        lines.append({"shift": "none", "found": bool(alarm)})
        for shift in (shift for shift in SHIFTS if there[shift]):
            for _ in range(times[shift]):
                found = shifted(tree, (X, y), shift, numbers, list(kinds), used, drawn)
                if found is not None:
                    lines.append({"shift": shift, "found": bool(found)})
    return lines


def number_columns(X: pd.DataFrame, kinds: dict[str, str]) -> list[str]:
    plain = X.drop(columns=list(kinds)).select_dtypes("number")
    return [name for name in plain if plain[name].nunique() > 2]


def shifted(
    tree: Any, rows: tuple[pd.DataFrame, pd.Series], shift: str, numbers: list[str],
    categories: list[str], used: set[str], drawn: np.random.Generator,
) -> bool | None:  # fmt: skip
    """Whether a shift of new rows is found; None if training has left its column out."""
    X, y = rows
    chances = np.ones(len(y))
    if shift == "class odds halved":
        chances[y == y.value_counts().index[0]] = 0.5
    fresh = drawn.choice(len(y), NEW_ROWS, p=chances / chances.sum())
    new, classes = X.iloc[fresh].copy(), y.iloc[fresh]
    if shift == "class odds halved":
        return not check_rows(tree, new, classes).fine
    column = str(drawn.choice(numbers if shift == "half a deviation" else categories))
    if column not in used:
        return None
    if shift == "half a deviation":
        new[column] = new[column] + 0.5 * X[column].std()
    else:
        strange = drawn.random(NEW_ROWS) < NEW_LEVEL
        new[column] = new[column].astype(object).where(~strange, "a new level")
    return column in {one.name for one in check_rows(tree, new, classes).moved}


def check_text(found: pd.DataFrame) -> str:
    each = found.groupby("shift")["found"].agg(["size", "mean"])
    each["error"] = np.sqrt(each["mean"] * (1 - each["mean"]) / each["size"])
    order = ["none", "half a deviation", "a new level", "class odds halved"]
    each = each.reindex([name for name in order if name in each.index]).reset_index()
    each.columns = ["shift", "draws", "share with an alarm or found", "standard error"]
    wide = found.pivot_table("found", "dataset", "shift", sort=False).reset_index().round(3)
    return "\n".join([markdown(each.round(3)), "", markdown(wide)])


if __name__ == "__main__":
    main()
