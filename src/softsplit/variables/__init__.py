"""Variables of a table: their kinds, and how each is coded as columns of a training problem."""

from softsplit.variables.coding import CodedRows, Coding, column_groups
from softsplit.variables.kinds import looks_like_identifier
from softsplit.variables.learning import ColumnsLeftOut, IdentifierUsed, bent_matrix, learn
from softsplit.variables.monotone import (
    MonotoneEffects,
    effect_changes,
    effect_columns,
    monotone_effects,
)
from softsplit.variables.number_levels import (
    levelled_columns,
    levels_of_numbers,
    recoded_columns,
)
from softsplit.variables.shares import Shared
from softsplit.variables.variable import KINDS, Cells, Variable

__all__ = [
    "KINDS",
    "Cells",
    "CodedRows",
    "Coding",
    "ColumnsLeftOut",
    "IdentifierUsed",
    "MonotoneEffects",
    "Shared",
    "Variable",
    "bent_matrix",
    "column_groups",
    "effect_changes",
    "effect_columns",
    "learn",
    "levelled_columns",
    "levels_of_numbers",
    "looks_like_identifier",
    "monotone_effects",
    "recoded_columns",
]
