"""Variables of a table: their kinds, and how each is coded as columns of a training problem."""

from softsplit.variables.coding import CodedRows, Coding, column_groups
from softsplit.variables.learning import ColumnsLeftOut, bent_matrix, learn
from softsplit.variables.monotone import (
    MonotoneEffects,
    effect_changes,
    effect_columns,
    monotone_effects,
)
from softsplit.variables.shares import Shared
from softsplit.variables.variable import KINDS, Cells, Variable

__all__ = [
    "KINDS",
    "Cells",
    "CodedRows",
    "Coding",
    "ColumnsLeftOut",
    "MonotoneEffects",
    "Shared",
    "Variable",
    "bent_matrix",
    "column_groups",
    "effect_changes",
    "effect_columns",
    "learn",
    "monotone_effects",
]
