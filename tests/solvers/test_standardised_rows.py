"""Standardised columns are made when they are asked for, the same to the bit however they are."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_array_equal
from sklearn.datasets import load_iris

from softsplit import SoftTreeClassifier
from softsplit.estimators.base import model_settings
from softsplit.estimators.training_rows import training_rows
from softsplit.solvers import Budget
from softsplit.solvers.elimination import objective as module
from softsplit.solvers.elimination.descents import RowDescents
from softsplit.training.preparation import prepare


def made() -> RowDescents:
    model = SoftTreeClassifier(depth=1)
    X, y = load_iris(return_X_y=True)
    problem = prepare(model_settings(model), training_rows(model, X, y, None)).problem
    return RowDescents(problem, Budget(), problem.rows.sample())


def test_columns_are_the_same_before_and_after_the_copy_of_all():
    descents, some = made(), np.array([3, 1])
    before = descents.standardised(some)
    assert descents.frame.features.shape == descents.rows.features.shape
    assert_array_equal(descents.standardised(some), before)
    assert_array_equal(descents.rows.features[some], before)
    descents.release()
    assert_array_equal(descents.restricted(some).rows.features, before)


def test_blocks_make_up_all_columns(monkeypatch):
    monkeypatch.setattr(module, "BLOCK_LINES", 2)
    monkeypatch.setattr(module, "BLOCK_CELLS", 1)
    descents = made()
    blocks = list(descents.blocks())
    assert len(blocks) > 1
    assert_array_equal(np.vstack([block for _, block in blocks]), descents.rows.features)
