"""A fit that fails leaves an estimator as it was: an old tree, or none, and no mixture."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def all_or_nothing(estimator: object) -> Iterator[None]:
    """Take all attributes back that were set in here, if it ends in an error or an interruption."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
