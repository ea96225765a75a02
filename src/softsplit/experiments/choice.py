"""Which strength to report: chosen by the test folds, as the paper does, or by inner folds.

paper    the strength whose mean test accuracy over all folds and starts is highest. The choice sees
         the test rows, so the figure flatters.
nested   for every fold the strength whose mean accuracy over inner folds of its training rows is
         highest; the test fold has no say. It may be another strength in another fold.

Among strengths of equal accuracy the one with the sparsest trees is taken. Rows without a usable
tree count as failures and have no part in means.
"""

from __future__ import annotations

import pandas as pd

from softsplit.experiments.cells import WHOLE

STRENGTHS = ["local_strength", "global_strength"]
METHOD = ["dataset", "model", "solver"]
MEANS = [
    "test_accuracy",
    "test_log_loss",
    "local_sparsity",
    "global_sparsity",
    "features_used",
    "nonzeros",
    "objective",
    "seconds",
]
UNUSABLE = ("INFEASIBLE", "FAILED", "ERROR", "CRASHED")


def usable(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows with a tree that meets the constraints."""
    return frame[~frame["status"].isin(UNUSABLE)]


def outer(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of trees trained on whole training folds."""
    return frame[frame["inner"] == WHOLE]


def over_starts_and_folds(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Means over the starts of each fold, then over the folds, as in the paper."""
    folds = rows.groupby([*by, "fold"], observed=True)[MEANS].mean()
    return folds.groupby(by, observed=True).mean()


def paper_choice(frame: pd.DataFrame) -> pd.DataFrame:
    """Per data set, model and solver: the strength that is best on the test folds; its means."""
    means = over_starts_and_folds(usable(outer(frame)), [*METHOD, *STRENGTHS]).reset_index()
    return _best(means, METHOD).set_index(METHOD)


def nested_choice(
    frame: pd.DataFrame, by: list[str] | None = None, sparse: bool = False
) -> pd.DataFrame:
    """Per fold: the strength (and model, if ``by`` leaves it out) that is best on inner folds.

    With ``sparse``, the one of fewest features among those within a standard error (over the inner
    folds) of the best. Returned with ``by`` and fold as index; empty if there are no inner rows.
    """
    by = METHOD if by is None else by
    # 1. Means over the starts of each inner fold, then over the inner folds, with their error.
    inside = usable(frame[frame["inner"] != WHOLE])
    keys = ["dataset", "model", "solver", "fold", *STRENGTHS]
    folds = inside.groupby([*keys, "inner"], observed=True)[MEANS].mean()
    groups = folds.groupby(keys, observed=True)
    means = groups.mean()
    means["error"] = groups["test_accuracy"].sem()
    means = means.reset_index()
    best = _best(means, [*by, "fold"]).set_index([*by, "fold"])
    if not sparse or best.empty:
        return best.drop(columns="error")
    # 2. Of the strengths within a standard error of the best, the one of fewest features.
    bar = (best["test_accuracy"] - best["error"].fillna(0.0)).rename("bar").reset_index()
    near = means.merge(bar, on=[*by, "fold"])
    near = near[near["test_accuracy"] >= near["bar"] - 1e-12]
    ordered = near.sort_values(["features_used", "nonzeros", "test_accuracy"])
    ordered = ordered.iloc[::-1].drop_duplicates([*by, "fold"], keep="last")
    return ordered.drop(columns=["error", "bar"]).set_index([*by, "fold"]).sort_index()


def nested_rows(
    frame: pd.DataFrame, by: list[str] | None = None, sparse: bool = False
) -> pd.DataFrame:
    """The outer rows at the strengths of the nested choice."""
    chosen = nested_choice(frame, by, sparse).reset_index()
    keys = [*METHOD, "fold", *STRENGTHS]
    return usable(outer(frame)).merge(chosen[keys], on=keys)


def best_start(rows: pd.DataFrame) -> pd.DataFrame:
    """Of every fold the start with the lowest training objective: the tree a user would keep."""
    ordered = rows.sort_values(["objective", "start"])
    return ordered.drop_duplicates([*METHOD, "fold", *STRENGTHS])


def _best(means: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    ordered = means.assign(rounded=means["test_accuracy"].round(10)).sort_values(
        ["rounded", "local_sparsity", *STRENGTHS], ascending=False
    )
    return ordered.drop_duplicates(by).drop(columns="rounded").sort_values(by)
