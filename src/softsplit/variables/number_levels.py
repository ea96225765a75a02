"""Whole numbers of few values as levels: they are often codes of categories.

A column of three to six whole numbers may be a scale or a code. As levels it can be asked for any
of its values, which helps most where columns act together; as a number for a threshold.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import pandas as pd

from softsplit.support.arrays import FloatArray
from softsplit.support.row_budgets import ROWS
from softsplit.variables.coding import Coding
from softsplit.variables.levels import learn_levels
from softsplit.variables.variable import CATEGORY, NUMBER, Variable

# Distinct values of a column that may be levels.
FEWEST, MOST = 3, 6

# In a table of fewer rows, or of more columns or many cells, numbers stay numbers.
LEAST_ROWS, MOST_COLUMNS = 60, 100


def levels_of_numbers(
    coding: Coding, X: FloatArray, weight: FloatArray, said: Collection[str] = ()
) -> Coding | None:
    """Return the coding with levels in place of whole numbers of few values; None without any.

    ``X`` are coded training rows; columns of which something is ``said`` stay as they are.
    """
    counted, most = weight > 0, ROWS.halved_cells
    if counted.sum() < LEAST_ROWS or len(coding.variables) > MOST_COLUMNS or X.size > most:
        return None
    variables = list(coding.variables)
    for i, variable in enumerate(variables):
        if variable.kind != NUMBER or variable.part or variable.name in said:
            continue
        numbers = variable.decoded(X[:, coding.columns_of(i)]).numbers
        values = np.unique(numbers[counted & ~np.isnan(numbers)])
        if FEWEST <= len(values) <= MOST and np.all(values == np.floor(values)):
            levels = learn_levels(variable.name, pd.Series(numbers), weight, CATEGORY)
            if isinstance(levels, Variable) and levels.kind == CATEGORY:
                variables[i] = levels
    changed = [new is not old for new, old in zip(variables, coding.variables, strict=True)]
    return replace(coding, variables=tuple(variables)) if any(changed) else None


def levelled_columns(coding: Coding, levels: Coding) -> dict[str | int, str]:
    """Return the kind of each column that has levels, by its name, or by its place without one."""
    pairs = zip(coding.variables, levels.variables, coding.places, strict=True)
    places = [place for old, new, place in pairs if new is not old]
    return {coding.names[place] if coding.named else place: CATEGORY for place in places}


def recoded_columns(coding: Coding, levels: Coding, X: FloatArray) -> FloatArray:
    """Return rows that ``coding`` coded as ``levels`` takes them; class shares stay as they are."""
    blocks = []
    for i, (old, new) in enumerate(zip(coding.variables, levels.variables, strict=True)):
        own = X[:, coding.columns_of(i)]
        blocks.append(own if new is old else new.coded(new.cells_of_numbers(old.decoded(own))))
    return np.ascontiguousarray(np.hstack(blocks))
