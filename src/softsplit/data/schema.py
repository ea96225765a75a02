"""How tables were coded by former versions: what their model files and pickles hold of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from softsplit.data.coding import PlainCoding, coded_names
from softsplit.variables import Coding, Variable
from softsplit.variables.variable import CATEGORY, NUMBER, ORDERED

MissingRule = Literal["error", "drop", "fill"]
SCHEMA_CODINGS = tuple(c for c in get_args(PlainCoding) if c != "none")


@dataclass(frozen=True)
class Column:
    """A column of the table that became one or more features.

    Attributes
    ----------
    name : str
    levels : tuple of str or None
        Of a categorical column, in the order of the features; None for a column of numbers.
    fill : float or str
        What stands in for a missing value: the median, or the most frequent level.
    """

    name: str
    levels: tuple[str, ...] | None
    fill: float | str

    def variable(self, coding: PlainCoding) -> Variable:
        """The same as a variable of today."""
        if self.levels is None:
            return Variable(self.name, NUMBER, float(self.fill))
        middle = float(self.levels.index(str(self.fill)))
        if coding == "ordinal":
            return Variable(self.name, ORDERED, middle, levels=self.levels)
        two = coding == "binary-once" and len(self.levels) == 2
        whole = not two and coding != "drop-first"
        return Variable(self.name, CATEGORY, middle, levels=self.levels, whole=whole)


@dataclass(frozen=True)
class InputSchema:
    """Columns of the training table, the target, and how they were coded."""

    target: str
    columns: tuple[Column, ...]
    coding: PlainCoding = "onehot"
    missing: MissingRule = "error"

    @property
    def feature_names(self) -> tuple[str, ...]:
        """What the features were called then."""
        return tuple(n for c in self.columns for n in coded_names(c.name, c.levels, self.coding))

    def table_coding(self) -> Coding | None:
        """The same as a coding of today; None if all columns are numbers as they are."""
        if all(column.levels is None for column in self.columns):
            return None
        names = tuple(column.name for column in self.columns)
        variables = tuple(column.variable(self.coding) for column in self.columns)
        return Coding(names, variables, tuple(range(len(names))))
