"""The section "numbers" of a model file: what the leaves of a tree for a number predict."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated

import numpy as np
from msgspec import Meta

from softsplit.fitted.baseline import Baseline
from softsplit.fitted.leaf_numbers import LeafNumbers
from softsplit.persistence.records import (
    Count,
    ModelFileError,
    Number,
    Place,
    Record,
    Text,
    below,
    require,
    sized,
)
from softsplit.support.messages import shown
from softsplit.tree.leaf_families import FAMILIES
from softsplit.tree.leaf_functions import LeafFunctions


class LeafRecord(Record):
    """A leaf: constant, the features of its formula with their slopes, the ends of its scores, and
    mean and typical error of its training rows; of rates also the total of their exposures."""

    constant: Number
    features: list[Place]
    slopes: list[Number]
    low: Number
    high: Number
    mean: Number
    error: Count
    total: Count | None = None


class NumbersRecord(Record):
    """The loss with its own numbers, the leaves from left to right, and the sizes of residuals of
    held-out rows, in errors of their leaves, with the number of these rows; of rates the name of
    what they are per unit of. Of survival trees this is the unit of times, and "steps" are event
    times and the cumulative baseline hazard from each on."""

    loss: Text
    settings: dict[Text, Number]
    leaves: list[LeafRecord]
    scores: Annotated[list[Count], Meta(min_length=1)] | None = None
    rows: Count = 0.0
    per: Text | None = None
    steps: Annotated[list[tuple[Number, Count]], Meta(min_length=1)] | None = None

    @classmethod
    def of(cls, numbers: LeafNumbers) -> NumbersRecord:
        family, functions = numbers.family, numbers.functions
        used = [np.flatnonzero(slopes) for slopes in functions.slopes.T]
        return cls(
            family.name,
            {field.name: float(getattr(family, field.name)) for field in fields(family)},
            [
                LeafRecord(
                    float(functions.constants[leaf]),
                    own.tolist(),
                    functions.slopes[own, leaf].tolist(),
                    float(functions.low[leaf]),
                    float(functions.high[leaf]),
                    float(numbers.means[leaf]),
                    float(numbers.errors[leaf]),
                    None if numbers.totals is None else float(numbers.totals[leaf]),
                )
                for leaf, own in enumerate(used)
            ],
            None if numbers.scores is None else numbers.scores.tolist(),
            float(numbers.rows),
            numbers.per,
            None if numbers.baseline is None else _steps(numbers.baseline),
        )

    def read(self, n_leaves: int, n_features: int) -> LeafNumbers:
        """The leaves, if they fit the tree."""
        sized(self.leaves, n_leaves, "numbers.leaves")
        slopes = np.zeros((n_features, n_leaves))
        for i, leaf in enumerate(self.leaves):
            where = f"numbers.leaves[{i}]"
            own = below(leaf.features, n_features, f"{where}.features")
            sized(leaf.slopes, len(own), f"{where}.slopes")
            require(leaf.low <= leaf.high, f"{where} of the model file has low above high.")
            slopes[own, i] = leaf.slopes
        require(self.loss in FAMILIES, f"the loss {shown(self.loss)} of the model file is unknown.")
        try:
            family = FAMILIES[self.loss](**self.settings)
        except (TypeError, ValueError):
            raise ModelFileError(
                "numbers.settings of the model file do not fit its loss."
            ) from None
        scores = None if self.scores is None else np.array(self.scores)
        require(scores is None or np.all(np.diff(scores) >= 0), "numbers.scores are not in order.")
        known = {
            name: np.array([getattr(leaf, name) for leaf in self.leaves], dtype=float)
            for name in ("constant", "low", "high", "mean", "error")
        }
        given = [leaf.total for leaf in self.leaves if leaf.total is not None]
        require(len(given) in (0, n_leaves), "numbers.leaves have totals of some leaves only.")
        totals = np.array(given) if given else None
        functions = LeafFunctions(known["constant"], slopes, known["low"], known["high"])
        return LeafNumbers(
            functions, family, known["mean"], known["error"], scores, float(self.rows), totals,
            self.per, None if self.steps is None else self._baseline(),
        )  # fmt: skip

    def _baseline(self) -> Baseline:
        times, hazards = np.array(self.steps, dtype=float).T
        rising = np.all(np.diff(times) > 0) and np.all(np.diff(hazards) > 0)
        require(rising and hazards[0] > 0, "numbers.steps of the model file do not rise.")
        return Baseline(times, hazards)


def _steps(baseline: Baseline) -> list[tuple[float, float]]:
    return list(zip(baseline.times.tolist(), baseline.hazards.tolist(), strict=True))
