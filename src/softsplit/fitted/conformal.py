"""Prediction sets: the classes that are probable enough for a row, judged by held-out rows.

With p_k(x) the probabilities of ``predict_proba``, class k has the score s_k(x) = 1 - p_k(x), and

    set(x) = {k : s_k(x) <= q},      q = the r-th smallest of s_y(x) over n held-out rows (x, y),

with r = ceil((n + 1) confidence); where r exceeds n, all classes are in every set. If new rows and
held-out rows are exchangeable and the tree has seen neither, the class of a new row is in its set
with a probability from ``confidence`` to confidence + 1 / (n + 1) (Vovk, Gammerman and Shafer
2005). Of all sets with that coverage, thresholds on p_k give the smallest in the mean (Sadinle, Lei
and Wasserman 2019); adaptive sets (Romano, Sesia and Candes 2020) are larger. A set may be empty:
then even the most probable class is less probable than those of held-out rows were. With
``class_conditional`` every class has a q_k of its own, from its held-out rows, and the coverage
holds for the rows of each class.

``SoftTreeClassifierCV`` has held-out rows already: those of the folds, judged by the trees of the
chosen settings that were not trained on them. The tree on all rows is not one of these trees but is
trained on more rows, and the settings were chosen on the same folds: about their coverage there is
no theorem (benchmarks/after_fit.py measures it). ``calibrate`` gives rows to which it applies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray
from softsplit.support.messages import AdvisedError, counted, unfit
from softsplit.variables.contents import text_of

MOST_SCORES = 1000
"""Scores that are kept of all classes together; of more, as many quantiles, rounded up: sets become
larger by a thousandth of the rows at most."""

FEWEST_SCORES = 100
"""Scores of a class that are kept at least, whatever the number of classes."""

DECIMALS = 7
"""Digits of a score, rounded up as well."""

SLACK = 1e-12
"""Rounding of floats: a score this little above the threshold is not above it."""


@dataclass(frozen=True)
class HeldOutScores:
    """Scores 1 - p_y of rows that a tree was not trained on.

    Attributes
    ----------
    scores : tuple of arrays
        Of the rows of each class, in ascending order; each stands for the same part of ``rows``.
    rows : array of shape (n_classes,)
        Held-out rows of each class.
    """

    scores: tuple[FloatArray, ...]
    rows: FloatArray

    @classmethod
    def of(
        cls, proba: FloatArray, labels: NDArray[np.int64], weight: FloatArray | None = None
    ) -> HeldOutScores:
        """The scores of rows with class probabilities (n_rows, n_classes).

        ``weight`` counts how many rows each stands for, 1 if it is not given.
        """
        n_classes = proba.shape[1]
        weight = np.ones(len(labels)) if weight is None else weight
        unit = 10.0**DECIMALS
        errors = np.ceil((1.0 - proba[np.arange(len(labels)), labels]) * unit - 1e-6) / unit
        most = max(FEWEST_SCORES, MOST_SCORES // n_classes)
        kept, rows = [], np.zeros(n_classes)
        for k in range(n_classes):
            own = np.flatnonzero((labels == k) & (weight > 0))
            own = own[np.argsort(errors[own], kind="stable")]
            rows[k] = weight[own].sum()
            number = min(most, len(own))
            levels = rows[k] * np.arange(1, number + 1) / max(number, 1)
            at = np.searchsorted(np.cumsum(weight[own]), levels - 1e-9 * rows[k])
            kept.append(errors[own][np.minimum(at, len(own) - 1)] if number else np.zeros(0))
        return cls(tuple(kept), rows)

    @property
    def weights(self) -> tuple[FloatArray, ...]:
        """The rows that each score stands for."""
        pairs = zip(self.scores, self.rows.tolist(), strict=True)
        return tuple(np.full(len(scores), rows / max(len(scores), 1)) for scores, rows in pairs)

    @property
    def mean(self) -> float:
        """Mean score of the held-out rows."""
        weight = np.concatenate(self.weights)
        return float(weight @ np.concatenate(self.scores) / self.rows.sum())

    def threshold(self, confidence: float, of_class: int | None = None) -> float:
        """q, of all rows or of those of one class; infinite where they are too few."""
        chosen = range(len(self.scores)) if of_class is None else [of_class]
        scores = np.concatenate([self.scores[k] for k in chosen])
        weight = np.concatenate([self.weights[k] for k in chosen])
        order = np.argsort(scores, kind="stable")
        reached, needed = np.cumsum(weight[order]), confidence * (float(weight.sum()) + 1.0)
        at = int(np.searchsorted(reached, needed - 1e-9 * max(needed, 1.0)))
        return float(scores[order[at]]) if at < len(order) else np.inf

    def thresholds(self, confidence: float, *, class_conditional: bool = False) -> FloatArray:
        """q of each class, (n_classes,): the same one, or its own."""
        n_classes = len(self.scores)
        if class_conditional:
            return np.array([self.threshold(confidence, k) for k in range(n_classes)])
        return np.full(n_classes, self.threshold(confidence))

    def sets(
        self, proba: FloatArray, confidence: float, *, class_conditional: bool = False
    ) -> NDArray[np.bool_]:
        """Which classes are in the set of each row of probabilities, (n_rows, n_classes)."""
        q = self.thresholds(confidence, class_conditional=class_conditional)
        return np.asarray(1.0 - proba <= q + SLACK)


def checked_confidence(value: object, name: str = "confidence") -> float:
    """A confidence between 0 and 1; one sentence if it is none."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not 0.0 < float(value) < 1.0:  # type: ignore[arg-type]
        raise unfit(name, value, "must be a number between 0 and 1")
    return float(value)  # type: ignore[arg-type]


def known_scores(held_out: HeldOutScores | None) -> HeldOutScores:
    """The held-out scores of a tree; one sentence if it has none."""
    if held_out is None:
        raise AdvisedError(
            "this tree knows no held-out rows",
            "choose it with SoftTreeClassifierCV, or give rows that it was not trained on to "
            "calibrate(X, y)",
            "let softsplit fit choose it, without --depth and --strength together",
        )
    return held_out


def passed_on(sets: NDArray[np.bool_], predicted: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows go to a person: those whose set is not exactly the predicted class.

    Under costs, or where each class has its own threshold, a set may hold another class alone.
    """
    return np.asarray((sets.sum(axis=1) != 1) | ~sets[np.arange(len(sets)), predicted])


def told_decisions(case: str, passed: int, of: int, right: str | None, among: str = "") -> str:
    """How many cases have a set of one class, how many of these are right, how many are left.

    ``case`` is the word for a case, ``right`` the share of right predictions, if one is known;
    ``among`` are the words after it that say how sure it is, or of which cases.
    """
    verb = "has" if of == 1 else "have"
    said = [f"{of - passed:,} of {counted(of, case)} {verb} a prediction set of one class"]
    if right is not None:
        said.append(f"{right} of these predictions are right{among}")
    if passed:
        said.append(f"{counted(passed, case)} {'goes' if passed == 1 else 'go'} to a person")
    return "; ".join(said)


UNKNOWN_CLASS, NO_CLASS = -1, -2


def known_labels(classes: Sequence[Any], y: NDArray[Any]) -> NDArray[np.int64]:
    """Positions of classes among those of a tree, -1 for others and -2 for none."""
    places = {text_of(label): k for k, label in enumerate(classes)}
    if any(isinstance(label, bool) for label in classes):  # 0 and 1 are truth values too
        places |= {str(int(label)): k for k, label in enumerate(classes)}
    positions = [
        NO_CLASS if _is_missing(v) else places.get(text_of(v), UNKNOWN_CLASS) for v in y.ravel()
    ]
    return np.array(positions, dtype=np.int64).reshape(y.shape)


def _is_missing(value: Any) -> bool:
    return value is None or str(value) in ("<NA>", "NaT", "") or value != value
