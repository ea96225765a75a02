"""SoftTreeClassifierCV beside other methods, all as they come, on rows that none has seen.

    python benchmarks/selection.py run                fits, one row each, appended to --out
    python benchmarks/selection.py run --larger       the same on larger data sets
    python benchmarks/selection.py table              the rows as tables, also into --document
    python benchmarks/selection.py overview           means of them into docs/when.md
    python benchmarks/selection.py draw               accuracy and log-loss against size

The 24 data sets of the paper: five outer folds, stratified, shuffled by --fold-seed. The larger
ones: 5,000 rows drawn to train (stratified), up to 5,000 others to test, --draws times. The methods
and what is measured are told in methods.py. A run may be stopped and resumed.

Settings of softsplit were chosen on other splits (see docs/results/selection.md), never on the
folds of the default seed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from common import ROOT, add_options, markdown, put_into, write_page
from methods import (
    FOLDS,
    Task,
    add_shared,
    beside,
    failures,
    outer_folds,
    read_rows,
    table_of,
    wide,
    work,
)
from sklearn.model_selection import train_test_split

from softsplit.experiments.tables import paper_figures

SELECTION_METHODS = (
    "tree", "tree-sparse", "tree-best", "peer", "peer-log", "peer-default", "cart", "ebm", "abess",
)  # fmt: skip
LARGER = (
    "letter", "pendigits", "optdigits", "satimage", "shuttle", "magic", "adult", "covertype",
)  # fmt: skip
LARGER_METHODS = ("tree", "peer", "cart", "ebm")
LARGER_ROWS = 5000
LARGER_ITERATIONS = 300
"""Of the peer at most: more would take it hours."""

SHOWN = {
    "tree": "**soft tree** (default)",
    "tree-sparse": '**soft tree**, `selection="sparse"`',
    "tree-best": '**soft tree**, `selection="best"`',
    "peer": "L1 logistic regression, chosen by accuracy",
    "peer-log": "L1 logistic regression, chosen by log-loss",
    "cart": "CART, pruned",
    "abess": "best-subset logistic regression (abess)",
    "ebm": "explainable boosting (EBM)",
}
"""Methods of the overview, as it names them."""

DRAWN = {
    "tree-sparse": 'tree, "sparse"', "tree": "tree, default", "tree-best": 'tree, "best"',
    "peer": "L1 logistic regression", "cart": "CART", "abess": "best subset", "ebm": "EBM",
}  # fmt: skip
MOST_DRAWN = {"accuracy": 100.0, "log_loss": 0.5}
"""Higher values would press the others together: CART and best subsets are sure and wrong."""

DRAWN_LABELS = ("accuracy, %", "log-loss")
PICTURE = ROOT / "docs" / "images" / "selection-curve.svg"

PUZZLES = ["monks-1", "monks-2"]
"""No linear rule can learn these; figures are given with and without them."""

FIGURES = ("accuracy", "balanced", "log_loss", "features", "coefficients", "seconds")
"""Figures of which there is a table."""

BEHIND = 0.015
"""More than this below the peer is a loss to be explained."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=["run", "table", "overview", "draw"])
    add_shared(parser, "results/selection.jsonl", SELECTION_METHODS)
    parser.add_argument(
        "--figures", nargs="*", choices=FIGURES, default=list(FIGURES), help="tables of these alone"
    )
    args = add_options(
        parser,
        larger=(False, "the larger data sets"),
        draws=(3, "of each of the larger data sets"),
        folds=list(range(FOLDS)),
    ).parse_args()
    if args.part == "table":
        put_into(args.document, table(args))
    elif args.part == "overview":
        for name, texts in overview(args).items():
            write_page(ROOT / name, texts)
    elif args.part == "draw":
        draw(read_rows(args, fold_seed=args.fold_seed), PICTURE)
    elif args.larger:
        args.methods = [method for method in args.methods if method in LARGER_METHODS]
        args.peer_iterations = min(args.peer_iterations, LARGER_ITERATIONS)
        work(draws(args), args)
    else:
        work(nested(args), args)


def paper_datasets() -> list[str]:
    """The 24 data sets of the paper's tables."""
    return list(dict.fromkeys(paper_figures().index.get_level_values("dataset")))


def nested(args: argparse.Namespace) -> Iterator[Task]:
    """Every outer fold of every data set."""
    for name in (n for n in args.datasets or paper_datasets() if n not in LARGER):
        X, y = table_of(name)
        for fold, (train, test) in enumerate(outer_folds(y, args.fold_seed)):
            if fold in args.folds:
                key = {"dataset": name, "fold_seed": args.fold_seed, "fold": fold}
                yield Task(key, X[train], y[train], X[test], y[test], int(y.max()) + 1)


def draws(args: argparse.Namespace) -> Iterator[Task]:
    """Rows of the larger data sets, drawn several times."""
    for name in (n for n in LARGER if not args.datasets or n in args.datasets):
        X, y = table_of(name)
        for draw in range(args.draws):
            train, others = train_test_split(
                np.arange(len(y)),
                train_size=LARGER_ROWS,
                stratify=y,
                random_state=np.random.RandomState([args.fold_seed, draw]),
            )
            test = others[:LARGER_ROWS]
            key = {"dataset": name, "fold_seed": args.fold_seed, "draw": draw}
            yield Task(key, X[train], y[train], X[test], y[test], int(y.max()) + 1)


def table(args: argparse.Namespace) -> str:
    """The 24 data sets, then the larger ones if there are rows of them."""
    rows = read_rows(args, fold_seed=args.fold_seed)
    larger = rows["dataset"].isin(LARGER)
    texts = [section(rows[~larger], args.figures)] if not larger.all() else []
    if larger.any():
        texts.append(f"## Larger data sets\n\n{section(rows[larger], args.figures)}")
    return "\n".join(texts)


def overview(args: argparse.Namespace) -> dict[str, dict[str, str]]:
    """The texts of docs/when.md by the names of their places."""
    rows = read_rows(args, fold_seed=args.fold_seed)
    larger = rows["dataset"].isin(LARGER)
    if larger.all() or not larger.any():
        raise SystemExit(f"{args.out} needs rows of the paper's data sets and of the larger ones.")
    return {"docs/when.md": {"larger": larger_table(rows[larger])}}


def larger_table(rows: pd.DataFrame) -> str:
    """Accuracy on the larger data sets that the tree was run on."""
    found = wide(rows, "accuracy", ["dataset"]).dropna(subset="tree")
    lines = [
        [SHOWN[method], *("-" if np.isnan(a) else f"{100 * a:.1f}" for a in found[method])]
        for method in SHOWN
        if method in found
    ]
    return markdown(["", *found.index], lines)


def draw(rows: pd.DataFrame, path: Path) -> None:
    """Means over the data sets that every method ended on: quality against features in use."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "softsplit"
    from matplotlib import pyplot as plt

    rows = rows[~rows["dataset"].isin((*LARGER, *PUZZLES)) & rows["method"].isin(DRAWN)]
    found = {f: wide(rows, f, ["dataset"]) for f in ("features", "accuracy", "log_loss")}
    common = found["accuracy"].dropna().index
    if common.empty:
        raise SystemExit("no data set has rows of every method: there is nothing to draw.")
    means = pd.DataFrame({f: table.loc[common].mean() for f, table in found.items()})
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for axis, column, label in zip(axes, ("accuracy", "log_loss"), DRAWN_LABELS, strict=True):
        values = means[column] * (100 if column == "accuracy" else 1)
        values = values[values < MOST_DRAWN[column]]
        curve = [m for m in ("tree-sparse", "tree", "tree-best") if m in values.index]
        axis.plot(means["features"][curve], values[curve], "o-", color="C0")
        others = [m for m in values.index if m not in curve]
        axis.plot(means["features"][others], values[others], "s", color="C7", linestyle="none")
        for method in values.index:
            at = (means["features"][method], values[method])
            offset = (4, 5 if method in curve else -11)
            axis.annotate(DRAWN[method], at, offset, textcoords="offset points", fontsize=8)
        axis.set_xlabel("features in use (mean)")
        axis.set_ylabel(f"{label}, {len(common)} data sets")
        axis.margins(0.18)
    figure.savefig(path, metadata={"Date": None})
    print(means.round(4).to_string())


def section(rows: pd.DataFrame, figures: Sequence[str] = FIGURES) -> str:
    """What the figures come to, then a table for each of them."""
    rows = rows.assign(rows=rows["rows"] + rows["test_rows"])
    facts = rows.groupby("dataset", sort=False)[["rows", "columns", "classes"]].max().astype(int)
    tables = [
        beside(rows, figure, ["dataset"], facts if figure == "accuracy" else None)
        for figure in figures
    ]
    return "\n".join([f"{len(facts)} data sets.\n", summary(rows), *tables])


def summary(rows: pd.DataFrame) -> str:
    """Means of each method, and the tree against each of the others."""
    found = {
        figure: wide(rows, figure, ["dataset"])
        for figure in ("accuracy", "log_loss", "features", "coefficients", "seconds")
    }
    accuracy = found["accuracy"]
    lines = [
        f"- {method}: accuracy {with_and_without(accuracy[method])}, "
        f"log-loss {found['log_loss'][method].mean():.3f}, "
        f"features {found['features'][method].mean():.2f}, coefficients "
        f"{found['coefficients'][method].mean():.2f}, median seconds "
        f"{found['seconds'][method].median():.2f}."
        for method in accuracy
    ]
    if "tree" in accuracy:
        lines += [against(found, other) for other in accuracy if other != "tree"]
    return "\n".join(lines) + "\n" + failures(rows)


def with_and_without(figures: pd.Series, form: str = ".2f") -> str:
    """A mean over data sets in percent, and the mean without those no linear rule can learn."""
    plain = figures.drop(PUZZLES, errors="ignore")
    told = f"{100 * figures.mean():{form}}"
    if len(plain) in (0, len(figures)):
        return told
    return f"{told} (without Monks-1 and -2 {100 * plain.mean():{form}})"


def against(found: dict[str, pd.DataFrame], other: str) -> str:
    """The tree against another method, on the data sets that both have been run on."""
    both = {figure: table[["tree", other]].dropna() for figure, table in found.items()}
    gap = both["accuracy"]["tree"] - both["accuracy"][other]
    behind = [f"{name} ({100 * g:+.1f})" for name, g in gap[gap < -BEHIND].items()]
    ratio = {
        figure: both[figure]["tree"].sum() / max(both[figure][other].sum(), 1e-12)
        for figure in ("features", "coefficients")
    }
    higher = both["log_loss"]["tree"].mean() - both["log_loss"][other].mean()
    seconds = both["seconds"]["tree"] / both["seconds"][other]
    return (
        f"- Tree against {other}, {len(gap)} data sets: accuracy {with_and_without(gap, '+.2f')}, "
        f"log-loss {higher:+.3f}, {ratio['features']:.2f} of its features, "
        f"{ratio['coefficients']:.2f} of its coefficients, {seconds.median():.2f} of its seconds "
        f"(median); more than {100 * BEHIND:g} points behind on {len(behind)}: "
        f"{', '.join(behind) or 'none'}."
    )


if __name__ == "__main__":
    main()
