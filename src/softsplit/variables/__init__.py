"""Variables of a table: their kinds, and how each is coded as columns of a training problem."""

from softsplit.variables.coding import (
    CodedRows,
    Coding,
    ColumnsLeftOut,
    bent_matrix,
    column_groups,
    learn,
)
from softsplit.variables.shares import Shared
from softsplit.variables.variable import KINDS, Cells, Variable

__all__ = [
    "KINDS",
    "Cells",
    "CodedRows",
    "Coding",
    "ColumnsLeftOut",
    "Shared",
    "Variable",
    "bent_matrix",
    "column_groups",
    "learn",
]
