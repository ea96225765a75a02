"""Trees on new rows where data are unkind: two questions.

    python benchmarks/new_rows.py noise run|table     columns of noise added to twelve data sets
    python benchmarks/new_rows.py rare run|table      positives thinned to 2 and 5 % of the rows

noise: outer folds as in selection.py; 0, 10, 100 and 400 columns of standard normal numbers, the
first ten the same each time. What is lost against no noise, and how many such columns are in use.

rare: two-class data sets, the smaller class positive. Four fifths of the negatives train (2,000 at
most) with as many positives as make the share, eight at least; data sets too small for that are
left out. All other rows test, weighted so that the share is the same there. No class weights.

The methods and what is measured are told in methods.py. A run may be stopped and resumed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from common import add_options, put_into
from methods import Task, add_shared, beside, failures, outer_folds, read_rows, table_of, wide, work

NOISE_SETS = (
    "iris", "wine", "seeds", "wdbc", "wisconsin-original", "ionosphere", "diabetes",
    "credit-approval", "banknote", "balance-scale", "contraceptive", "vehicle",
)  # fmt: skip
NOISE_COLUMNS = (0, 10, 100, 400)

RARE_SETS = (
    "ionosphere", "wisconsin-original", "wdbc", "credit-approval", "diabetes", "german-credit",
    "banknote", "ozone", "spambase", "magic", "adult", "higgs-sample",
)  # fmt: skip
SHARES = (0.02, 0.05)
FEWEST_POSITIVES = 8
MOST_NEGATIVES = 2000
MOST_TESTS = 5000
"""Test rows of a class at most."""

ITERATIONS = 300
"""Of the peer at most."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds = parser.add_subparsers(dest="question", required=True)
    for name, (_, _, methods) in QUESTIONS.items():
        kind = kinds.add_parser(name)
        kind.add_argument("part", choices=["run", "table"])
        add_shared(kind, f"results/{name}.jsonl", methods, ITERATIONS)
        add_options(kind, draws=(3, "folds or draws of each data set"))
    args = parser.parse_args()
    tasks, table, _ = QUESTIONS[args.question]
    if args.part == "run":
        work(tasks(args), args)
    else:
        put_into(args.document, table(read_rows(args, fold_seed=args.fold_seed)))


def noise_tasks(args: argparse.Namespace) -> Iterator[Task]:
    """Folds of each data set, with more and more columns that say nothing."""
    for name in args.datasets or NOISE_SETS:
        X, y = table_of(name)
        noise = np.random.default_rng(args.fold_seed).normal(size=(max(NOISE_COLUMNS), len(y))).T
        folds = outer_folds(y, args.fold_seed)[: args.draws]
        for added in NOISE_COLUMNS:
            wide_X = np.ascontiguousarray(np.hstack([X, noise[:, :added]]))
            for fold, (train, test) in enumerate(folds):
                key = {"dataset": name, "fold_seed": args.fold_seed, "fold": fold, "noise": added}
                parts = (wide_X[train], y[train], wide_X[test], y[test], int(y.max()) + 1)
                yield Task(key, *parts, real_columns=X.shape[1])


def noise_table(rows: pd.DataFrame) -> str:
    by = ["dataset", "noise"]
    accuracy, used = (wide(rows, figure, by) for figure in ("accuracy", "noise_features"))
    plain = accuracy.xs(0, level="noise")
    lines = []
    for added in sorted(set(rows["noise"]) - {0}):
        lost = 100 * (plain - accuracy.xs(added, level="noise"))
        chosen = used.xs(added, level="noise")
        lines += [
            f"- {added} columns, {method}: {lost[method].mean():+.2f} points lost (most "
            f"{lost[method].max():+.1f}, {lost[method].idxmax()}), "
            f"{chosen[method].mean():.1f} noise columns in use (most {chosen[method].max():.1f}, "
            f"{chosen[method].idxmax()})."
            for method in lost
        ]
    tables = [beside(rows, figure, by) for figure in ("accuracy", "noise_features", "features")]
    return "\n".join([*lines, failures(rows), *tables])


def rare_tasks(args: argparse.Namespace) -> Iterator[Task]:
    """Two-class data sets with few positives, drawn several times."""
    for name in args.datasets or RARE_SETS:
        X, y = table_of(name)
        y = (y == np.argmin(np.bincount(y))).astype(int)
        for share in SHARES:
            for draw in range(args.draws):
                rng = np.random.default_rng([args.fold_seed, draw])
                rows = thinned(y, share, rng)
                if rows is None:
                    continue
                train, test = rows
                positive = y[test] == 1
                weights = np.where(
                    positive, share / positive.sum(), (1 - share) / (~positive).sum()
                )
                key = {"dataset": name, "fold_seed": args.fold_seed, "share": share, "draw": draw}
                yield Task(key, X[train], y[train], X[test], y[test], 2, weights=weights)


def thinned(
    y: np.ndarray, share: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray] | None:
    """Rows to train on, with that share of positives, and rows to test; None if too few."""
    negative, positive = (rng.permutation(np.flatnonzero(y == k)) for k in (0, 1))
    n_negative = min(MOST_NEGATIVES, int(0.8 * len(negative)))
    n_positive = round(share / (1 - share) * n_negative)
    if not FEWEST_POSITIVES <= n_positive <= 0.8 * len(positive):
        return None
    train = np.concatenate([negative[:n_negative], positive[:n_positive]])
    test = np.concatenate([negative[n_negative:][:MOST_TESTS], positive[n_positive:][:MOST_TESTS]])
    return rng.permutation(train), test


def rare_table(rows: pd.DataFrame) -> str:
    by = ["share", "dataset"]
    rows = rows.sort_values("share", kind="stable")
    balanced, accuracy = (wide(rows, figure, by) for figure in ("balanced", "accuracy"))
    lines = []
    for share, means in balanced.groupby(level="share"):
        here = 100 * accuracy.xs(share, level="share").mean()
        lines += [
            f"- {share:.0%} positives, {len(means)} data sets, {method}: balanced accuracy "
            f"{100 * means[method].mean():.2f}, accuracy {here[method]:.2f}."
            for method in means
        ]
    if {"tree", "peer"} <= set(balanced):
        gap = 100 * (balanced["tree"] - balanced["peer"])
        lines.append(
            f"- Tree against peer: {gap.mean():+.2f} points of balanced accuracy, ahead on "
            f"{(gap > 0).sum()} of {len(gap)}; accuracy "
            f"{100 * (accuracy['tree'] - accuracy['peer']).mean():+.2f}."
        )
    if {"tree", "plain"} <= set(balanced) and "area" in rows:
        loss, area = (wide(rows, figure, by) for figure in ("log_loss", "area"))
        worse, lower = loss["tree"] - loss["plain"], area["plain"] - area["tree"]
        lines.append(
            f"- Tree against plain: log-loss {worse.mean():+.4f} (worst {worse.max():+.3f}, "
            f"{worse.idxmax()}), area under the ROC curve {-lower.mean():+.4f} (worst "
            f"{-lower.max():+.3f}, {lower.idxmax()})."
        )
    shown = ["balanced", "accuracy", "log_loss", "features", *(["area"] if "area" in rows else [])]
    tables = [beside(rows, f, by) for f in shown]
    return "\n".join([*lines, failures(rows), *tables])


Tasks = Callable[[argparse.Namespace], Iterator[Task]]
QUESTIONS: dict[str, tuple[Tasks, Callable[[pd.DataFrame], str], tuple[str, ...]]] = {
    "noise": (noise_tasks, noise_table, ("tree", "peer")),
    "rare": (rare_tasks, rare_table, ("tree", "plain", "peer")),
}
"""What is fitted, how it is told, and by which methods."""


if __name__ == "__main__":
    main()
