"""Simulated tables of counts with exposure and of censored times, with the truth behind them."""

import numpy as np
import pandas as pd


def claims(n_rows: int = 700, seed: int = 0) -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """Claims of policies: another formula in the north; years at risk that are no column of X."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "children": rng.integers(0, 5, n_rows),
            "weight": rng.normal(3000, 500, n_rows).round(),
            "region": rng.choice(["north", "south", "west"], n_rows),
            "sport": rng.random(n_rows) < 0.4,
        }
    )
    years = pd.Series(rng.uniform(0.2, 4.0, n_rows).round(2), name="years")
    south = 0.5 * np.exp(0.0006 * (X["weight"] - 3000)) * np.where(X["sport"], 2.0, 1.0)
    rate = np.where(X["region"] == "north", 1.2 * 1.35 ** X["children"], south)
    return X, pd.Series(rng.poisson(rate * years).astype(float), name="claims"), years


def patients(n_rows: int = 600, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray]:
    """Weibull times; hazards follow another formula in stage III. The last are true log hazards."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.integers(30, 80, n_rows),
            "marker": rng.normal(3, 1, n_rows).round(1),
            "stage": rng.choice(["I", "II", "III"], n_rows),
            "noise": rng.normal(size=n_rows).round(2),
        }
    )
    late = X["stage"] == "III"
    hazard = np.where(late, -4.0 + 0.06 * (X["age"] - 55), -6.0 + 0.7 * (X["marker"] - 3))
    times = (rng.exponential(size=n_rows) / np.exp(hazard)) ** (1 / 1.5)
    ends = rng.uniform(5, 60, n_rows)
    y = pd.DataFrame({"months": np.minimum(times, ends).round(1), "died": times <= ends})
    return X, y, hazard
