"""Everything that a report is made of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix

from softsplit.data.learning import LabelledRows
from softsplit.estimators.alternatives import Alternatives
from softsplit.estimators.classifier import SoftTreeClassifier
from softsplit.fitted.conformal import HeldOutScores, checked_confidence, passed_on
from softsplit.fitted.model import TreeModel
from softsplit.report.groups import figures
from softsplit.report.metrics import (
    ClassMetrics,
    Interval,
    MethodMetrics,
    balanced_difference,
    class_metrics,
    difference,
    method_metrics,
    rare_class,
    share,
    watched_class,
)
from softsplit.selection.assessment import Assessment, Judged
from softsplit.support.arrays import FloatArray

PAGE_ROWS = 500
"""Rows that a page holds by default: errors of two points in the mean, and an answer within
milliseconds."""


@dataclass(frozen=True)
class BoundPoint:
    """Held-out predictions of trees under other bounds of ``fairness``, one for each entry."""

    bounds: tuple[float, ...]
    assessment: Assessment


@dataclass(frozen=True)
class ReportData:
    """The trees of a path with the rows they were trained on and what is known of them.

    Attributes
    ----------
    name : str
        The data set.
    rows : LabelledRows
        Coded training rows and their classes.
    trees : tuple of SoftTreeClassifier
        From weak to strong strength; all fitted to the same columns.
    chosen : int
        Which of them is the one.
    assessment : Assessment
    provenance : tuple of (str, str)
        How the tree was fitted: what, and how.
    alternatives : Alternatives, optional
        Other trees as good as the chosen one, if a search has met some.
    page_rows : int
        Rows that the page may hold, for figures of a tree that is changed there.
    held_out_rows : LabelledRows, optional
        Rows that the tree was not trained on, which the page holds instead of training rows.
    bounds : tuple of BoundPoint
        The same settings under other bounds of ``fairness``.
    by : tuple of (str, array), optional
        A column by whose groups figures are told, and the group of each row.
    refer : float
        Confidence of the prediction sets by which cases go to a person.
    missing : int
        Trees at other strengths that were not trained.
    no_alternatives : bool
        Whether these were left out for lack of time, or as Ctrl-C came.
    interrupted : bool
        Whether Ctrl-C ended the work, and not a time limit.
    """

    name: str
    rows: LabelledRows
    trees: tuple[SoftTreeClassifier, ...]
    chosen: int
    assessment: Assessment
    provenance: tuple[tuple[str, str], ...] = ()
    alternatives: Alternatives | None = None
    page_rows: int = PAGE_ROWS
    held_out_rows: LabelledRows | None = None
    bounds: tuple[BoundPoint, ...] = ()
    by: tuple[str, pd.Categorical] | None = None
    refer: float = 0.9
    missing: int = 0
    no_alternatives: bool = False
    interrupted: bool = False

    def __post_init__(self) -> None:
        checked_confidence(self.refer, "refer")

    @property
    def cut_by(self) -> str:
        """What ended the work before something that is missing: the beginning of a sentence."""
        return "Ctrl-C came" if self.interrupted else "the time limit ended"

    def more(self, what: str) -> str:
        """How to get what is missing: the rest of a sentence."""
        if self.interrupted:
            return f"softsplit report MODEL DATA has {what}"
        return f"a report with more time has {what} (--time-limit 0)"

    @property
    def matrix(self) -> FloatArray:
        """Training rows as the chosen tree takes them."""
        return self.matrix_of(self.chosen)

    def matrix_of(self, point: int) -> FloatArray:
        """Training rows as the tree at a point takes them."""
        return self.rows.coded_as(self.drawn(point).coding).matrix

    @property
    def y(self) -> NDArray[Any]:
        """Their classes."""
        return self.rows.y

    @property
    def tree(self) -> SoftTreeClassifier:
        return self.trees[self.chosen]

    @property
    def n_variables(self) -> int:
        """Columns of the table that a tree may use."""
        return self.rows.coding.n_candidates

    @property
    def classes(self) -> list[str]:
        return [str(label) for label in self.tree.classes_.tolist()]

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        return np.searchsorted(self.tree.classes_, self.y)

    def drawn(self, point: int) -> TreeModel:
        """The tree at a point."""
        return self.trees[point].tree_

    @property
    def rare(self) -> int | None:
        """The class that is so rare that accuracy says little of it."""
        return rare_class(self.labels, len(self.classes))

    @cached_property
    def watched(self) -> int | None:
        """The class that the page speaks of beside accuracy.

        Of two classes it is the rarer one. Of several, one with less than half of an even share, or
        the rarest one where the tree is hardly more accurate than the most frequent class.
        """
        watched = watched_class(self.labels, len(self.classes))
        ahead = self.against("majority")
        if watched is None and ahead is not None and ahead.low <= 0:
            return int(np.argmin(np.bincount(self.labels, minlength=len(self.classes))))
        return watched

    @cached_property
    def base_rate(self) -> tuple[str, float]:
        """The most frequent class, and its share of the held-out rows."""
        counts = np.bincount(self.assessment.labels, minlength=len(self.classes))
        most = int(np.argmax(counts))
        return self.classes[most], float(counts[most] / counts.sum())

    @property
    def measure(self) -> str:
        """What the page leads with: balanced accuracy if a class is rare."""
        return "accuracy" if self.rare is None else "balanced accuracy"

    def metrics(self, point: int) -> MethodMetrics | None:
        """Figures of the tree at a point, on rows that it was not trained on."""
        judged = self.assessment.trees[point]
        features = len(self.trees[point].selected_features_)
        return self._metrics(replace(judged, features=features))

    def baseline_metrics(self, name: str) -> MethodMetrics | None:
        """Figures of "majority", "logistic", "cart" or "boosting" on the same rows."""
        metrics = self._metrics(self.assessment.baselines[name])
        if metrics is None or name != "majority":
            return metrics
        # Within a fold it says the same of all rows; only folds differ, by chance.
        seen = np.unique(self.assessment.labels)
        by_chance = 1.0 / len(seen)
        return replace(
            metrics,
            balanced=Interval(by_chance, by_chance, by_chance),
            roc=Interval(0.5, 0.5, 0.5),
        )

    def _metrics(self, judged: Judged) -> MethodMetrics | None:
        if not judged.complete:
            return None
        return method_metrics(self.assessment.labels, judged, self.rare)

    def lead(self, metrics: MethodMetrics | None) -> Interval | None:
        """The figure that the page leads with."""
        if metrics is None:
            return None
        return metrics.accuracy if self.rare is None else metrics.balanced

    @cached_property
    def in_training(self) -> float:
        """The leading figure of the chosen tree on its own training rows."""
        hits = self.tree.tree_.predict_index(self.matrix) == self.labels
        if self.rare is None:
            return float(np.mean(hits))
        return float(np.mean([hits[self.labels == k].mean() for k in np.unique(self.labels)]))

    @property
    def undertrained(self) -> bool:
        """Whether the tree does worse on its own rows than its like on held-out rows.

        Trees trained with the same settings on some of the rows show what to expect of this one.
        If it is worse, its training was probably cut short.
        """
        held_out = self.lead(self.metrics(self.chosen))
        return held_out is not None and self.in_training < held_out.low

    @property
    def edited(self) -> bool:
        """Whether the tree was edited by hand or refitted: trees that are trained on folds are not.

        Other names change no figure.
        """
        return any(edit.verb != "rename" for edit in self.tree.tree_.edits.listed)

    @property
    def own_title(self) -> str:
        """Name of the tree in tables of figures on held-out rows."""
        return "a tree with the same settings" if self.edited else "this tree"

    @property
    def in_held_out_rows(self) -> Interval | None:
        """Accuracy of the tree itself on the rows that were given as held out."""
        if self.held_out_rows is None:
            return None
        called = self.tree.classes_[self.tree.tree_.predict_index(self.held_out_rows.matrix)]
        return share(called == self.held_out_rows.y)

    def accuracy(self, point: int) -> Interval | None:
        """Of the tree at a point, on rows that it was not trained on."""
        metrics = self.metrics(point)
        return None if metrics is None else metrics.accuracy

    def baseline(self, name: str) -> Interval | None:
        """Accuracy of "majority", "logistic", "cart" or "boosting" on the same rows."""
        metrics = self.baseline_metrics(name)
        return None if metrics is None else metrics.accuracy

    def against(self, name: str) -> Interval | None:
        """The leading figure of the chosen tree minus that of a plain method."""
        other, own = self.assessment.baselines[name], self.assessment.trees[self.chosen]
        if not other.complete or not own.complete:
            return None
        labels = self.assessment.labels
        hits, others = own.calls == labels, other.calls == labels
        if self.rare is None:
            return difference(hits, others)
        return balanced_difference(hits, others, labels)

    def class_metrics(self, point: int, k: int) -> ClassMetrics | None:
        """How class k fares with the tree at a point."""
        judged = self.assessment.trees[point]
        return class_metrics(self.assessment.labels, judged, k) if judged.complete else None

    def confusion(self, point: int) -> NDArray[np.int64] | None:
        """Rows by right class (row) and class said (column)."""
        if not self.assessment.judged(point):
            return None
        calls = self.assessment.trees[point].calls
        return confusion_matrix(self.assessment.labels, calls, labels=range(len(self.classes)))

    @cached_property
    def by_group(self) -> pd.DataFrame | None:
        """Figures of the chosen tree on held-out rows by group; None if none are asked for."""
        judged, rows = self.assessment.trees[self.chosen], self.assessment.rows
        if self.by is None or rows is None or not judged.complete:
            return None
        names, labels = self.by[1][rows], self.assessment.labels
        return figures(names, labels, judged.calls, judged.proba, self.classes)

    @cached_property
    def held_out(self) -> HeldOutScores | None:
        """Scores of the held-out rows of the page, by which cases go to a person."""
        judged = self.assessment.trees[self.chosen]
        if not judged.complete:
            return None
        return HeldOutScores.of(judged.proba, self.assessment.labels)

    def referred(self, confidence: float) -> tuple[int, int, Interval | None] | None:
        """Held-out rows that go to a person, all of them, and the accuracy on the others."""
        judged, known = self.assessment.trees[self.chosen], self.held_out
        if known is None:
            return None
        passed = passed_on(known.sets(judged.proba, confidence), judged.calls)
        hits = (judged.calls == self.assessment.labels)[~passed]
        return int(passed.sum()), len(passed), share(hits) if len(hits) else None
