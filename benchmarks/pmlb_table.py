"""The rows of pmlb.py as tables, sentences and a picture.

    python benchmarks/pmlb_table.py --rows FILE ...    means by table to docs/results/pmlb.csv,
                                                       and what documents show of them
    python benchmarks/pmlb_table.py                    the documents from that file alone

Rows of reading_trees.py are read too; the last row of a fit counts. Figures are means over folds,
then over the tables on which all those methods ended that ended on nine tables of ten; the others
stand beside the default on their own tables. Differences are paired over tables, with their
standard errors.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import RESULTS, ROOT, Row, arguments, markdown, rows_of, write_page
from pmlb import SHOWN
from reading_tables import FOLDS

MEANS, PAGE = RESULTS / "pmlb.csv", RESULTS / "pmlb.md"
PICTURE = ROOT / "docs" / "images" / "reading-curve.svg"
README = (("default",), ("logistic",), ("cart",), ("ebm-pairs", "ebm", "boosting"), ("forest",))
"""Methods of the table of five lines; the first of each that has figures of the common tables."""

MOSTLY = 0.9
"""Share of the tables on which a method has to end to be compared on the common ones."""

DRAWN = {
    "default": "softsplit", "best": 'softsplit, "best"', "cart": "CART", "figs": "FIGS",
    "logistic": "L1 logistic regression", "hstree": "hierarchical shrinkage",
    "ebm": "EBM, no interactions", "ebm-pairs": "EBM", "boosting": "histogram boosting",
    "forest": "random forest",
}  # fmt: skip
"""Names in the picture."""

FIGURES = {
    "accuracy": (100.0, 1), "log_loss": (1.0, 3), "auc": (1.0, 3), "columns": (1.0, 1),
    "lookups": (1.0, 1),
}  # fmt: skip
"""Figure: the unit it is shown in, and digits."""

LOST = (("accuracy", 1, "points of accuracy"), ("log_loss", -1, "log-loss"), ("auc", 1, "AUC"))
"""Figures in which others may be ahead: the sign of better, and the word."""

KEYS = ["group", "dataset", "method"]


def means_of(rows: list[Row]) -> pd.DataFrame:
    """Means over the folds of each table and method; a method that failed on a fold has none."""
    counted = [r for r in rows if r.get("version") != "before" and r["group"] != "made"]
    last = {tuple(r[k] for k in (*KEYS, "fold")): r for r in counted if r["method"] in SHOWN}
    frame = pd.DataFrame(last.values()).reindex(
        columns=["error", *KEYS, "fold", "settled", *FIGURES]
    )
    whole = frame.groupby(["group", "dataset"])["fold"].transform("nunique")
    each = frame[frame["error"].isna()].assign(whole=whole)
    mean = each.groupby(KEYS, sort=True).agg(
        {name: "mean" for name in FIGURES}
        | {"fold": "nunique", "whole": "first", "settled": "first"}
    )
    return mean[mean["fold"] == mean["whole"]][["settled", *FIGURES]].round(4).reset_index()


def compared(means: pd.DataFrame) -> tuple[pd.DataFrame, list[str], int]:
    """Figures of the common tables, the methods there, and the number of all tables."""
    wide = means.pivot(index=["group", "dataset"], columns="method", values=list(FIGURES))
    ended = wide["accuracy"].notna().sum()
    methods = [m for m in SHOWN if m in ended and ended[m] >= MOSTLY * len(wide)]
    common = wide["accuracy"][methods].notna().all(axis=1)
    return wide[common], methods, len(wide)


def beside(wide: pd.DataFrame, methods: list[str]) -> str:
    """Means over tables, and paired differences from the default with their standard errors."""
    lines = []
    for method in methods:
        cells = [SHOWN[method]]
        for figure, (unit, digits) in FIGURES.items():
            own, gap = wide[figure][method], wide[figure][method] - wide[figure]["default"]
            said = f"{unit * own.mean():.{digits}f}"
            if method != "default" and figure in ("accuracy", "log_loss", "auc"):
                error = unit * gap.std() / max(gap.notna().sum(), 1) ** 0.5
                said += f" ({unit * gap.mean():+.{digits}f} ± {error:.{digits}f})"
            cells.append(said)
        lines.append(cells)
    return markdown(["", "accuracy, %", "log-loss", "AUC", "columns", "look-ups"], lines)


def texts(means: pd.DataFrame) -> dict[Path, dict[str, str]]:
    """What stands on the page of results, in README and in docs/when.md."""
    wide, methods, n_tables = compared(means)
    parts = [
        f"{len(wide)} of {n_tables} tables, of which all of these have figures:",
        beside(wide, methods),
    ]
    every = means.pivot(index=["group", "dataset"], columns="method", values=list(FIGURES))
    rest = {}
    for method in (m for m in SHOWN if m in every["accuracy"] and m not in methods):
        own = rest[method] = every[every["accuracy"][[method, "default"]].notna().all(axis=1)]
        parts += [f"{plain(method)}, the {len(own)} tables of which it has figures:",
                  beside(own, ["default", method])]  # fmt: skip
    for method in (m for m in SHOWN if m in every["accuracy"]):
        absent = every.index[every["accuracy"][method].isna()].get_level_values("dataset")
        if 0 < len(absent) < len(every) / 2:
            parts.append(f"{plain(method)} has none of {', '.join(absent)}.")
    fresh = means.loc[~means["settled"].astype(bool), "dataset"].unique()
    own = wide[wide.index.get_level_values("dataset").isin(fresh)]
    parts += [f"The {len(own)} tables on which no setting was fixed:", beside(own, methods)]
    for group, own in wide.groupby(level="group"):
        parts += [f"The {len(own)} tables of `{group}`:", beside(own, methods)]
    table = [next(m for m in some if m in methods) for some in README if set(some) & set(methods)]
    lines = [[SHOWN[m], *(f"{unit * wide[f][m].mean():.{digits}f}" for f, (unit, digits)
              in FIGURES.items() if f != "auc")] for m in table]  # fmt: skip
    gain = markdown(
        ["", "accuracy, %", "log-loss", "columns read", "values looked up per row"], lines
    )
    return {
        PAGE: {"figures": "\n\n".join(parts)},
        ROOT / "README.source.md": {"gain": f"{gain}\n\n{loss(wide, methods)}{fewer(rest)}"},
        RESULTS.parent / "when.md": {"peers": beside(wide, methods) + "\n" + fewer(rest)},
    }


def fewer(rest: dict[str, pd.DataFrame]) -> str:
    """Of methods with figures of fewer tables: how far ahead of the default they are there."""
    said = ""
    for method in (m for m in rest if m.startswith("ebm")):
        own = rest[method]
        gap = {f: own[f][method] - own[f]["default"] for f in FIGURES}
        error = 100 * gap["accuracy"].std() / len(own) ** 0.5
        said += (
            f" On {len(own)} tables, {plain(method)} beside the default: "
            f"{100 * gap['accuracy'].mean():+.1f} ± {error:.1f} points of accuracy, "
            f"{gap['log_loss'].mean():+.3f} of log-loss, {gap['columns'].mean():+.1f} columns."
        )
    return said


def plain(method: str) -> str:
    """The name of a method without marks of Markdown."""
    return SHOWN[method].replace("*", "").replace("`", "")


def loss(wide: pd.DataFrame, methods: list[str]) -> str:
    """The loss said aloud: which methods are more accurate or surer, and by how much."""
    said = []
    peers = [m for m in methods if "softsplit" not in SHOWN[m]]
    for figure, sign, noun in LOST:
        unit, digits = FIGURES[figure]
        own = wide[figure]["default"]
        gaps = {m: sign * unit * (wide[figure][m] - own).mean() for m in peers}
        ahead = sorted((g, m) for m, g in gaps.items() if round(g, digits) > 0)[::-1]
        told = ", ".join(f"{g:.{digits}f} to {plain(m)}" for g, m in ahead)
        said.append(f"{noun}: {told or 'nothing to any of them'}")
    lost = "; ".join(said)
    return f"Means over {len(wide)} tables. **What you lose** against the others, {lost}."


def draw(means: pd.DataFrame) -> None:
    """Accuracy and log-loss against look-ups, means over the common tables."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "softsplit"
    from matplotlib import pyplot as plt

    wide, methods, _ = compared(means)
    figure, axes = plt.subplots(1, 2, figsize=(9.6, 4), layout="constrained")
    for axis, name, label in zip(
        axes, ("accuracy", "log_loss"), ("accuracy, %", "log-loss"), strict=True
    ):
        y = FIGURES[name][0] * wide[name][methods].mean()
        away = y[y > 2 * y.median()]
        y = y.drop(away.index)  # one that is sure and wrong would press the others together
        x = wide["lookups"][y.index].mean()
        axis.set(xscale="log", xlim=(x.min() / 3, x.max() * 3), ylabel=label)
        beyond = "".join(f"; not shown: {DRAWN[m]}, {value:.2f}" for m, value in away.items())
        axis.set_xlabel(f"values to look up for a row (mean{beyond})")
        axis.xaxis.set_major_formatter("{x:g}")
        room = 0.15 * (y.max() - y.min())
        limits = y.min() - room, y.max() + room
        axis.set_ylim(*(limits if name == "accuracy" else limits[::-1]))
        axis.spines[["top", "right"]].set_visible(False)
        _label(axis, x, y, upwards=name == "accuracy")
    figure.suptitle(f"Better is up, easier to read is left ({len(wide)} tables)", fontsize=10)
    figure.savefig(PICTURE, metadata={"Date": None})


def _label(axis: Any, x: pd.Series, y: pd.Series, *, upwards: bool) -> None:
    """Points with their names beside them; names one above the other keep a distance."""
    low, high = sorted(axis.get_ylim())
    middle, last = float(np.sqrt(x.min() * x.max())), -np.inf
    for method in y.sort_values(ascending=upwards).index:
        own, left = "softsplit" in SHOWN[method], x[method] < middle
        part = (y[method] - low) / (high - low)
        place = max(part if upwards else 1 - part, last + 0.055)
        last = place
        axis.plot(x[method], y[method], "o" if own else "s", color="C0" if own else "C7", ms=7)
        text = (
            x[method] * (1.25 if left else 0.8),
            low + (high - low) * (place if upwards else 1 - place),
        )
        axis.annotate(
            DRAWN[method], (x[method], y[method]), text, fontsize=8, va="center",
            ha="left" if left else "right", fontweight="bold" if own else "normal",
            arrowprops={"arrowstyle": "-", "color": "0.8", "lw": 0.6},
        )  # fmt: skip


def main() -> None:
    args = arguments(__doc__, rows=([], "files of rows"), folds=(list(range(FOLDS)), "that count"))
    if args.rows:
        rows = [row for path in args.rows for row in rows_of(Path(path))]
        means_of([r for r in rows if r["fold"] in args.folds]).to_csv(MEANS, index=False)
    means = pd.read_csv(MEANS)
    for page, parts in texts(means).items():
        write_page(page, parts)
    draw(means)


if __name__ == "__main__":
    main()
