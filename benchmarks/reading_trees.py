"""Default trees as they are printed, and what their form costs: sizes, texts, quality.

    python benchmarks/reading_trees.py run      fits, one row each, appended to --out
    python benchmarks/reading_trees.py table    the rows as tables, also into --document

Tables are those of reading_tables.py, three stratified folds. Methods: ``default`` and ``best`` are
``SoftTreeClassifierCV`` with that selection, ``cart`` is a tree of scikit-learn of depth 3 on coded
columns. A row has the ``version`` of the package that made it (--version, "now" or "before"):
for another commit, run the same file with ``PYTHONPATH`` at its sources. CART has none.

Of a tree are measured, on the rows kept aside: accuracy, log-loss, AUC (one against the rest), the
look-ups on the way of a row (columns of the questions that it is asked, mean over rows). On the
training rows: terms that are superfluous (with the points of a middling row in their place fewer
than 1 % of the rows get another class), questions that decide nothing (one side has no training
row, or all classes below are one, and the tree has other questions). Of the text: characters, the
longest line, lines of recipes. Seconds are those of the processor.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import time
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import ROOT, Row, add_options, markdown, put_into, resumed, rows_of
from reading_tables import FOLDS, Table, coded, folds_of, tables
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.tree import DecisionTreeClassifier

from softsplit import SoftTreeClassifierCV, export_text
from softsplit.estimators.row_reading import checked_rows
from softsplit.fitted.model import TreeModel
from softsplit.tree.parameters import Topology

NOISE = re.compile(
    r"^probabilit|counts as|per unit: |^settings|^last:|p = 1 / \(1 \+ exp|^leaf \d+:"
)
CHANGED = 0.01
"""A term is superfluous without which fewer of the rows get another class."""

GROUPS = ("paper", "pmlb", "packages", "made")
SHARES = (0.5, 0.9)


# --- fits -----------------------------------------------------------------------------------------


def tree_facts(model: Any, X: pd.DataFrame, X_test: pd.DataFrame) -> Row:
    """Sizes of a fitted tree, and what decides nothing in it."""
    tree = model.tree_
    here, there = checked_rows(model, X), checked_rows(model, X_test)
    homes = np.arange(len(tree.feature_names))
    if tree.coding is not None:
        homes = np.array(tree.coding.places)[tree.coding.homes]
    asked = tree.walk.coefficients != 0
    terms = [len(set(homes[line].tolist())) for line in asked]
    visits = tree.visits(there)[: len(terms)]
    products = tree.walk.coefficients[asked]
    dead, single = dead_questions(tree, here)
    text = export_text(model)
    lines = text.splitlines()
    return {
        "columns": len(model.selected_features_),
        "questions": int(np.any(asked, axis=1).sum()),
        "terms": sum(terms),
        "most_terms": max(terms),
        "lookups": float(np.mean(np.array(terms) @ visits)),
        "decimals": int(np.sum(products != np.round(products))),
        "slopes": slopes_of(tree),
        "superfluous": superfluous(tree, here, homes),
        "dead": dead,
        "single_class": single,
        "characters": len(text),
        "longest": max(map(len, lines)),
        "noise": sum(bool(NOISE.search(line)) for line in lines),
        "lines": len(lines),
    }


def slopes_of(tree: TreeModel) -> int:
    """Look-ups of a tree in points that are whole slopes."""
    variables = () if tree.coding is None else tree.coding.variables
    lookups = [lookup for v in variables for lookup in getattr(v, "lookups", ())]
    return sum(bool(lookup.slopes) for lookup in lookups)


def superfluous(tree: TreeModel, rows: Any, homes: np.ndarray) -> int:
    """Terms without which fewer than ``CHANGED`` of the rows get another class."""
    walk, count = tree.walk, 0
    classes = tree.predict_index(rows)
    for t, line in enumerate(walk.coefficients):
        for home in set(homes[line != 0].tolist()):
            own = np.flatnonzero((line != 0) & (homes == home))
            here = np.flatnonzero(tree.visits(rows)[t])
            some = here if len(here) else np.arange(len(rows))
            middle = float(np.median(rows[some][:, own] @ line[own]))
            coefficients, thresholds = walk.coefficients.copy(), walk.thresholds.copy()
            coefficients[t, own] = 0.0
            thresholds[t] -= middle
            other = walk.__class__(**(vars_of(walk) | {
                "coefficients": coefficients, "thresholds": thresholds,
            }))  # fmt: skip
            changed = other.classes[other.leaves(rows, tree.scaling)] != classes
            count += float(np.mean(changed)) < CHANGED
    return count


def vars_of(walk: Any) -> Row:
    return {name: getattr(walk, name) for name in walk.__dataclass_fields__}


def dead_questions(tree: TreeModel, rows: Any) -> tuple[int, int]:
    """Questions that decide nothing; and 1 if the only one has one class on both sides."""
    asked = np.flatnonzero(np.any(tree.walk.coefficients != 0, axis=1))
    visits = tree.visits(rows).sum(axis=1)
    topology = Topology.with_branches(len(tree.walk.thresholds))
    n_branches, dead = len(tree.walk.thresholds), 0
    for t in asked.tolist():
        leaves = [leaf for leaf in topology.leaves_below(t) if visits[n_branches + leaf] > 0]
        one_class = len(set(tree.walk.classes[leaves].tolist())) < 2
        dead += one_class or min(visits[2 * t + 1], visits[2 * t + 2]) == 0
    return (0, dead) if len(asked) == 1 else (dead, 0)


def quality(classes: Any, predicted: Any, proba: np.ndarray, y: np.ndarray) -> Row:
    facts = {"accuracy": float(np.mean(predicted == y))}
    facts["log_loss"] = float(log_loss(y, np.clip(proba, 1e-15, 1.0), labels=classes))
    single = len(set(y)) < len(classes)
    scores = proba[:, 1] if len(classes) == 2 else proba
    if not single:
        facts["auc"] = float(roc_auc_score(y, scores, multi_class="ovr", labels=classes))
    return facts


def measured(table: Table, fold: int, method: str) -> Row:
    """Fit and judge one tree."""
    train, test = folds_of(table)[fold]
    X, X_test, y, y_test = table.X.iloc[train], table.X.iloc[test], table.y[train], table.y[test]
    facts: Row = {"rows": len(y), "table_columns": X.shape[1], "settled": table.settled}
    facts["guessing"] = float(np.mean(y_test == pd.Series(y).mode()[0]))
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method == "cart":
            own, names = coded(X)
            model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(own, y)
            X_test = coded(X_test, names)[0]
        else:
            model = SoftTreeClassifierCV(selection=method, random_state=0).fit(X, y)
        facts["seconds"] = time.process_time() - began
        facts |= quality(model.classes_, model.predict(X_test), model.predict_proba(X_test), y_test)
        if method != "cart":
            facts |= tree_facts(model, X, X_test)
    return facts


def run(args: argparse.Namespace) -> None:
    """Fit what is not in the file yet; a line is added after each fit."""
    asked = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(asked, cwd=args.source or ROOT, capture_output=True, text=True).stdout

    def tasks() -> Iterator[Any]:
        for table in tables(args.groups, args.tables, args.datasets, args.part_of):
            for fold in args.folds:
                for method in args.methods:
                    version = "" if method == "cart" else args.version
                    key = {"group": table.group, "dataset": table.name, "fold": fold}
                    key |= {"method": method, "version": version}
                    yield key, partial(failing, table, fold, method, commit.strip())

    for row in resumed(args.out, tasks()):
        said = row.get("error") or f"{row['accuracy']:.3f} {row['log_loss']:.3f}"
        said += f" {row.get('columns', '')} {row['seconds']:.1f} s" if "seconds" in row else ""
        print(row["dataset"], row["fold"], row["method"], row["version"], said, flush=True)


def failing(table: Table, fold: int, method: str, commit: str) -> Row:
    """As ``measured``; the sentence of an error in place of figures."""
    try:
        return measured(table, fold, method) | {"commit": commit}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}", "commit": commit}


# --- tables ---------------------------------------------------------------------------------------

SHOWN = {
    "columns": "columns", "questions": "questions", "terms": "look-ups in the tree",
    "lookups": "look-ups on the way", "characters": "characters", "longest": "longest line",
}  # fmt: skip
SUMMED = {
    "noise": "lines of recipes", "decimals": "multiplications by decimals",
    "slopes": "whole slopes", "dead": "questions that decide nothing",
    "single_class": "trees of one question that say one class",
}  # fmt: skip
COMPARED = {"accuracy": 100.0, "log_loss": 1.0, "auc": 1.0}
"""Figures of quality, and what they are multiplied with."""

WORST = 2.0
"""Points below CART of depth 3 that are said."""


def known_rows(args: argparse.Namespace) -> pd.DataFrame:
    rows = pd.DataFrame(row for row in rows_of(args.out) if "error" not in row)
    chosen = {"settled": rows["settled"], "rest": ~rows["settled"].astype(bool)}
    return rows[chosen[args.part_of].astype(bool)] if args.part_of in chosen else rows


def sizes(rows: pd.DataFrame) -> str:
    """Medians over trees, and the 90th percentile, by group of tables."""
    lines = []
    for (version, group), own in [
        *rows.groupby(["version", "group"], sort=False),
        *(((version, "all"), own) for version, own in rows.groupby("version", sort=False)),
    ]:
        cells = [version, group, len(own)]
        for name in SHOWN:
            cells.append(" / ".join(f"{own[name].quantile(share):.3g}" for share in SHARES))
        cells += [int(own[name].sum()) for name in SUMMED]
        part = 100 * own["superfluous"].sum() / max(own["terms"].sum(), 1)
        lines.append([*cells, f"{part:.1f} %"])
    heads = ["version", "tables", "trees", *(f"{name}, 50 / 90 %" for name in SHOWN.values())]
    return markdown([*heads, *SUMMED.values(), "superfluous terms"], lines)


def beside(rows: pd.DataFrame, own: pd.DataFrame, other: pd.DataFrame) -> list[list[Any]]:
    """Means of ``own`` and their differences from ``other`` on the same folds, by group."""
    keys, lines = ["group", "dataset", "fold"], []
    both = own.merge(other, on=keys, suffixes=("", "_other"))
    each = both.groupby(keys[:2], sort=False).mean(numeric_only=True).reset_index()
    for group in [*dict.fromkeys(each["group"]), "all"]:
        some = each if group == "all" else each[each["group"] == group]
        cells = [group, len(some)]
        for name in COMPARED:
            gap = (COMPARED[name] * (some[name] - some[f"{name}_other"])).dropna()
            digits = 2 if COMPARED[name] > 1 else 4
            mean = COMPARED[name] * some[name].mean()
            error = gap.std() / max(len(gap), 1) ** 0.5
            cells.append(f"{mean:.{digits}f}: {gap.mean():+.{digits}f} ± {error:.{digits}f}")
        ratio = (some["seconds"] / some["seconds_other"]).median()
        lines.append([*cells, f"{ratio:.2f}"])
    return lines


def table(args: argparse.Namespace) -> str:
    """Sizes, quality beside the version before, and beside CART."""
    rows = known_rows(args)
    default = rows[rows["method"] == "default"]
    now, before = (default[default["version"] == version] for version in ("now", "before"))
    cart = rows[rows["method"] == "cart"]
    best = rows[(rows["method"] == "best") & (rows["version"] == "now")]
    commits = {v: ", ".join(dict.fromkeys(o["commit"])) for v, o in default.groupby("version")}
    texts = ["Commits: " + "; ".join(f"{v} {c}" for v, c in commits.items()) + "."]
    texts += ["Sizes, medians and 90th percentiles over trees:", sizes(default)]
    heads = ["tables", "number", "accuracy, %", "log-loss", "AUC", "seconds, median ratio"]
    for name, own, other in [
        ("The default now beside the commit before", now, before),
        ('`selection="best"` beside the default before', best, before),
        ("The default now beside CART of depth 3", now, cart),
    ]:
        if len(own) and len(other):
            texts += [f"{name}:", markdown(heads, beside(rows, own, other))]
    both = now.merge(cart, on=["group", "dataset", "fold"], suffixes=("", "_cart"))
    if len(both):
        both["gap"] = 100 * (both["accuracy"] - both["accuracy_cart"])
        # An accuracy has the standard error of so many rows that are kept aside.
        both["noise"] = 100 * (both["accuracy"] * (1 - both["accuracy"]) * 4 / both["rows"]) ** 0.5
        each = both.groupby(["group", "dataset"])[["gap", "noise"]].mean()
        behind = each[each["gap"] < -WORST].sort_values("gap")
        told = [
            f"{name} {row.gap:+.1f} (± {row.noise:.1f})" for (_, name), row in behind.iterrows()
        ]
        texts.append(f"More than {WORST:g} points behind CART: {', '.join(told) or 'none'}.")
    return "\n\n".join(texts)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=["run", "table"])
    args = add_options(
        parser,
        out=Path("results/reading-trees.jsonl"),
        groups=(list(GROUPS), "of tables"),
        datasets=([], "only these"),
        part_of=("all", "tables on which settings were fixed: settled, rest or all"),
        methods=(["default", "best", "cart"], "of the fits"),
        version=("now", "of the package: now or before"),
        source=(Path, "folder of its commit, if it is another"),
        folds=list(range(FOLDS)),
        tables=(Path, "folder of the made tables"),
        document=(Path, "file to put the tables into"),
    ).parse_args()
    if args.part == "run":
        run(args)
    else:
        put_into(args.document, table(args))


if __name__ == "__main__":
    main()
