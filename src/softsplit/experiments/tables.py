"""Tables from the store alone: the paper's beside ours, solvers side by side, peers.

``write_table`` writes them as files: CSV for machines, Markdown for readers, LaTeX for papers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from softsplit.experiments.cells import PEER, WHOLE, chains_of
from softsplit.experiments.choice import (
    METHOD,
    STRENGTHS,
    UNUSABLE,
    best_start,
    nested_rows,
    outer,
    over_starts_and_folds,
    paper_choice,
    usable,
)
from softsplit.experiments.spec import Spec
from softsplit.experiments.store import Store, StoreError
from softsplit.support.messages import visible
from softsplit.support.output_files import write_file

LATEX_ESCAPES = str.maketrans(
    {c: "\\" + c for c in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
)


def table_files(folder: Path, name: str) -> list[Path]:
    """Where a table is written."""
    return [folder / f"{name}.{ending}" for ending in ("csv", "md", "tex")]


def write_table(
    table: pd.DataFrame, folder: Path, name: str, title: str, notes: str = ""
) -> list[Path]:
    """``name``.csv with all digits, and .md and .tex with as many as can be read.

    ``notes`` stand below the table in the Markdown.
    """
    title = visible(title)
    paths = table_files(folder, name)
    texts = (csv(table), f"# {title}\n\n{markdown(table)}{notes}", latex(table, title))
    for path, text in zip(paths, texts, strict=True):
        write_file(path, text.encode("utf-8"))
    return paths


def csv(table: pd.DataFrame) -> str:
    """All digits, for machines."""
    return table.to_csv(index=False, lineterminator="\n")


def markdown(table: pd.DataFrame) -> str:
    """A pipe table."""
    head = [visible(column).replace("_", " ") for column in table.columns]
    rule = ["---" if _is_text(table[c]) else "---:" for c in table.columns]
    lines = [head, rule, *_texts(table)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def latex(table: pd.DataFrame, title: str) -> str:
    """A tabular for the booktabs package."""
    columns = "".join("l" if _is_text(table[c]) else "r" for c in table.columns)
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{title.translate(LATEX_ESCAPES)}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _latex_line([visible(column).replace("_", " ") for column in table.columns]),
        r"\midrule",
        *(_latex_line(line) for line in _texts(table)),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _latex_line(cells: list[str]) -> str:
    return " & ".join(cell.translate(LATEX_ESCAPES) for cell in cells) + r" \\"


def _texts(table: pd.DataFrame) -> list[list[str]]:
    names = [str(column) for column in table.columns]
    return [
        [_text(name, value) for name, value in zip(names, row, strict=True)]
        for row in table.itertuples(index=False, name=None)
    ]


def _text(name: str, value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, float):
        return visible(value)
    if "accuracy" in name or name == "gap":
        return f"{100 * value:.1f}"
    if "seconds" in name:
        return f"{value:.3g}"
    if "sparsity" in name or name in ("features_used", "nonzeros"):
        return f"{value:.1f}"
    return f"{value:g}" if "strength" in name or "log2" in name else f"{value:.4g}"


def _is_text(column: pd.Series) -> bool:
    return not pd.api.types.is_numeric_dtype(column.dtype)


@dataclass(frozen=True)
class TableTolerances:
    """When figures of two methods count as alike."""

    near: float = 0.01
    """Accuracies this close, one point, count as reached."""

    equal: float = 0.005
    """Accuracies this close, half a point, count as equal where sparsities are compared."""


TOLERANCES = TableTolerances()


@cache
def paper_figures() -> pd.DataFrame:
    """Tables 2 and 3 of the paper, indexed by data set and model; sparsities in percent."""
    place = files("softsplit.experiments").joinpath("paper", "tables_2_3.csv")
    with place.open(encoding="utf-8") as stream:
        return pd.read_csv(stream).set_index(["dataset", "model"])


def spec_rows(spec: Spec, store: Store) -> pd.DataFrame:
    """The rows of the cells of a spec: a store may hold those of others as well."""
    chains = list(chains_of(spec))
    frame = store.frame({chain.protocol for chain in chains})
    inner_starts = spec.inner.starts if spec.inner else 0
    kept = frame[
        frame["dataset"].isin(spec.dataset_names)
        & frame["fold"].isin(spec.fold_numbers)
        & frame["model"].isin([*spec.model_names, *spec.peers])
        & frame["solver"].isin([*spec.solvers, PEER])
        & (frame["start"] < np.where(frame["inner"] == WHOLE, spec.starts, inner_starts))
    ]
    if kept.empty:
        raise StoreError(
            f"store {str(store.path)!r} holds no row of experiment {spec.name!r} yet; run it "
            f"first: softsplit experiment run {spec.name}."
        )
    return kept


def make_table(spec: Spec, store: Store) -> pd.DataFrame:
    """The table a spec asks for."""
    frame = spec_rows(spec, store)
    if spec.table == "peers":
        beside = [tree_rows(spec_rows(store.spec(name), store)) for name in spec.beside]
        return by_dataset(pd.concat([*beside, peer_table(frame, spec)], ignore_index=True), spec)
    return (paper_table if spec.table == "paper" else solver_table)(frame, spec)


def paper_table(frame: pd.DataFrame, spec: Spec) -> pd.DataFrame:
    """One row per data set and model: the paper's figures, and ours by both ways of choosing.

    Sparsities are percentages; ``log2`` is that of the chosen strength. ``nested`` is the mean over
    starts at the strengths that inner folds chose, ``nested_best_accuracy`` the start of lowest
    objective.
    """
    chosen = paper_choice(frame)
    nested = over_starts_and_folds(nested_rows(frame), METHOD)
    kept = over_starts_and_folds(best_start(nested_rows(frame)), METHOD)
    paper = paper_figures()
    rows = []
    for key in _in_order(chosen.index, spec):
        # 1. Accuracies: the paper's, ours by its way of choosing, ours by inner folds.
        dataset, model, solver = key
        best = chosen.loc[key]
        known = paper.loc[(dataset, model)] if (dataset, model) in paper.index else None
        row: dict[str, object] = {"dataset": dataset, "model": model, "solver": solver}
        row["paper_accuracy"] = None if known is None else known["accuracy"]
        row["accuracy"] = best["test_accuracy"]
        row["nested_accuracy"] = _value(nested, key, "test_accuracy")
        row["nested_best_accuracy"] = _value(kept, key, "test_accuracy")
        # 2. Sparsities, in the same three ways.
        for ours, theirs in (
            ("local_sparsity", "delta_local"),
            ("global_sparsity", "delta_global"),
        ):
            row[f"paper_{ours}"] = None if known is None else known[f"{theirs}_pct"]
            row[ours] = best[ours]
            row[f"nested_{ours}"] = _value(nested, key, ours)
        # 3. The chosen strength, and what it took.
        row["paper_log2"] = None if known is None else known["best_lambda_log2"]
        row["log2"] = np.log2(max(best["local_strength"], best["global_strength"]))
        row["features_used"] = best["features_used"]
        row["seconds"] = best["seconds"]
        row["failed"] = _failures(frame, key)
        rows.append(row)
    table = pd.DataFrame(rows)
    return table.drop(columns="solver") if len(spec.solvers) == 1 else table


def _value(table: pd.DataFrame, key: tuple[str, ...], column: str) -> float | None:
    return float(table.loc[key, column]) if key in table.index else None


def _failures(frame: pd.DataFrame, key: tuple[str, ...]) -> int:
    own = outer(frame)
    for name, value in zip(METHOD, key, strict=True):
        own = own[own[name] == value]
    return int(own["status"].isin(UNUSABLE).sum())


def _in_order(index: pd.Index, spec: Spec) -> list[tuple[str, str, str]]:
    """The methods of a table in the order of the spec."""
    names = (*spec.model_names, *spec.peers)
    solvers = (*spec.solvers, PEER)
    return sorted(
        index,
        key=lambda key: (
            spec.dataset_names.index(key[0]),
            names.index(key[1]),
            solvers.index(key[2]),
        ),
    )


def paper_verdict(frame: pd.DataFrame, spec: Spec) -> pd.DataFrame:
    """Per data set: our best model beside the paper's, and whether accuracy and sparsity keep up.

    ``reached``: our best mean accuracy is at most a point below that of the paper's best model.
    ``as_sparse``: of our models and strengths whose mean accuracy is at most half a point below the
    paper's best model, the sparsest has at least its sparsity; empty where none is that close.
    """
    means = over_starts_and_folds(usable(outer(frame)), [*METHOD, *STRENGTHS]).reset_index()
    paper = paper_figures().reset_index()
    rows = []
    for dataset in spec.dataset_names:
        # 1. The best model of the paper, and ours.
        known, part = paper[paper["dataset"] == dataset], means[means["dataset"] == dataset]
        if known.empty or part.empty:
            continue
        theirs = known.loc[known.sort_values(["accuracy", "delta_local_pct"]).index[-1]]
        ours = part.loc[part.sort_values(["test_accuracy", "local_sparsity"]).index[-1]]
        # 2. Of ours at about its accuracy, the sparsest.
        level = part[part["test_accuracy"] >= theirs["accuracy"] - TOLERANCES.equal - 1e-9]
        sparsest = level.loc[level["local_sparsity"].idxmax()] if len(level) else None
        gap = ours["test_accuracy"] - theirs["accuracy"]
        rows.append(
            {
                "dataset": dataset,
                "paper_model": theirs["model"],
                "paper_accuracy": theirs["accuracy"],
                "model": ours["model"],
                "accuracy": ours["test_accuracy"],
                "gap": gap,
                "reached": bool(gap >= -TOLERANCES.near - 1e-9),
                "paper_local_sparsity": theirs["delta_local_pct"],
                "level_model": None if sparsest is None else sparsest["model"],
                "level_accuracy": None if sparsest is None else sparsest["test_accuracy"],
                "level_local_sparsity": None if sparsest is None else sparsest["local_sparsity"],
                "as_sparse": None
                if sparsest is None
                else bool(sparsest["local_sparsity"] >= theirs["delta_local_pct"] - 0.005),
            }
        )
    return pd.DataFrame(rows)


def nested_verdict(frame: pd.DataFrame) -> pd.DataFrame:
    """Per data set: model and strength chosen by inner folds, the start of lowest objective."""
    rows = nested_rows(frame, ["dataset", "solver"])
    if rows.empty:
        return pd.DataFrame()
    kept = best_start(rows)
    means = over_starts_and_folds(kept.assign(model="chosen"), METHOD).reset_index()
    return means.drop(columns=["model", "solver"])


def solver_table(frame: pd.DataFrame, spec: Spec) -> pd.DataFrame:
    """One row per data set, model, strengths and solver; means over folds and starts."""
    by = ["dataset", "model", "local_strength", "global_strength", "solver"]
    rows = outer(frame)
    means = over_starts_and_folds(usable(rows), by)
    groups = rows.groupby(by, observed=True)
    means.insert(0, "cells", groups.size())
    means.insert(1, "failed", groups["status"].agg(lambda s: int(s.isin(UNUSABLE).sum())))
    lowest = usable(rows).groupby([*by, "fold"], observed=True)["objective"].min()
    means["best_objective"] = lowest.groupby(by, observed=True).mean()
    first = spec.solvers[0]
    base = means["seconds"].xs(first, level="solver")
    ratio = means["seconds"].reset_index("solver").join(base.rename("base"))
    ratio = ratio.set_index("solver", append=True)
    means[f"seconds_over_{first}"] = ratio["seconds"] / ratio["base"]
    ranks = {"dataset": spec.dataset_names, "model": spec.model_names, "solver": spec.solvers}
    return means.reset_index().sort_values(
        by,
        key=lambda column: column.map(ranks[column.name].index) if column.name in ranks else column,
    )


def tree_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Our trees as rows of a table of peers: everything chosen by inner folds.

    "tree": model and strength with the best inner accuracy, and of the starts the one with the
    lowest objective; "tree, sparse": the same with the fewest features within a standard error;
    then every model by itself. ``seconds`` is what the whole choice took: all inner trainings and
    the walk of the chosen model over all its starts.
    """
    tables = []
    chosen = ["dataset", "solver"]
    ways = [("tree", frame, chosen, False), ("tree, sparse", frame, chosen, True)]
    ways += [(f"tree {m}", frame[frame["model"] == m], METHOD, False) for m in _models(frame)]
    for name, part, by, sparse in ways:
        rows = nested_rows(part, by, sparse)
        if rows.empty:
            continue
        kept = best_start(rows)
        spent = [_nested_seconds(part, row) for row in kept.itertuples()]
        kept = kept.assign(model=name, seconds=spent)
        tables.append(_peer_means(kept, ["dataset", "model"]))
    return pd.concat(tables).reset_index() if tables else pd.DataFrame()


def _models(frame: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(frame["model"]))


def _nested_seconds(frame: pd.DataFrame, row: Any) -> float:
    """Seconds of all trainings behind the choice of one row: inner folds, and the walk itself."""
    here = frame[(frame["dataset"] == row.dataset) & (frame["fold"] == row.fold)]
    behind = (here["inner"] != WHOLE) | (here["model"] == row.model)
    return float(here.loc[behind, "seconds"].sum())


def _peer_means(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    columns = ["test_accuracy", "test_log_loss", "features_used", "nonzeros"]
    groups = rows.groupby(by, observed=True, sort=False)
    table = groups[[*columns, "seconds", "predict_seconds"]].mean()
    table.insert(1, "accuracy_std", groups["test_accuracy"].std(ddof=0))
    return table


def by_dataset(table: pd.DataFrame, spec: Spec) -> pd.DataFrame:
    """Data sets in the order of the spec; in each, the methods in the order they first appear."""
    ranks = {"dataset": spec.dataset_names.index, "model": _models(table).index}
    ordered = table.sort_values(["dataset", "model"], key=lambda c: c.map(ranks[str(c.name)]))
    return ordered.reset_index(drop=True)


def peer_summary(table: pd.DataFrame) -> pd.DataFrame:
    """One row per method: means over the data sets, and how many data sets it has."""
    groups = table.groupby("model", sort=False)
    means = groups[[c for c in table.columns if c not in ("dataset", "model", "failed")]].mean()
    means.insert(0, "datasets", groups.size())
    return means.reset_index()


def peer_table(frame: pd.DataFrame, spec: Spec) -> pd.DataFrame:
    """One row per data set and peer; means over folds, and the spread of the accuracy."""
    table = _peer_means(usable(frame), METHOD)
    table["failed"] = [_failures(frame, key) for key in table.index]
    return table.loc[_in_order(table.index, spec)].reset_index().drop(columns="solver")
