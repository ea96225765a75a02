"""Methods beside each other on the same rows: how each is fitted, measured and kept on file.

Every method comes as it is offered, with the choice it makes by itself on five inner folds:

- tree: ``SoftTreeClassifierCV()``; tree-sparse and tree-best: the same with ``selection="sparse"``
  and ``"best"``; tree-taught: with ``teacher="boosting"``;
- peer: L1 logistic regression, ten strengths, saga, chosen by accuracy, with as many iterations as
  it needs (--peer-iterations at most);
- peer-log: the same, chosen by log-loss;
- peer-default: the same as peer with the default of 100 iterations, which mostly do not suffice;
- cart: a tree of scikit-learn, pruned by one of some thirty strengths of its own path;
- ebm: explainable boosting without interactions, of ``interpret``;
- abess: best-subset logistic regression;
- boosting: histogram boosting of scikit-learn, which chooses nothing;
- bag: 20 bagged ``SoftTreeClassifier()``; bag-free: the same of trees of depth 2 with no price for
  features and coefficients, as the trees of forests are not pruned either.

A row holds accuracy, balanced accuracy (mean over the classes among the test rows) and log-loss on
rows kept aside, features and nonzero coefficients (splits of a tree of scikit-learn, values of the
curves of ebm), seconds of the processor and on the wall for one fit on one thread. A method that
raises leaves a row with its sentence in "error".
"""

from __future__ import annotations

import argparse
import inspect
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import add_options, resumed, rows_of
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from softsplit import SoftTreeClassifier, SoftTreeClassifierCV, load_dataset
from softsplit.experiments.peers import Boosting
from softsplit.experiments.tables import markdown

FOLDS = 5
ALPHAS = 30
BAGGED = 20
"""Trees of a bag."""
SMALLEST = 1e-15
"""No probability counts as less in a log-loss."""

PACKAGES = {"ebm": "interpret", "abess": "abess"}
"""What a method needs beside scikit-learn."""

# Since scikit-learn 1.8 the ratio alone says which penalty is meant.
_LASSO: dict[str, Any] = (
    {"use_legacy_attributes": False}
    if "use_legacy_attributes" in inspect.signature(LogisticRegressionCV).parameters
    else {"penalty": "elasticnet"}
)


@dataclass(frozen=True)
class Task:
    """Rows to learn from and rows to be judged on; labels are 0 .. n_classes - 1."""

    key: dict[str, Any]
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    n_classes: int
    real_columns: int | None = None
    """Columns from here on are noise; how many of them a method uses is told."""
    weights: np.ndarray | None = None
    """Of the test rows, where their class shares are not those to be judged by."""


@dataclass(frozen=True)
class Fit:
    """A fitted model, the columns it uses, its nonzero coefficients, and other facts."""

    model: Any
    used: np.ndarray
    coefficients: int
    facts: dict[str, Any] = field(default_factory=dict)


def table_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features and classes 0, 1, ... of a data set."""
    data = load_dataset(name)
    return data.X, np.searchsorted(data.class_names, data.y)


def outer_folds(labels: np.ndarray, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        return list(folds.split(labels, labels))


def inner_folds() -> StratifiedKFold:
    return StratifiedKFold(FOLDS, shuffle=True, random_state=0)


def fit_tree(X: np.ndarray, y: np.ndarray, iterations: int, **given: Any) -> Fit:
    model = SoftTreeClassifierCV(random_state=0, **given).fit(X, y)
    told = ("loss", "scale", "depth", "steepness")
    facts = {k: v for k, v in model.best_params_.items() if k in told and _plain(v)}
    return Fit(
        model,
        np.asarray(model.selected_features_),
        int(np.sum(model.weights_ != 0)),
        {"validated": float(model.best_score_), **facts},
    )


def fit_plain(X: np.ndarray, y: np.ndarray, iterations: int) -> Fit:
    model = SoftTreeClassifier(random_state=0).fit(X, y)
    return Fit(model, np.asarray(model.selected_features_), int(np.sum(model.weights_ != 0)))


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


def fit_peer(X: np.ndarray, y: np.ndarray, iterations: int, scoring: str = "accuracy") -> Fit:
    logistic = LogisticRegressionCV(
        Cs=10, l1_ratios=[1.0], solver="saga", cv=inner_folds(), scoring=scoring,
        max_iter=iterations, random_state=0, **_LASSO,
    )  # fmt: skip
    model = make_pipeline(StandardScaler(), logistic).fit(X, y)
    nonzero = logistic.coef_ != 0
    used = np.flatnonzero(nonzero.any(axis=0))
    return Fit(model, used, int(nonzero.sum()), {"iterations": iterations})


def fit_cart(X: np.ndarray, y: np.ndarray, iterations: int) -> Fit:
    tree = DecisionTreeClassifier(random_state=0)
    alphas = np.unique(np.maximum(tree.cost_complexity_pruning_path(X, y).ccp_alphas, 0.0))
    chosen = alphas[np.unique(np.linspace(0, len(alphas) - 1, ALPHAS).astype(int))]
    model = GridSearchCV(tree, {"ccp_alpha": chosen}, cv=inner_folds()).fit(X, y)
    splits = model.best_estimator_.tree_.feature
    return Fit(model, np.unique(splits[splits >= 0]), int(np.sum(splits >= 0)))


def fit_ebm(X: np.ndarray, y: np.ndarray, iterations: int) -> Fit:
    boosting = import_module("interpret.glassbox").ExplainableBoostingClassifier
    model = boosting(interactions=0, random_state=0, n_jobs=1).fit(X, y)
    values = [int(np.sum(scores != 0)) for scores in model.term_scores_]
    used = [column for (column,), n in zip(model.term_features_, values, strict=True) if n]
    return Fit(model, np.array(used, dtype=int), sum(values))


def fit_abess(X: np.ndarray, y: np.ndarray, iterations: int) -> Fit:
    abess = import_module("abess")
    binary = len(np.unique(y)) == 2
    model = (abess.LogisticRegression if binary else abess.MultinomialRegression)(cv=FOLDS)
    model.fit(X, y)
    nonzero = (model.coef_ != 0).reshape(X.shape[1], -1)
    return Fit(model, np.flatnonzero(nonzero.any(axis=1)), int(nonzero.sum()))


def fit_boosting(X: np.ndarray, y: np.ndarray, iterations: int) -> Fit:
    boosting = Boosting(depth=0, seed=0)  # the depth is none of its settings
    boosting.fit(X, y)
    splits = np.fromiter(boosting.splits(), dtype=int)
    return Fit(boosting.model, np.unique(splits), len(splits))


def fit_bag(X: np.ndarray, y: np.ndarray, iterations: int, **given: Any) -> Fit:
    tree = SoftTreeClassifier(random_state=0, **given)
    model = BaggingClassifier(tree, n_estimators=BAGGED, random_state=0).fit(X, y)
    used = [fitted.selected_features_ for fitted in model.estimators_]
    coefficients = sum(int(np.sum(fitted.weights_ != 0)) for fitted in model.estimators_)
    return Fit(model, np.unique(np.concatenate(used)), coefficients)


METHODS: dict[str, Callable[[np.ndarray, np.ndarray, int], Fit]] = {
    "tree": fit_tree,
    "tree-sparse": partial(fit_tree, selection="sparse"),
    "tree-best": partial(fit_tree, selection="best"),
    "tree-taught": partial(fit_tree, teacher="boosting"),
    "tree-auto": partial(fit_tree, teacher="auto"),
    "plain": fit_plain,
    "peer": fit_peer,
    "peer-log": partial(fit_peer, scoring="neg_log_loss"),
    "peer-default": lambda X, y, iterations: fit_peer(X, y, 100),
    "cart": fit_cart,
    "ebm": fit_ebm,
    "abess": fit_abess,
    "boosting": fit_boosting,
    "bag": fit_bag,
    "bag-free": partial(fit_bag, depth=2, local_strength=0.0, global_strength=0.0, n_starts=1),
}


def add_shared(
    parser: argparse.ArgumentParser, out: str, methods: Iterable[str], iterations: int = 2000
) -> argparse.ArgumentParser:
    """Options that scripts with methods share."""
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=list(methods))
    return add_options(
        parser,
        out=(Path(out), "rows, one a line; may be resumed"),
        datasets=([], "only these"),
        peer_iterations=iterations,
        document=(Path, "file to put the tables into"),
        fold_seed=2026,
    )


def work(tasks: Iterable[Task], args: argparse.Namespace) -> None:
    """Fit what is not in the file yet; a line is added after each fit."""
    methods = [method for method in args.methods if installed(method)]

    def measured_by(method: str, task: Task) -> dict[str, Any]:
        if method == "tree":
            warm_up()
        return measure(METHODS[method], task, args.peer_iterations)

    tasks_of_methods = (
        (task.key | {"method": method}, partial(measured_by, method, task))
        for task in tasks
        for method in methods
    )
    for row in resumed(args.out, tasks_of_methods, measured(args.out)):
        print(sentence(row), flush=True)


def installed(method: str) -> bool:
    """Whether a method can run here; if not, one sentence says why."""
    package = PACKAGES.get(method)
    if package is None or find_spec(package) is not None:
        return True
    print(f"{method} is left out: the package {package} is not installed.", flush=True)
    return False


def measured(path: Path) -> list[dict[str, Any]]:
    """Rows of ``work``; those of former versions lack figures and are as if they were not there."""
    return [row for row in rows_of(path) if "log_loss" in row or "error" in row]


def sentence(row: dict[str, Any]) -> str:
    told = [str(value) for name, value in row.items() if name in SHOWN]
    if "error" in row:
        return f"{' '.join(told)} {row['method']}: {row['error']}"
    return (
        f"{' '.join(told)} {row['method']}: {row['accuracy']:.4f}, log-loss {row['log_loss']:.3f}, "
        f"{row['features']} features, {row['seconds']:.2f} s"
    )


SHOWN = ("dataset", "fold", "draw", "noise", "share")
"""Parts of a key that are printed after each fit."""


@cache
def warm_up() -> None:
    """Compile everything before the first clock starts: trees of one branch and of several."""
    data = load_dataset("iris")
    SoftTreeClassifierCV(random_state=0).fit(data.X, data.y)
    SoftTreeClassifierCV(random_state=0).fit(data.X, data.y == data.y[0])


def measure(
    fit: Callable[[np.ndarray, np.ndarray, int], Fit], task: Task, iterations: int
) -> dict[str, Any]:
    """Fit and judge; one thread, since processor time is compared."""
    facts = {"rows": len(task.y), "test_rows": len(task.y_test)}
    facts |= {"columns": task.X.shape[1], "classes": task.n_classes}
    began, began_cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        try:
            found = fit(task.X, task.y, iterations)
            seconds, wall = time.process_time() - began_cpu, time.perf_counter() - began
            scores = judge(found.model, task)
        except Exception as error:  # a failure is a figure too
            return facts | {"error": f"{type(error).__name__}: {error}"}
    facts |= scores | {"features": len(found.used), "coefficients": found.coefficients}
    if task.real_columns is not None:
        facts["noise_features"] = int(np.sum(found.used >= task.real_columns))
    return facts | {"seconds": seconds, "wall": wall} | found.facts


def judge(model: Any, task: Task) -> dict[str, Any]:
    """Accuracy, accuracy of each class and log-loss on the rows kept aside."""
    right = np.asarray(model.predict(task.X_test)) == task.y_test
    rates = {int(k): float(np.mean(right[task.y_test == k])) for k in np.unique(task.y_test)}
    found = np.zeros((len(right), task.n_classes))  # a class without training rows keeps zero
    found[:, np.asarray(model.classes_).astype(int)] = np.nan_to_num(
        np.asarray(model.predict_proba(task.X_test), dtype=float)
    )
    true = np.clip(found[np.arange(len(right)), task.y_test], SMALLEST, 1.0)
    two = task.n_classes == 2 and len(rates) == 2
    return {
        "accuracy": float(np.average(right, weights=task.weights)),
        "balanced": float(np.mean(list(rates.values()))),
        "log_loss": float(-np.average(np.log(true), weights=task.weights)),
        "rates": rates,
        **({"area": float(roc_auc_score(task.y_test, found[:, 1]))} if two else {}),
    }


MEASURES = {
    "accuracy": ("Accuracy, percent", 100.0, 1),
    "balanced": ("Balanced accuracy, percent", 100.0, 1),
    "log_loss": ("Log-loss", 1.0, 3),
    "area": ("Area under the ROC curve", 1.0, 3),
    "features": ("Features", 1.0, 1),
    "coefficients": ("Nonzero coefficients", 1.0, 1),
    "noise_features": ("Noise columns in use", 1.0, 1),
    "seconds": ("Seconds of the processor", 1.0, 2),
}
"""Figure: its title, the unit it is shown in, and digits."""


def read_rows(args: argparse.Namespace, **wanted: Any) -> pd.DataFrame:
    """The rows of the data sets and methods asked for."""
    rows = pd.DataFrame(row for row in measured(args.out) if wanted.items() <= row.items())
    if rows.empty:
        raise SystemExit(f"{args.out} holds no such rows; make them with the part 'run' first.")
    if args.datasets:
        rows = rows[rows["dataset"].isin(args.datasets)]
    rows = rows[rows["method"].isin(args.methods)]
    columns = dict.fromkeys([*rows, *MEASURES, "error"])  # fits that failed have no figures
    return rows.reindex(columns=list(columns))


def wide(rows: pd.DataFrame, figure: str, by: list[str]) -> pd.DataFrame:
    """Means over folds or draws: a line for each of ``by``, a column for each method."""
    means = rows.groupby([*by, "method"], sort=False)[figure].mean().unstack("method")
    lines = rows.drop_duplicates(by).set_index(by).index
    return means.reindex(lines)[[m for m in METHODS if m in means]]


def beside(
    rows: pd.DataFrame, figure: str, by: list[str], facts: pd.DataFrame | None = None
) -> str:
    """A figure of all methods as a table with a title, its last line the mean."""
    title, unit, digits = MEASURES[figure]
    found = wide(rows, figure, by)
    shown = (unit * found).reset_index()
    if facts is not None:
        shown = facts.reset_index().merge(shown, on=by)
    mean = {by[0]: "mean"} | (unit * found.mean()).to_dict()
    shown = pd.concat([shown.astype(object), pd.DataFrame([mean])], ignore_index=True)
    for method in found:
        shown[method] = shown[method].astype(float).round(digits)
    return f"{title}:\n\n{markdown(shown)}"


def failures(rows: pd.DataFrame) -> str:
    """A sentence for each fit that raised; empty if none did."""
    failed = rows[rows["error"].notna()].dropna(axis=1)
    whole = {name: int for name in ("fold", "draw") if name in failed}  # beside gaps, floats
    return "".join(
        f"- Failed: {sentence(row)}\n" for row in failed.astype(whole).to_dict("records")
    )
