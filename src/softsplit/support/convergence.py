"""The warning of a training that ended before it was done, with facts that programs can read."""

from __future__ import annotations

from sklearn.exceptions import ConvergenceWarning


class CutShortWarning(ConvergenceWarning):
    """Training was ended by the user or by a limit, and the best result so far is kept.

    Attributes
    ----------
    source : str
        The estimator or function that was at work.
    reason : str
        What ended it and what is kept, as a sentence.
    interrupted : bool
        Whether it was the user, by Ctrl-C.
    """

    def __init__(self, source: str, reason: str, interrupted: bool) -> None:
        super().__init__(source, reason, interrupted)
        self.source, self.reason, self.interrupted = source, reason, interrupted

    def __str__(self) -> str:
        return f"{self.source}: {self.reason}"
