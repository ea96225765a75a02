"""SoftTreeClassifierCV beside L1 logistic regression with cross-validation, nested in outer folds.

    python benchmarks/selection.py run       fits, one row each, appended to --out (may be resumed)
    python benchmarks/selection.py table     the rows as a table, printed or written to --document

Five outer folds, stratified, shuffled by --fold-seed. Both methods choose by the same kind of inner
folds (five, stratified, shuffled) and are otherwise used as they come. The peer is
LogisticRegressionCV with the l1 penalty, ten strengths and solver saga on standardised features, by
accuracy: once with the default of 100 iterations, which mostly ends in a warning that they do not
suffice ("peer-default"), and once with the number the warning asks for ("peer"; at most
--peer-iterations). Seconds are processor time of one fit, after a fit that compiles.

Settings of softsplit were chosen on other splits (see docs/selection.md), never on the folds of the
default seed.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from softsplit import SoftTreeClassifierCV, load_dataset
from softsplit.experiments.documents import markdown
from softsplit.experiments.tables import paper_figures

FOLDS = 5
BEHIND = 0.01
# Since scikit-learn 1.8 the ratio alone says which penalty is meant.
_LASSO: dict[str, Any] = (
    {"use_legacy_attributes": False}
    if "use_legacy_attributes" in inspect.signature(LogisticRegressionCV).parameters
    else {"penalty": "elasticnet"}
)
"""More than this below the peer is a loss to be explained."""

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
"""Between these lines of a document the table is put; what stands around them is kept."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=["run", "table"])
    parser.add_argument("--out", type=Path, default=Path("results/selection.jsonl"))
    parser.add_argument("--document", type=Path, help="file to put the table into")
    parser.add_argument("--datasets", nargs="*", help="only these; the paper's 24 by default")
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=list(METHODS))
    parser.add_argument("--fold-seed", type=int, default=2026)
    parser.add_argument("--folds", type=int, nargs="*", default=list(range(FOLDS)))
    parser.add_argument("--peer-iterations", type=int, default=2000)
    args = parser.parse_args()
    {"run": run, "table": table}[args.part](args)


def paper_datasets() -> list[str]:
    """The 24 data sets of the paper's tables."""
    return list(dict.fromkeys(paper_figures().index.get_level_values("dataset")))


def run(args: argparse.Namespace) -> None:
    """Fit what is not in the file yet."""
    args.out.parent.mkdir(parents=True, exist_ok=True)
    done = {row_key(row) for row in rows_of(args.out)}
    warm_up()
    for name in args.datasets or paper_datasets():
        data = load_dataset(name)
        labels = np.searchsorted(data.class_names, data.y)
        for fold, (train, test) in enumerate(outer_folds(labels, args.fold_seed)):
            for method in args.methods:
                row = {"dataset": name, "fold_seed": args.fold_seed, "fold": fold, "method": method}
                if fold not in args.folds or row_key(row) in done:
                    continue
                row |= measure(METHODS[method], data.X, labels, train, test, args)
                with args.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
                print(
                    f"{name} fold {fold} {method}: {row['accuracy']:.4f} with {row['features']} "
                    f"features, {row['seconds']:.2f} s",
                    flush=True,
                )


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.endswith("}"):  # the last line may have been cut by a stop
                yield json.loads(line)


def row_key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["dataset"], row["fold_seed"], row["fold"], row["method"]


def outer_folds(labels: np.ndarray, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        return list(folds.split(labels, labels))


def warm_up() -> None:
    """Compile everything before the first clock starts: trees of one branch and of several."""
    data = load_dataset("iris")
    SoftTreeClassifierCV(random_state=0).fit(data.X, data.y)
    SoftTreeClassifierCV(random_state=0).fit(data.X, data.y == data.y[0])


def measure(
    fit: Callable[..., dict[str, Any]],
    X: np.ndarray,
    y: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    args: argparse.Namespace,
) -> dict[str, Any]:
    began, began_cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = fit(X[train], y[train], args)
    seconds, wall = time.process_time() - began_cpu, time.perf_counter() - began
    accuracy = float(np.mean(found.pop("model").predict(X[test]) == y[test]))
    p = {"rows": len(y), "columns": X.shape[1], "classes": int(y.max()) + 1}
    return p | {"accuracy": accuracy, "seconds": seconds, "wall": wall} | found


def fit_tree(X: np.ndarray, y: np.ndarray, args: argparse.Namespace) -> dict[str, Any]:
    model = SoftTreeClassifierCV(random_state=0).fit(X, y)
    return {
        "model": model,
        "features": len(model.selected_features_),
        "coefficients": int(np.sum(model.weights_ != 0)),
        "validated": model.best_score_,
        **{k: v for k, v in model.best_params_.items() if k in ("scale", "depth", "steepness")},
    }


def fit_peer(X: np.ndarray, y: np.ndarray, args: argparse.Namespace) -> dict[str, Any]:
    return _logistic(X, y, args.peer_iterations)


def fit_default_peer(X: np.ndarray, y: np.ndarray, args: argparse.Namespace) -> dict[str, Any]:
    return _logistic(X, y, 100)


def _logistic(X: np.ndarray, y: np.ndarray, iterations: int) -> dict[str, Any]:
    logistic = LogisticRegressionCV(
        Cs=10,
        l1_ratios=[1.0],
        solver="saga",
        cv=StratifiedKFold(5, shuffle=True, random_state=0),
        scoring="accuracy",
        max_iter=iterations,
        random_state=0,
        **_LASSO,
    )
    model = make_pipeline(StandardScaler(), logistic).fit(X, y)
    coef = logistic.coef_
    return {
        "model": model,
        "features": int(np.sum(np.any(coef != 0, axis=0))),
        "coefficients": int(np.sum(coef != 0)),
        "iterations": iterations,
    }


METHODS = {"tree": fit_tree, "peer": fit_peer, "peer-default": fit_default_peer}


def table(args: argparse.Namespace) -> None:
    """Means over the folds, beside each other."""
    rows = pd.DataFrame(row for row in rows_of(args.out) if row["fold_seed"] == args.fold_seed)
    means = rows.groupby(["dataset", "method"], sort=False).mean(numeric_only=True)
    found = beside(means.reset_index(), args.datasets or paper_datasets())
    text = f"{summary(found)}\n{markdown(found)}\n{losses(found)}\n"
    if args.document is None:
        print(text)
        return
    old = args.document.read_text(encoding="utf-8")
    before, _, rest = old.partition(BEGIN)
    after = rest.partition(END)[2]
    args.document.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}", encoding="utf-8")


def beside(means: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """One row per data set: accuracy in percent, features, coefficients and seconds of each."""
    wide = means.pivot(index="dataset", columns="method")
    lines = []
    for name in (n for n in names if n in wide.index):
        line: dict[str, Any] = {"dataset": name}
        line |= {k: int(wide.loc[name, (k, "tree")]) for k in ("rows", "columns", "classes")}
        for method in METHODS:
            if ("accuracy", method) in wide.columns:
                line[f"{method} accuracy"] = wide.loc[name, ("accuracy", method)]
        for what, digits in (("features", 1), ("coefficients", 1), ("seconds", 2)):
            for method in METHODS:
                if (what, method) in wide.columns and (what, method) != (
                    "coefficients",
                    "peer-default",
                ):
                    line[f"{method} {what}"] = round(wide.loc[name, (what, method)], digits)
        lines.append(line)
    return pd.DataFrame(lines)


def summary(found: pd.DataFrame) -> str:
    lines = [f"{len(found)} data sets.", ""]
    for method in METHODS:
        if f"{method} accuracy" in found:
            lines.append(
                f"- {method}: mean accuracy {100 * found[f'{method} accuracy'].mean():.2f}, "
                f"mean features {found[f'{method} features'].mean():.2f}, median seconds "
                f"{found[f'{method} seconds'].median():.2f}."
            )
    for method in ("peer", "peer-default"):
        if f"{method} features" in found:
            ratio = found["tree features"].sum() / found[f"{method} features"].sum()
            lines.append(f"- Features of the tree, as a part of those of {method}: {ratio:.2f}.")
    return "\n".join(lines) + "\n"


def losses(found: pd.DataFrame) -> str:
    if "peer accuracy" not in found:
        return ""
    gap = 100 * (found["tree accuracy"] - found["peer accuracy"])
    behind = found[gap < -100 * BEHIND]
    names = [f"{n} ({g:+.1f})" for n, g in zip(behind["dataset"], gap[behind.index], strict=True)]
    return f"More than a point behind the peer: {', '.join(names) or 'none'}."


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main()
