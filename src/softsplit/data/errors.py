"""Errors of tables that callers may want to tell apart, or to answer with advice of their own."""

from __future__ import annotations

from softsplit.support.messages import AdvisedError


class MissingValues(AdvisedError):
    """Values are missing, and no rule says what to do with such rows."""


class MissingClasses(AdvisedError):
    """Rows have no class, and no rule says what to do with them."""


class UnknownLevel(AdvisedError):
    """A column holds a text that the training table did not have."""


class TooFewToChoose(AdvisedError):
    """Rows are too few to compare settings by cross-validation."""


class UselessColumn(AdvisedError):
    """A column that no tree can use: an empty one, or one of names.

    Attributes
    ----------
    column : str
    doubt : str
        A question that ends the sentence, if the column may be meant otherwise.
    """

    def __init__(self, column: str, problem: str, doubt: str = "") -> None:
        super().__init__(problem, "leave it out")
        self.args = (column, problem, doubt)
        self.column, self.doubt = column, doubt

    def advising(self, advice: str) -> str:
        return super().advising(advice + self.doubt)
