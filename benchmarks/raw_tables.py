"""Tables as they come, beside L1 logistic regression on coding made by hand.

    raw_tables.py gaps [NAME ...]            gaps at random in 10, 30 and 50 % of cells of data sets
    raw_tables.py raw [NAME ...]             data sets with text from their CSV, and as one-hot

Every line is a mean over splits of 70 and 30 %. Logistic regression gets one-hot columns, medians
with indicators of missing values, standard scaling, and a strength chosen by five-fold
cross-validation; columns that it cannot use are left out for it. A variable counts once for both.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from softsplit import SoftTreeClassifierCV
from softsplit.data import load_dataset, read_table
from softsplit.data.dataset import code_frame
from softsplit.data.files import typed

STRENGTHS = np.logspace(-2.5, 1, 6)
SHARES = (0.1, 0.3, 0.5)
NAMES = (
    "iris", "wine", "wdbc", "sonar", "diabetes", "banknote", "seeds", "ionosphere", "vehicle",
    "wisconsin-original", "dermatology", "ecoli",
)  # fmt: skip


TEXTS = ("credit-approval", "german-credit", "car", "monks-1", "hayes-roth", "lymphography")


def logistic(X: pd.DataFrame, classes: int):
    """Logistic regression for the columns of a table."""
    numbers = X.select_dtypes("number").columns.tolist()
    dates = [c for c in X.columns if pd.api.types.is_datetime64_any_dtype(X[c].dtype)]
    texts = [c for c in X.columns if c not in numbers and c not in dates]
    coded = ColumnTransformer(
        [
            ("numbers", SimpleImputer(strategy="median", add_indicator=True), numbers),
            (
                "texts",
                OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=5),
                texts,
            ),
        ],
        sparse_threshold=0.0,
    )
    model = LogisticRegression(l1_ratio=1.0, solver="liblinear", max_iter=200)
    if classes > 2:
        model = OneVsRestClassifier(model)
    name = "onevsrestclassifier__estimator__C" if classes > 2 else "logisticregression__C"
    return GridSearchCV(make_pipeline(coded, StandardScaler(), model), {name: STRENGTHS}, cv=5)


def usable(X: pd.DataFrame) -> pd.DataFrame:
    """What somebody would keep by hand: no identifiers, no free text; dates as days."""
    X = X.copy()
    for name in X.columns:
        if X[name].dtype == object or pd.api.types.is_string_dtype(X[name].dtype):
            days = pd.to_datetime(X[name], format="%Y-%m-%d", errors="coerce")
            if days.notna().mean() > 0.9:
                X[name] = (days - days.min()).dt.days.astype(float)
            elif X[name].nunique() > len(X) / 2:
                X = X.drop(columns=name)
        elif X[name].nunique() == len(X) and np.all(X[name].diff().iloc[1:] == 1):
            X = X.drop(columns=name)
    return X.astype({c: object for c in X.select_dtypes("bool").columns})


def variables_of(search: GridSearchCV, X: pd.DataFrame) -> int:
    """Columns of the table with a coefficient."""
    pipe = search.best_estimator_
    names = pipe[0].get_feature_names_out()
    last = pipe[-1]
    parts = last.estimators_ if hasattr(last, "estimators_") else [last]
    used = np.any([np.any(np.abs(part.coef_) > 1e-9, axis=0) for part in parts], axis=0)
    cores = [n.split("__", 1)[1].removeprefix("missingindicator_") for n in names[used]]
    columns = sorted(X.columns, key=len, reverse=True)
    found = (next((c for c in columns if n == c or n.startswith(f"{c}_")), n) for n in cores)
    return len(set(found))


def compared(X: pd.DataFrame, y: pd.Series, seed: int, jobs: int) -> dict[str, float]:
    """Both on one split."""
    parts = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    X_train, X_test, y_train, y_test = parts
    began = time.perf_counter()
    tree = SoftTreeClassifierCV(random_state=seed, n_jobs=jobs).fit(X_train, y_train)
    seconds = time.perf_counter() - began
    plain = usable(X)
    peer = logistic(plain.loc[X_train.index], y.nunique())
    peer.fit(plain.loc[X_train.index], y_train)
    return {
        "tree": tree.score(X_test, y_test),
        "logistic": peer.score(plain.loc[X_test.index], y_test),
        "variables": len(tree.selected_features_),
        "logistic variables": variables_of(peer, plain),
        "seconds": seconds,
    }


def shown(name: str, rows: list[dict[str, float]]) -> None:
    means = pd.DataFrame(rows).mean()
    print(
        f"{name:28} tree {100 * means['tree']:5.1f} %  logistic {100 * means['logistic']:5.1f} %  "
        f"variables {means['variables']:5.1f} and {means['logistic variables']:5.1f}  "
        f"{means['seconds']:.0f} s",
        flush=True,
    )


def with_gaps(X: np.ndarray, share: float, rng: np.random.Generator) -> pd.DataFrame:
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    return frame.mask(rng.random(X.shape) < share)


def from_raw(name: str, splits: int, jobs: int) -> None:
    """A table with its text, in which variables count once, beside the matrix of its levels."""
    frame = typed(read_table(Path(os.environ["SOFTSPLIT_DATA"]) / f"{name}.csv"))
    y = frame.pop(frame.columns[-1]).astype(str)
    coded = code_frame(name, frame.dropna().assign(y=y), "y", _texts(frame), "onehot")
    rows = []
    for seed in range(splits):
        train, test = train_test_split(
            np.arange(len(coded.y)), test_size=0.3, stratify=coded.y, random_state=seed
        )
        table, labels = frame.dropna(), coded.y
        tree = SoftTreeClassifierCV(random_state=seed, n_jobs=jobs)
        tree.fit(table.iloc[train], labels[train])
        matrix = SoftTreeClassifierCV(random_state=seed, n_jobs=jobs)
        matrix.fit(coded.X[train], labels[train])
        used = [coded.feature_names[j].split("=")[0] for j in matrix.selected_features_]
        rows.append(
            {
                "tree": tree.score(table.iloc[test], labels[test]),
                "matrix": matrix.score(coded.X[test], labels[test]),
                "variables": len(tree.selected_features_),
                "matrix variables": len(set(used)),
            }
        )
    means = pd.DataFrame(rows).mean()
    print(
        f"{name:18} table {100 * means['tree']:5.1f} %  one-hot {100 * means['matrix']:5.1f} %  "
        f"variables {means['variables']:5.1f} and {means['matrix variables']:5.1f}",
        flush=True,
    )


def _texts(frame: pd.DataFrame) -> set[str]:
    return {c for c in frame.columns if not pd.api.types.is_numeric_dtype(frame[c].dtype)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["gaps", "raw"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    if given.part == "raw":
        for name in given.names or TEXTS:
            from_raw(name, given.splits, given.jobs)
        return
    for name in given.names or NAMES:
        data = load_dataset(name)
        for share in SHARES:
            rows = []
            for seed in range(given.splits):
                frame = with_gaps(data.X, share, np.random.default_rng(seed))
                rows.append(compared(frame, pd.Series(data.y), seed, given.jobs))
            shown(f"{name}, {share:.0%} gaps", rows)


if __name__ == "__main__":
    main()
