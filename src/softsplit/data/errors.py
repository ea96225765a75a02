"""Errors of tables that callers may want to tell apart, or to answer with advice of their own."""

from __future__ import annotations

from softsplit.support.messages import AdvisedError


class TooFewToChoose(AdvisedError):
    """Rows are too few to compare settings by cross-validation."""


class UnknownTarget(AdvisedError):
    """A tree does not know what the column with its classes is called."""
