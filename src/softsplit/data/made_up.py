"""Loan applications, made up from a seed: the table of ``softsplit demo``."""

from __future__ import annotations

import numpy as np
import pandas as pd

# Log-odds of a loan that is not repaid, for each value of a column.
PAST = {"paid in time": -0.9, "late once": 0.8, "late often": 2.0, "no loan before": 0.2}
PURPOSE = {"car": -0.3, "home": -0.4, "travel": 0.2, "older debts": 0.9}


def loans(n_rows: int = 1200, seed: int = 0) -> pd.DataFrame:
    """Return loan applications and whether the loan was repaid.

    The chance of a loan that is not repaid grows with the share of the income that goes to the
    instalment, falls with the years in the job, and depends on past loans and on the purpose; age,
    sum, telephone and district say nothing beside these. One income in ten is unknown.
    """
    rng = np.random.default_rng(seed)
    income = np.round(rng.lognormal(7.9, 0.45, n_rows), -1)
    amount = np.round(rng.lognormal(8.7, 0.6, n_rows), -2)
    share = np.round(100 * np.clip(amount / 36 / income * rng.uniform(2.0, 5.0, n_rows), 0.01, 0.9))
    years = rng.geometric(0.16, n_rows) - 1
    past = rng.choice(list(PAST), n_rows, p=[0.5, 0.17, 0.13, 0.2])
    purpose = rng.choice(list(PURPOSE), n_rows, p=[0.35, 0.25, 0.2, 0.2])
    odds = np.searchsorted([20, 30, 40], share, side="right") - 1.0 * (years >= 2) - (years >= 7)
    odds += [PAST[a] + PURPOSE[b] for a, b in zip(past, purpose, strict=True)]
    lost = rng.random(n_rows) < 1 / (1 + np.exp(0.9 - odds))
    frame = pd.DataFrame(
        {
            "age": np.clip(np.round(rng.normal(38, 11, n_rows)), 18, 75).astype(int),
            "income": income,
            "amount": amount,
            "instalment_percent": share.astype(int),
            "years_in_job": years,
            "past_loans": past,
            "purpose": purpose,
            "telephone": rng.choice(["yes", "no"], n_rows),
            "district": rng.choice(["north", "south", "east", "west"], n_rows),
        }
    )
    frame.loc[rng.random(n_rows) < 0.1, "income"] = np.nan
    return frame.assign(repaid=np.where(lost, "no", "yes"))
