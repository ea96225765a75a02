"""Whole numbers of few values as levels, where trees on levels are clearly better."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from softsplit import SoftTreeClassifier, SoftTreeClassifierCV, export_text
from softsplit.variables import Coding, levelled_columns, levels_of_numbers, recoded_columns
from softsplit.variables.variable import CATEGORY, NUMBER


def codes(n_rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = {name: rng.integers(1, 5, n_rows) for name in ("shape", "colour", "size")}
    return pd.DataFrame({**table, "weight": rng.normal(size=n_rows)})


def test_only_whole_numbers_of_few_values_become_levels() -> None:
    X = codes()
    coding = Coding.of_numbers(list(X), np.median(X, axis=0))
    levels = levels_of_numbers(coding, X.to_numpy(), np.ones(len(X)), {"size"})
    assert levels is not None
    assert levels.kinds == [CATEGORY, CATEGORY, NUMBER, NUMBER]
    assert levels.variables[0].levels == ("1", "2", "3", "4")
    assert levelled_columns(coding, levels) == {"shape": CATEGORY, "colour": CATEGORY}
    coded = recoded_columns(coding, levels, X.to_numpy())
    np.testing.assert_array_equal(coded, levels.code(X).X)
    few = X.to_numpy()[:40]
    assert levels_of_numbers(coding, few, np.ones(len(few))) is None


def test_codes_that_act_together_are_taken_as_levels() -> None:
    X = codes()
    y = ((X["shape"] == 2) ^ (X["colour"] == 3)).astype(int)
    model = SoftTreeClassifierCV(random_state=0).fit(X, y)
    assert model.best_params_["feature_types"]["shape"] == CATEGORY
    assert model.score(X, y) > 0.95
    assert "weight" not in export_text(model)
    # what was chosen is a setting of a single tree, too
    tree = SoftTreeClassifier(**model.best_params_, random_state=0).fit(X, y)
    assert tree.score(X, y) > 0.95


@pytest.mark.parametrize("kinds", [None, {"shape": NUMBER, "colour": NUMBER, "size": NUMBER}])
def test_numbers_stay_numbers(kinds: dict[str, str] | None) -> None:
    X = codes()
    noise = np.random.default_rng(1).logistic(size=len(X))
    y = (X["shape"] + X["colour"] + X["weight"] + noise > 5).astype(int)
    if kinds is not None:
        y = ((X["shape"] == 2) ^ (X["colour"] == 3)).astype(int)
    model = SoftTreeClassifierCV(random_state=0, feature_types=kinds, depths=[2]).fit(X, y)
    assert "feature_types" not in model.best_params_
