"""Limits of the size of a tree: features, terms of a question, and questions.

With weights a (n_features, n_branches) and g(j) the group of feature j,

    features    groups with any weight that is not zero
    terms       most groups with a weight that is not zero in one branch
    questions   branches with any weight that is not zero

Features of one group, such as the columns of one variable of a table, count as one throughout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.problem.penalties import Groups


class CountedSize(NamedTuple):
    """Features of a tree, terms of its longest question, and questions."""

    features: int
    terms: int
    questions: int


@dataclass(frozen=True)
class SizeLimits:
    """The largest numbers that a tree may have; None is no limit."""

    features: int | None = None
    terms: int | None = None
    questions: int | None = None

    def __bool__(self) -> bool:
        return any(limit is not None for limit in (self.features, self.terms, self.questions))

    def allow(self, size: CountedSize) -> bool:
        """Whether a tree of this size is within the limits."""
        pairs = zip((self.features, self.terms, self.questions), size, strict=True)
        return all(limit is None or number <= limit for limit, number in pairs)


NO_LIMITS = SizeLimits()


def terms_of(kept: NDArray[np.bool_], groups: Groups | None) -> NDArray[np.intp]:
    """Return the number of terms of every branch from ``kept``, (n_features, n_branches)."""
    return np.count_nonzero(_by_group(kept, groups), axis=0)


def _by_group(kept: NDArray[np.bool_], groups: Groups | None) -> NDArray[np.bool_]:
    if groups is None:
        return kept
    members = np.zeros((len(groups.sizes), kept.shape[1]), dtype=bool)
    np.logical_or.at(members, groups.of, kept)
    return members


def tree_size(kept: NDArray[np.bool_], groups: Groups | None) -> CountedSize:
    """Return the size of a tree whose nonzero weights are ``kept``, (n_features, n_branches)."""
    kept = _by_group(kept, groups)
    terms = np.count_nonzero(kept, axis=0)
    return CountedSize(
        int(np.count_nonzero(np.any(kept, axis=1))),
        int(np.max(terms, initial=0)),
        int(np.count_nonzero(terms)),
    )
